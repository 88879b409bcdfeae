#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the layer table of ARCHITECTURE.md against the #include lines and the CMake declarations of lib/, and
what tools link against what they include.

Usage: layers.py SOURCE_DIR. One line a fault; exit 1 if there is any.
"""

import pathlib
import re
import sys

# A third-party library and how its headers are recognised. fmt is everybody's.
THIRD_PARTY = {
    "CLI11": r"CLI/",
    "yaml-cpp": r"yaml-cpp/",
    "simdjson": r"simdjson",
    "libcurl": r"curl/",
    "libarchive": r"archive(_entry)?\.h",
    "libkmod": r"libkmod\.h",
    "libyaml": r"yaml\.h$",
    "RE2": r"re2/",
    "OpenSSL": r"openssl/",
    "ISA-L": r"(isa-l|igzip_lib)",
    "liblzma": r"lzma\.h",
}
# What a pure room must not see: files, processes, network, clocks, randomness, the environment. Paths as text are fine.
OS_HEADERS = re.compile(
    r"<(sys/|net/|netinet/|arpa/|linux/)|<(unistd|fcntl|poll|signal|dirent|netdb|ftw|glob|pwd|grp|time|termios)\.h>"
    r"|<(fstream|iostream|thread|random|csignal|ctime)>")
OS_CALLS = re.compile(r"\bfilesystem::(?!path\b)|\b(system_clock|steady_clock)::now|\bgetenv\(|\bstd::time\(|\bfopen\(")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
ROW = re.compile(r"^\|\s*`([\w/]+)`\s*\|\s*([^|]*)\|\s*(pure|)\s*\|")


def read_table(source, faults):
    table, pure = {}, set()
    for line in (source / "ARCHITECTURE.md").read_text().splitlines():
        row = ROW.match(line)
        if row:
            table[row[1]] = set(re.findall(r"`([\w/]+)`", row[2]))
            if row[3]:
                pure.add(row[1])
    if not table:
        faults.append("ARCHITECTURE.md: no layer table found (rows like | `plan` | `api` `base` | pure |)")
    return table, pure


def closure(table, room, seen=None):
    seen = set() if seen is None else seen
    for used in table.get(room, ()):
        if used not in seen:
            seen.add(used)
            closure(table, used, seen)
    return seen


def uses_of(path):
    found = re.search(r"USES\s+([a-z_\s]+)", path.read_text())
    return set(found[1].split()) if found else set()


def room_of(include, table):
    """The room of an included header, whose name has one or two parts; what is not of a room gets its first part."""
    parts = include.split("/")
    return next((one for one in ("/".join(parts[:2]), parts[0]) if one in table), parts[0])


def check_tools(source, table, faults):
    """A tool links the rooms of which it includes headers, and no others: what those need comes with them."""
    for path in sorted(source.glob("tools/*/CMakeLists.txt")):
        included = set()
        for file in path.parent.rglob("*.[ch]pp"):
            for line in file.read_text().splitlines():
                include = INCLUDE.match(line)
                if include and include[1] == '"' and room_of(include[2], table) in table:
                    included.add(room_of(include[2], table).replace("/", "_"))
        uses = uses_of(path)
        for names, what in ((uses - included, "includes none of their headers"), (included - uses, "is missing")):
            if names:
                faults.append(f"{path.relative_to(source)}: USES {' '.join(sorted(names))}: {what}")


def check_cmake(source, table, faults):
    rooms = {room.replace("/", "_"): room for room in table}
    for path in sorted([*source.glob("lib/*/CMakeLists.txt"), *source.glob("lib/*/*/CMakeLists.txt")]):
        room = str(path.parent.relative_to(source / "lib"))
        if room not in table:
            faults.append(f"lib/{room}: not in the layer table of ARCHITECTURE.md")
            continue
        uses = {rooms.get(name, name) for name in uses_of(path)}
        for names, what in ((uses - table[room], "is not allowed by"), (table[room] - uses, "is missing, against")):
            if names:
                faults.append(f"{path.relative_to(source)}: USES {' '.join(sorted(names))} {what} the layer table")
    for room in table:
        if not (source / "lib" / room).is_dir():
            faults.append(f"ARCHITECTURE.md: room {room} is in the layer table but not in lib/")


def check_file(source, path, room, table, pure, adapters, faults):
    allowed = table.get(room, set()) | {room}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = f"{path.relative_to(source)}:{number}"
        if room in pure and OS_CALLS.search(line):
            faults.append(f"{place}: pure room {room} asks the operating system: {line.strip()}")
        include = INCLUDE.match(line)
        if not include:
            continue
        kind, name = include.groups()
        first = room_of(name, table)
        if kind == '"' and first in table and first not in allowed:
            faults.append(f"{place}: {room} may not use {first}")
        if kind == '"' and first.startswith("kmm-"):
            faults.append(f"{place}: a room may not use a tool")
        if room in pure and OS_HEADERS.search(line):
            faults.append(f"{place}: pure room {room} includes {name}")
        for library, pattern in THIRD_PARTY.items():
            if not re.match(pattern, name):
                continue
            if path.suffix == ".hpp":
                faults.append(f"{place}: {library} in a header")
            adapters.setdefault((room, library), set()).add(str(path.relative_to(source)))


def main():
    source = pathlib.Path(sys.argv[1])
    faults, adapters = [], {}
    table, pure = read_table(source, faults)
    for room in table:
        if room in closure(table, room):
            faults.append(f"ARCHITECTURE.md: room {room} uses itself in a circle")
    check_cmake(source, table, faults)
    check_tools(source, table, faults)
    files = 0
    for path in sorted([*source.glob("lib/*/*.[ch]pp"), *source.glob("lib/*/*/*.[ch]pp")]):
        files += 1
        room = str(path.parent.relative_to(source / "lib"))
        check_file(source, path, room, table, pure, adapters, faults)
    for (room, library), paths in sorted(adapters.items()):
        if len(paths) > 1:
            faults.append(
                f"lib/{room}: {library} is included by {len(paths)} files, one adapter is allowed: "
                f"{' '.join(sorted(paths))}"
            )
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{files} files of {len(table)} rooms, {len(faults)} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
