#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the codes in the sources of kmm-worker with those that `kmm-worker explain` knows, both ways.

Usage: run_worker_codes.py BIN_DIR SOURCE_DIR
"""

import json
import pathlib
import re
import subprocess
import sys

ROOMS = (
    "lib/registry",
    "lib/net",
    "lib/image",
    "lib/trust",
    "lib/kernel/weak_updates.cpp",
    "lib/kmod",
    "lib/sys",
    "lib/sandbox",
    "lib/nodejob",
    "lib/kubeadm",
    "tools/kmm-worker",
)
# Where a code stands for sure: in an error, in a finding, at the beginning of a warning, in a row of weak-updates.
SURE = re.compile(
    r'Exit::\w+,\s*"([a-z]+(?:-[a-z]+)*)"|Severity::\w+,\s*"([a-z]+(?:-[a-z]+)*)"|"([a-z]+(?:-[a-z]+)+): '
    r'|refuse\(\w+,\s*"([a-z-]+)"|\.code = "([a-z-]+)"'
)
ANYWHERE = re.compile(r'"([a-z]+(?:-[a-z]+)*)(?::[^"]*)?"')


def main():
    bin_dir, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    done = subprocess.run([bin_dir / "kmm-worker", "explain", "-o", "json"], stdout=subprocess.PIPE, check=True)
    known = {row["code"] for row in json.loads(done.stdout)["codes"]}
    used, words = {}, set()
    for room in ROOMS:
        paths = [source / room] if room.endswith(".cpp") else sorted((source / room).rglob("*.[ch]pp"))
        if not paths:
            raise SystemExit(f"{room}: no source of this room was found")
        for path in paths:
            if path.name.startswith("codes."):
                continue
            text = path.read_text()
            words.update(ANYWHERE.findall(text))
            for match in SURE.finditer(text):
                used.setdefault(next(group for group in match.groups() if group), path.relative_to(source))
    # Said by what every command shares.
    # The first of them is in the script that a bundle begins with.
    shared = {
        "bundle-not-started",
        "missing-argument",
        "file-too-large",
        "missing-field",
        "toml-syntax",
        "unknown-kind",
        "bad-value",
    }
    # Never leaves the check of a signature, which says the message alone.
    used.pop("bad-payload", None)
    faults = [
        f"{path}: {code} is not in tools/kmm-worker/codes.cpp"
        for code, path in sorted(used.items())
        if code not in known
    ]
    faults += [f"tools/kmm-worker/codes.cpp: {code} is said nowhere" for code in sorted(known - words - shared)]
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(known)} codes, {len(faults)} faults")
    return 1 if faults or not known else 0


if __name__ == "__main__":
    sys.exit(main())
