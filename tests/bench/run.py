#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures kmm-plan against its limits and peers, all in one run, and prints a table of ratios.

Usage: run.py --bin DIR --peers DIR [--nodes N...] [--repeat N] [--check] [--keep DIR]

The time of a program is its processor time, user and system together, of the whole process: the least of several runs,
because other programs use the machine too. Its memory is the peak of its resident set.
  --check  fails if a ratio is beyond three times (memory: one and a half times) its goal: a build for debugging and a
           busy machine must pass
  --keep   leaves the generated files there, and uses them again
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
JQ = ('.items[] | select(.metadata.labels["node.example.com/pool"] == "gpu" and '
      '.status.nodeInfo.kernelVersion == "5.14.0-429.15.1.el9_2.x86_64") | .metadata.name')


class Run:
    def __init__(self, seconds, kib):
        self.seconds, self.kib = seconds, kib


def measure(repeat, *command):
    """The best of several runs, output thrown away."""
    best = Run(float("inf"), 0)
    for _ in range(repeat):
        with open(os.devnull, "wb") as nothing:
            child = subprocess.Popen([str(part) for part in command], stdout=nothing)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{command[0]} ended with {child.returncode}")
        best.kib = max(best.kib, usage.ru_maxrss)
        best.seconds = min(best.seconds, usage.ru_utime + usage.ru_stime)
    return best


class Table:
    def __init__(self, check):
        self.check, self.rows, self.failed = check, [], []

    def add(self, nodes, what, value, goal, at_least=False, slack=3.0):
        """One ratio; None as goal for a mere number."""
        self.rows.append((f"{nodes:,}", what, f"{value:.2f}", "" if goal is None else f"{'>=' if at_least else '<='} {goal:g}"))
        limit = None if goal is None else goal / slack if at_least else goal * slack
        if self.check and limit is not None and (value < limit if at_least else value > limit):
            self.failed.append(f"{nodes} nodes, {what}: {value:.2f}, limit {limit:.2f}")

    def print(self):
        print("| nodes | ratio | measured | goal |\n| ---: | --- | ---: | ---: |")
        for row in self.rows:
            print("| " + " | ".join(row) + " |")


def bench(count, directory, args, table, per_node):
    files = directory / str(count)
    if not (files / "modules.yaml").exists():
        subprocess.run([sys.executable, HERE / "generate.py", str(count), files] + (["--no-yaml"] if count > 20000 else []), check=True)
    repeat = max(2, min(args.repeat, 100000 // count))
    plan, json, modules = args.bin / "kmm-plan", files / "nodes.json", files / "modules.yaml"
    why = ("why", "worker-000000.fleet.example.com", "drivers/driver-00", "-f", modules)
    bare = measure(repeat, args.peers / "bare_json", json)
    show = measure(repeat, plan, "show", "-o", "jsonl", "-f", json, "-f", modules)
    read = measure(repeat, plan, *why, "-f", json)
    size = json.stat().st_size
    print(f"{count:,} nodes, {size / count / 1000:.1f} kB each: bare pass {bare.seconds:.3f} s, show {show.seconds:.3f} s "
          f"({show.kib / 1024:.0f} MiB), why {read.seconds:.3f} s", flush=True)
    table.add(count, "show -o jsonl / bare simdjson pass", show.seconds / bare.seconds, 2.5)
    table.add(count, "why / bare simdjson pass", read.seconds / bare.seconds, None)
    table.add(count, "peak memory of show / size of the file", show.kib * 1024 / size, 1.5, slack=1.5)
    if count <= 5000:
        jq = measure(2, "jq", JQ, json)
        print(f"  jq {jq.seconds:.3f} s", flush=True)
        table.add(count, "jq, one selector and one literal / show", jq.seconds / show.seconds, 8, at_least=True)
    if (files / "nodes.yaml").exists() and count <= 5000:
        events = measure(repeat, args.peers / "yaml_events", files / "nodes.yaml")
        yaml = measure(repeat, plan, "show", "-o", "jsonl", "-f", files / "nodes.yaml", "-f", modules)
        print(f"  YAML: libyaml events {events.seconds:.3f} s, show {yaml.seconds:.3f} s ({yaml.kib / 1024:.0f} MiB)", flush=True)
        table.add(count, "show from YAML / libyaml event pass", yaml.seconds / events.seconds, 2)
    per_node[count] = show.seconds / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    table, per_node = Table(args.check), {}
    with tempfile.TemporaryDirectory(prefix="kmm-bench-") as temporary:
        for count in args.nodes:
            bench(count, args.keep or pathlib.Path(temporary), args, table, per_node)
    help_time = measure(20, args.bin / "kmm-plan", "--help").seconds
    table.add(0, "kmm-plan --help, seconds / 10 ms", help_time / 0.010, 1, slack=5)
    if 5000 in per_node:
        for count in per_node:
            if count > 5000:
                table.add(count, "show, time a node / the same of 5,000", per_node[count] / per_node[5000], 1.15, slack=1.5)
    table.print()
    for line in table.failed:
        print(f"too slow or too large: {line}", file=sys.stderr)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
