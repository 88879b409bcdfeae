#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the table of docs/kmm-worker.md is what the tests in tests/vm/test_operator.py say of themselves.

Usage: operator_page.py SOURCE_DIR [--write]

The first three lines of a test's text are a row: a promise of KMM's worker, what KMM's worker does with it, what
kmm-worker does. --write writes them into the page.
"""

import ast
import pathlib
import sys

START = "| --- | --- | --- | --- |\n"


def rows(source):
    """(rows of the table, faults)"""
    lines, faults = [], []
    tree = ast.parse((source / "tests/vm/test_operator.py").read_text())
    for group in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for test in (
            node for node in group.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ):
            said = (ast.get_docstring(test) or "").splitlines()
            if len(said) != 3 or any("|" in line for line in said):
                faults.append(
                    f"{group.name}.{test.name}: expected three lines of text (the promise, KMM's worker, kmm-worker), "
                    f"found {len(said)}"
                )
                continue
            lines.append(f"| {' | '.join(said)} | `{group.name}.{test.name}` |\n")
    return lines, faults


def main():
    source = pathlib.Path(sys.argv[1])
    page = source / "docs/kmm-worker.md"
    lines, faults = rows(source)
    before, start, after = page.read_text().partition(START)
    rest = after.splitlines(keepends=True)
    while rest and rest[0].startswith("|"):
        rest.pop(0)
    wanted = before + start + "".join(lines + rest)
    if not start:
        faults.append("it has no table of four columns")
    elif wanted != before + start + after and "--write" not in sys.argv:
        faults.append("the table is not what the tests say: run tests/lint/operator_page.py . --write")
    for fault in faults:
        print(f"docs/kmm-worker.md: {fault}")
    if "--write" in sys.argv and not faults:
        page.write_text(wanted)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
