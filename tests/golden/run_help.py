#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares --help of a program and of each of its verbs with the committed texts in tests/golden/help/TOOL.txt.

The file is written by tests/gendocs: a line "==== TOOL VERB" before each text.
"""

import difflib
import os
import pathlib
import subprocess
import sys


def main():
    bin_dir, path = sys.argv[1], pathlib.Path(sys.argv[2])
    wrong = checked = 0
    for part in path.read_text().split("==== ")[1:]:
        head, _, want = part.partition("\n")
        words = head.split()
        program = os.path.join(bin_dir, words[0])
        for command in ([program, *words[1:], "--help"], [program, "help", *words[1:]]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            checked += 1
            wide = [line for line in done.stdout.splitlines() if len(line) > 80]
            if done.returncode != 0 or done.stderr or done.stdout != want or wide:
                wrong += 1
                print(f"{' '.join(command)}: exit {done.returncode} {done.stderr}", *wide, sep="\n  wide: ")
                sys.stdout.writelines(difflib.unified_diff(
                    want.splitlines(True), done.stdout.splitlines(True), str(path), "printed"))
    print(f"{checked} help texts, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
