#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the lint of annotations and labels kmmtools.dev/... knows each key that the tools write or read.

Usage: own_keys.py SOURCE_DIR

The lint stands below the rooms that write the keys, so it has a list of its own. A key that is missing there is
reported to users as unknown; one that nothing writes hides a misspelt key.
"""

import pathlib
import re
import sys

LIST = "lib/plan/lint/lint_own_keys.cpp"
KEY = re.compile(r'"(kmmtools\.dev/[a-z-]+)"')
NO_KEYS = {"kmmtools.dev/release"}  # the type of Secrets


def main():
    source = pathlib.Path(sys.argv[1])
    used = {}
    for path in sorted(source.glob("lib/**/*.[ch]pp")):
        name = path.relative_to(source).as_posix()
        if name != LIST:
            for key in KEY.findall(path.read_text()):
                used.setdefault(key, name)
    text = (source / LIST).read_text()
    known = set(KEY.findall(text))
    # The annotations that people write have names there.
    for name in re.findall(r"\bk_annotation_\w+", text):
        known |= {key for key in used if re.search(rf'\b{name} = "{key}"', (source / used[key]).read_text())}
    faults = [f"{used[key]}: {key} is missing in {LIST}" for key in sorted(used.keys() - known - NO_KEYS)]
    faults += [f"{LIST}: {key} is a key that nothing else has" for key in sorted(known - used.keys())]
    print(*faults, f"own keys: {len(used)} keys, {len(faults)} faults", sep="\n")
    return 1 if faults or not used else 0


if __name__ == "__main__":
    sys.exit(main())
