#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the codes in the sources of kmm-plan and kmm-upgrade with those that their `explain` knows, both ways.

Usage: run_codes.py BIN_DIR SOURCE_DIR
"""

import json
import pathlib
import re
import subprocess
import sys

LITERAL = re.compile(r'"([a-z][a-z0-9]*(?:-[a-z0-9]+)+)"')
# Codes without a dash are seen only where a code stands for sure.
SURE = re.compile(r'Error\(Exit::\w+,\s*"([a-z0-9-]+)"|\.code = "([a-z0-9-]+)"|Reason\{"([a-z0-9-]+)"')
# Where a code of kmm-upgrade stands: in an error, in what doctor finds, in the reason of a pause or of a node.
SAID = re.compile(
    r'Exit::\w+,\s*"([a-z0-9-]+)"|warning\("([a-z0-9-]+)"|from_errno\([^;]*,\s*"([a-z0-9-]+)"\)'
    r'|\bpause\("([a-z0-9-]+)"|\bk_pause_\w+ = "([a-z0-9-]+)"|\.reason = "([a-z0-9-]+)"'
)
# Where a golden case has one: in a document, in an error, behind a finding.
PRINTED = re.compile(
    r'"(?:code|pauseReason)":\s*"([a-z0-9-]+)"|"reason":\s*"([a-z0-9]+(?:-[a-z0-9]+)+)"|^ +code: +([a-z0-9-]+)$'
    r"|\[([a-z0-9]+(?:-[a-z0-9]+)+)\]$",
    re.M,
)
UPGRADE_ROOMS = (
    "lib/sys",
    "lib/sandbox",
    "lib/record",
    "lib/net",
    "lib/kube",
    "lib/cluster",
    "lib/upgrade",
    "lib/kubernetes",
    "tools/kmm-upgrade",
)
# Words with a dash that are no codes and no options: labels, values of options, programs.
OTHER = set("""
kmm-plan kmm-upgrade kmm-worker worker-pods version-module version-worker-pod version-schedule-pod version-device-plugin
""".split())


def codes_in(files, pattern):
    found = {}
    for path in files:
        for match in pattern.finditer(path.read_text()):
            word = next(group for group in match.groups() if group)
            found.setdefault(word, path)
    return found


def unlisted(bin_dir, tool):
    """Codes that the list for people leaves out: it has a heading for each kind."""
    listed = subprocess.run([f"{bin_dir}/{tool}", "explain"], capture_output=True, text=True, check=True)
    return codes_of(bin_dir, tool) - set(re.findall(r"^  ([a-z0-9-]+)(?: |$)", listed.stdout, re.M))


def codes_of(bin_dir, tool):
    listed = subprocess.run([f"{bin_dir}/{tool}", "explain", "-o", "json"], capture_output=True, text=True, check=True)
    return {entry["code"] for entry in json.loads(listed.stdout)["codes"]}


def main():
    bin_dir, source = sys.argv[1], pathlib.Path(sys.argv[2])
    known = codes_of(bin_dir, "kmm-plan")
    options = set(LITERAL.findall((source / "lib/cli/option_names.cpp").read_text()))
    allowed = OTHER | options | set((source / "tests/golden/not_codes.txt").read_text().split())

    own = [
        path
        for room in ("lib/plan", "lib/preflight", "tools/kmm-plan")
        for path in sorted((source / room).rglob("*.cpp"))
        if not path.name.startswith("codes")
    ]
    faults = []
    for pattern in (LITERAL, SURE):
        for word, path in codes_in(own, pattern).items():
            if word not in known and word not in allowed:
                faults.append(f"{path.relative_to(source)}: \"{word}\" is not in lib/plan/codes/codes*.cpp or reasons.cpp "
                              "(if it is no code: tests/golden/not_codes.txt)")

    upgrade = [
        path
        for room in UPGRADE_ROOMS
        for path in sorted((source / room).rglob("*.[ch]pp"))
        if not path.name.startswith("codes")
    ]
    faults += [
        f"{room}: no source of this room was found"
        for room in UPGRADE_ROOMS
        if not any(source / room in path.parents for path in upgrade)
    ]
    of_upgrade = codes_of(bin_dir, "kmm-upgrade")
    faults += [
        f"{path.relative_to(source)}: \"{word}\" is not in tools/kmm-upgrade/codes.cpp"
        for word, path in codes_in(upgrade, SAID).items()
        if word not in known | of_upgrade
    ]
    everywhere = [
        path for path in sorted((source / "lib").rglob("*.[ch]pp")) + own + upgrade if not path.name.startswith("codes")
    ]
    of_any = known | of_upgrade | codes_of(bin_dir, "kmm-worker")
    printed = codes_in(sorted((source / "tests/golden").glob("kmm-*/*/expect.*")), PRINTED)
    faults += [
        f"{path.relative_to(source)}: \"{word}\" is printed and not explained"
        for word, path in printed.items()
        if word not in of_any
    ]
    used = set()
    for path in everywhere:
        text = path.read_text()
        used.update(LITERAL.findall(text))
        used.update(re.findall(r'"([a-z]+)"', text))
    used.update(re.findall(r"^  (?:one-of |code \w+: )([a-z-]+)", (source / "lib/schema/kmm.schema").read_text(), re.M))
    faults += [f"lib/plan: code \"{code}\" is explained but nothing says it" for code in sorted(known - used)]
    faults += [
        f"tools/kmm-upgrade: code \"{code}\" is explained but nothing says it" for code in sorted(of_upgrade - used)
    ]
    faults += [f"lib/plan: \"{code}\" is a code and also listed as none" for code in sorted(known & OTHER)]
    for tool in ("kmm-plan", "kmm-upgrade"):
        faults += [f"{tool} explain does not list {code}" for code in sorted(unlisted(bin_dir, tool))]
    print(*faults, f"{len(known | of_upgrade)} codes, {len(faults)} faults", sep="\n")
    return 1 if faults or len(known) < 50 or len(of_upgrade) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
