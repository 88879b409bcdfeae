#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the checkers of scripts, completions and man pages.

Usage: scripts.py SOURCE_DIR CHECK, CHECK being one of shell, completions, man. Exit 77 (skipped) if a checker is
missing.
"""

import pathlib
import re
import shutil
import subprocess
import sys

from files import tracked

SKIP = 77


def missing(program):
    if shutil.which(program) is None:
        print(f"SKIP: {program} is not installed")
        return True
    return False


def run_all(commands, directory=None):
    """Runs each command; any output or a non-zero exit is a fault."""
    faults = 0
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)
        said = done.stdout.strip() + done.stderr.strip()
        if done.returncode != 0 or said:
            faults += 1
            print(f"{' '.join(command)}: exit {done.returncode}\n{said}")
    print(f"{len(commands)} checked, {faults} faults")
    return 1 if faults or not commands else 0


def shell(source):
    if missing("shellcheck"):
        return SKIP
    found = []
    for path in tracked(source):
        first = path.open("rb").readline()
        if first.startswith(b"#!") and (b"/sh" in first or b"bash" in first) and b"bats" not in first:
            found.append(str(path))
    return run_all([["shellcheck", "-x", path] for path in found], source)


def completions(source):
    commands = [["bash", "-n", str(path)] for path in sorted((source / "completions/bash").iterdir())]
    for name in ("zsh", "fish"):
        if shutil.which(name):
            commands += [[name, "-n", str(path)] for path in sorted((source / "completions" / name).iterdir())]
    return run_all(commands)


def check_examples(source, page):
    """Whether a reader at 80 columns sees every example of --help as it is typed."""
    command = ["groff", "-man", "-t", "-Tascii", "-P-cbou", "-rLL=80n", str(page)]
    seen = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = {line.strip() for line in seen.splitlines()}
    examples = set()
    for part in (source / f"tests/golden/help/{page.stem}.txt").read_text().split("\nExamples:\n")[1:]:
        listed = re.sub(r" \\\n\s+", " ", part.partition("\n\n")[0]).splitlines()
        examples.update(line.strip() for line in listed if not line.startswith("   "))
    lost = sorted(examples - lines)
    for example in lost:
        print(f"{page.name}: not in the page as it is typed: {example}")
    if not examples:
        print(f"{page.name}: no example in tests/golden/help")
    return len(lost) + (not examples)


def man(source):
    if missing("groff"):
        return SKIP
    pages = sorted((source / "man").glob("*.[0-9]"))
    faults = run_all([["groff", "-man", "-ww", "-z", "-t", "-Tutf8", "-rLL=80n", str(page)] for page in pages])
    return 1 if faults + sum(check_examples(source, page) for page in pages) else 0


def main():
    return {"shell": shell, "completions": completions, "man": man}[sys.argv[2]](pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
