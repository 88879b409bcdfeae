#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what a room calls is defined in it or in a room of its row in the layer table: a function that is
declared below and defined above is found by the linker only because a program links both.

Usage: walls.py SOURCE_DIR BUILD_DIR. One line a fault; exit 1 if there is any.
"""

import pathlib
import subprocess
import sys

from layers import read_table


def symbols(library):
    """Names that a static library defines, and those that it needs from elsewhere."""
    defined, needed = set(), set()
    listing = subprocess.run(["nm", "--format=posix", library], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        words = line.split()
        if len(words) > 1:
            (needed if words[1] == "U" else defined).add(words[0])
    return defined, needed - defined


def main():
    source, build = map(pathlib.Path, sys.argv[1:3])
    faults = []
    table, _ = read_table(source, faults)
    rooms = {}
    for room in table:
        library = build / "lib" / room / f"libkmm_{room.replace('/', '_')}.a"
        if library.exists():
            rooms[room] = symbols(library)
        else:
            faults.append(f"{room}: {library} is not there")
    homes = {}
    for room, (defined, _) in rooms.items():
        for name in defined:
            homes.setdefault(name, set()).add(room)
    for room, (_, needed) in sorted(rooms.items()):
        for name in sorted(needed):
            if name in homes and not homes[name] & table[room]:
                plain = subprocess.run(["c++filt", name], check=True, capture_output=True, text=True).stdout.strip()
                faults.append(f"{room}: calls {plain}, which is in {', '.join(sorted(homes[name]))}")
    for fault in faults:
        print(fault)
    print(f"{len(rooms)} rooms, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
