#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what an upgrade of Kubernetes costs for each node of a small and of a large cluster, whose nodes answer at
once (tests/support/instant_nodes.py), and prints a table of ratios.

Usage: kubernetes_fleet_bench.py --bin DIR --fake DIR [--nodes N...] [--via HOW] [--check] [-- OPTION...]

DIR of --fake has kubernetes-node, which the tests build. Options after -- are those of start kubernetes.
  --check  fails if a node of the largest cluster costs more than 1.6 times a node of the smallest one, or a step takes
           a second
"""

import argparse
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

import instant_nodes  # noqa: E402

MASTERS = 3
MOST = 1.6  # of what is at most 1.1 on an idle machine: others may be at work on this one
# title, figure of a Walk for one node, what it is multiplied with in the table
COLUMNS = (
    ("requests", lambda walk: len(walk.requests), 1, "{:.1f}"),
    ("kB of answers", lambda walk: sum(each.bytes for each in walk.requests), 1e-3, "{:.1f}"),
    ("calls of the node", lambda walk: len(walk.calls), 1, "{:.1f}"),
    ("steps", lambda walk: len(walk.steps), 1, "{:.1f}"),
    ("kB of record", lambda walk: walk.record, 1e-3, "{:.1f}"),
    ("processor ms", lambda walk: walk.processor, 1e3, "{:.1f}"),
    ("ms", lambda walk: walk.seconds, 1e3, "{:.0f}"),
)


def measure(arguments, count):
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kmm-kubernetes-", dir=base) as top:
        walk = instant_nodes.walk(
            pathlib.Path(top, "cluster"),
            arguments.bin.absolute(),
            arguments.fake.absolute(),
            MASTERS,
            count - MASTERS,
            arguments.via,
            *arguments.options,
        )
    if walk.code != 0:
        sys.exit(f"the upgrade of {count} nodes ended with {walk.code}:\n{walk.said}")
    return walk


def main():
    words, options = sys.argv[1:], []
    if "--" in words:
        words, options = words[: words.index("--")], words[words.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--fake", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", type=int, nargs="+", default=[50, 500])
    parser.add_argument("--via", choices=("ssh", "self"), default="ssh")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args(words)
    arguments.options = options
    print("| for each node, of | " + " | ".join(title for title, _, _, _ in COLUMNS) + " | peak MiB |")
    print("| ---: |" + " ---: |" * (len(COLUMNS) + 1))
    rows, faults = [], []
    for count in arguments.nodes:
        walk = measure(arguments, count)
        rows.append([figure(walk) / count for _, figure, _, _ in COLUMNS])
        cells = [form.format(cell * by) for cell, (_, _, by, form) in zip(rows[-1], COLUMNS)]
        print(f"| {count:,} | {' | '.join(cells)} | {walk.peak_kib / 1024:.0f} |", flush=True)
        if walk.seconds > len(walk.steps):
            faults.append(f"{count} nodes: a step takes {walk.seconds / len(walk.steps):.2f} s")
    ratios = [large / small for small, large in zip(rows[0], rows[-1])]
    print("| ratio | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " | |")
    faults += [
        f"{title}: {ratio:.2f} times as much a node" for (title, *_), ratio in zip(COLUMNS, ratios) if ratio > MOST
    ]
    if arguments.check and faults:
        sys.exit("\n".join(faults))
    return 0


if __name__ == "__main__":
    sys.exit(main())
