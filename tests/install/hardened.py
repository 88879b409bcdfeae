#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hardened.py READELF PROGRAM: the program is position independent, its tables are read-only before main, no memory is writable and executable."""
import re
import subprocess
import sys


def main():
    readelf, program = sys.argv[1:]
    text = subprocess.run([readelf, "-hldW", program], capture_output=True, text=True, check=True).stdout
    flags = " ".join(re.findall(r"\((?:FLAGS|FLAGS_1|BIND_NOW)\)\s*(.*)", text))
    segments = re.findall(r"^\s+(LOAD|GNU_STACK)\s+(?:0x\w+\s+){5}([R ][W ][E ])", text, re.MULTILINE)
    faults = []
    if not re.search(r"Type:\s+DYN .*Position-Independent", text) or "PIE" not in flags:
        faults.append("not position independent")
    if "GNU_RELRO" not in text or "NOW" not in flags:
        faults.append("tables of functions stay writable (expected -z relro -z now)")
    if not any(kind == "GNU_STACK" for kind, _ in segments):
        faults.append("the stack may be executable (no GNU_STACK)")
    faults += [f"{kind}: writable and executable" for kind, rights in segments if "W" in rights and "E" in rights]
    if "TEXTREL" in text:
        faults.append("code is changed at start (TEXTREL)")
    print(*(f"{program}: {fault}" for fault in faults), sep="\n")
    return 1 if faults or not segments else 0


if __name__ == "__main__":
    sys.exit(main())
