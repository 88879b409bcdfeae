#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the pages docs/hostile-*.md have every row M01 to M68 once, and name the tests that try it.

Usage: hostile.py SOURCE_DIR [--write]

A unit test tries the rows that its name begins with ("M22 M23 layers that ..."), a golden case the one in the name of
its directory ("m54-..."). --write puts the names into the last column of the table.
"""

import pathlib
import re
import sys

ROWS = [f"M{number:02}" for number in range(1, 69)]
CASE = re.compile(r'TEST_CASE\(\s*"((?:M\d\d[ :]+)+)([^"]*)"')
ROW = re.compile(r"^\| (M\d\d) \| (.*) \| (.*) \| (.*) \|$")


def tests_of(source):
    found = {row: [] for row in ROWS}
    for path in sorted((source / "tests/unit").rglob("*_test.cpp")):
        for match in CASE.finditer(re.sub(r'"\s*\n\s*"', "", path.read_text())):
            for row in re.findall(r"M\d\d", match[1]):
                found[row].append(f"`{path.parent.name}`: {match[2]}")
    for path in sorted((source / "tests/golden").glob("*/m[0-9][0-9]-*")):
        found[path.name[:3].upper()].append(f"`golden/{path.parent.name}/{path.name}`")
    return found


def main():
    source = pathlib.Path(sys.argv[1])
    tests = tests_of(source)
    faults = [f"{row} has no test" for row in ROWS if not tests[row]]
    seen = []
    for page in sorted((source / "docs").glob("hostile-*.md")):
        lines, before = [], len(seen)
        for number, line in enumerate(page.read_text().splitlines(), 1):
            match = ROW.match(line)
            if match:
                row, given, result, named = match.groups()
                seen.append(row)
                wanted = "; ".join(tests.get(row, []))
                if named != wanted and "--write" not in sys.argv:
                    faults.append(
                        f"{page.name}:{number}: {row} names other tests than there are: run tests/lint/hostile.py . "
                        f"--write"
                    )
                line = f"| {row} | {given} | {result} | {wanted} |"
            lines.append(line)
        if seen[before:] != sorted(seen[before:]):
            faults.append(f"{page.name}: the rows are not in order")
        if "--write" in sys.argv:
            page.write_text("\n".join(lines) + "\n")
    if sorted(seen) != ROWS:
        faults.append(f"expected each of the rows M01 to M68 once, found {len(seen)} rows; "
                      f"missing: {', '.join(sorted(set(ROWS) - set(seen))) or 'none'}")
    for fault in faults:
        print(f"docs: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
