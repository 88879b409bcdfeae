#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hardened.py READELF OBJDUMP PROGRAM...: how programs were compiled and linked.

Each is position independent, its tables are read-only before main, no memory is writable and executable. It was
compiled with a guard of return addresses, with checked copies, with probes of large stack frames, and with marks where
indirect jumps may land.
"""
import re
import subprocess
import sys


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def faults_of(readelf, objdump, program):
    text = output(readelf, "-hldW", program)
    flags = " ".join(re.findall(r"\((?:FLAGS|FLAGS_1|BIND_NOW)\)\s*(.*)", text))
    segments = re.findall(r"^\s+(LOAD|GNU_STACK)\s+(?:0x\w+\s+){5}([R ][W ][E ])", text, re.MULTILINE)
    if not re.search(r"Type:\s+DYN .*Position-Independent", text) or "PIE" not in flags:
        yield "not position independent"
    if "GNU_RELRO" not in text or "NOW" not in flags:
        yield "tables of functions stay writable (expected -z relro -z now)"
    if not any(kind == "GNU_STACK" for kind, _ in segments):
        yield "the stack may be executable (no GNU_STACK)"
    for kind, rights in segments:
        if "W" in rights and "E" in rights:
            yield f"{kind}: writable and executable"
    if "TEXTREL" in text:
        yield "code is changed at start (TEXTREL)"
    imported = set(re.findall(r"\bUND (\w+)", output(readelf, "--dyn-syms", "-W", program)))
    if "__stack_chk_fail" not in imported:
        yield "return addresses have no guard (expected -fstack-protector-strong)"
    if "X86-64" not in text:
        return
    code = output(objdump, "-d", "--no-show-raw-insn", program)
    if not re.search(r"\borq\s+\$0x0,\(%rsp\)", code):
        yield "large frames may jump over the guard page (expected -fstack-clash-protection)"
    functions = re.findall(r"^[0-9a-f]+ <(?!.*@plt)[^>]+>:\n\s*[0-9a-f]+:\s+(\w+)", code, re.MULTILINE)
    marked = sum(first == "endbr64" for first in functions)
    if not functions or marked * 2 < len(functions):  # those that nobody calls indirectly need none
        yield f"{marked} of {len(functions)} functions are marked for indirect calls (expected -fcf-protection)"


def has_checked_copies(readelf, program):
    """A program whose copies all have sizes that the compiler knows needs none; all are compiled alike."""
    return bool(re.search(r"\bUND __\w+_chk\b", output(readelf, "--dyn-syms", "-W", program)))


def main():
    readelf, objdump, *programs = sys.argv[1:]
    faults = [f"{program}: {fault}" for program in programs for fault in faults_of(readelf, objdump, program)]
    if not any(has_checked_copies(readelf, program) for program in programs):
        faults.append("copies are not checked in any program (expected -D_FORTIFY_SOURCE)")
    print(*faults, sep="\n")
    return 1 if faults or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
