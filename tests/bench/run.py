#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures kmm-plan against its limits and peers, all in one run, and prints a table of ratios for each fleet: one that
is idle, with nothing of KMM on it (generate.py), and one that KMM runs (steady.py).

Usage: run.py --bin DIR --peers DIR [--nodes N...] [--fleet NAME...] [--repeat N] [--check] [--keep DIR]

The time of a program is its processor time, user and system together, of the whole process: the least of several runs
in turns with its peers, because other programs use the machine too. "By the clock" is from start to end, which a busy
machine makes longer. Its memory is the peak of its resident set.
  --check  fails if a ratio is far beyond its goal, three times (the steady fleet: five times, memory: twice): a build
  for
           debugging and a busy machine must pass
  --keep   leaves the generated files there, and uses them again
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
JQ = ('.items[] | select(.metadata.labels["node.example.com/pool"] == "gpu" and '
      '.status.nodeInfo.kernelVersion == "5.14.0-429.15.1.el9_2.x86_64") | .metadata.name')


class Run:
    def __init__(self, seconds, kib, wall=float("inf")):
        self.seconds, self.kib, self.wall = seconds, kib, wall


def run_once(best, command):
    """Adds a run, its output thrown away, to the best so far."""
    begin = time.monotonic()
    with open(os.devnull, "wb") as nothing:
        child = subprocess.Popen([str(part) for part in command], stdout=nothing)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command[0]} ended with {child.returncode}")
    best.wall = min(best.wall, time.monotonic() - begin)
    best.kib = max(best.kib, usage.ru_maxrss)
    best.seconds = min(best.seconds, usage.ru_utime + usage.ru_stime)


def in_turns(repeat, *commands):
    """The best of several runs of each; what else the machine does meets all of them alike."""
    best = [Run(float("inf"), 0) for _ in commands]
    for _ in range(repeat):
        for run, command in zip(best, commands):
            run_once(run, command)
    return best


def measure(repeat, *command):
    """The best of several runs."""
    return in_turns(repeat, command)[0]


class Table:
    def __init__(self, check):
        self.check, self.rows, self.failed = check, [], []

    def add(self, nodes, what, value, goal, at_least=False, slack=3.0):
        """One ratio; None as goal for a mere number."""
        self.rows.append(
            (f"{nodes:,}", what, f"{value:.2f}", "" if goal is None else f"{'>=' if at_least else '<='} {goal:g}")
        )
        limit = None if goal is None else goal / slack if at_least else goal * slack
        if self.check and limit is not None and (value < limit if at_least else value > limit):
            self.failed.append(f"{nodes} nodes, {what}: {value:.2f}, limit {limit:.2f}")

    def print(self):
        print("| nodes | ratio | measured | goal |\n| ---: | --- | ---: | ---: |")
        for row in self.rows:
            print("| " + " | ".join(row) + " |")


FORMS = ["table", "wide", "json", "yaml", "jsonl", "name"]


class Fleet:
    """A fleet's generator, the files it makes, and the goals of its ratios."""

    def __init__(self, name, generator, json_file, more_files, slack, goals):
        self.name, self.generator, self.json_file, self.more_files, self.goals = (
            name,
            generator,
            json_file,
            more_files,
            goals,
        )
        self.slack = slack  # of --check, whose fleet is small

    def make(self, count, directory):
        files = directory / f"{self.name}-{count}"
        if not (files / "made").exists():
            subprocess.run(
                [sys.executable, HERE / self.generator, str(count), files] + (["--no-yaml"] if count > 20000 else []),
                check=True,
            )
            (files / "made").touch()
        return files


FLEETS = [
    Fleet("idle", "generate.py", "nodes", ["modules.yaml"], 3, {"bare": 2.5, "memory": 0.5, "jq": 8, "yaml": 1.5}),
    Fleet("steady", "steady.py", "fleet", [], 5, {"bare": 3, "memory": 0.5, "jq by the clock": 6, "yaml": 1.5}),
]


def bench(fleet, count, args, directory, table, per_node):
    files = fleet.make(count, directory)
    json, yaml = files / f"{fleet.json_file}.json", files / f"{fleet.json_file}.yaml"
    repeat = 2 if args.check else max(2, min(args.repeat, 100000 // count))
    more = [part for name in fleet.more_files for part in ("-f", files / name)]

    def show(form, source):
        return args.bin / "kmm-plan", "show", "-q", "-o", form, "-f", source, *more

    commands = [(args.peers / "bare_json", json), show("jsonl", json)]
    if count <= 5000:
        commands += [("jq", JQ, json), (args.peers / "yaml_events", yaml), show("jsonl", yaml)]
    bare, lines, *others = in_turns(repeat, *commands)
    size = json.stat().st_size
    print(
        f"{fleet.name}, {count:,} nodes, {size / count / 1000:.1f} kB each: bare pass {bare.seconds:.3f} s, show "
        f"{lines.seconds:.3f} s "
        f"({lines.wall:.3f} s by the clock, {lines.kib / 1024:.0f} MiB)",
        flush=True,
    )
    table.add(
        count, "`show -o jsonl` / bare pass", lines.seconds / bare.seconds, fleet.goals["bare"], slack=fleet.slack
    )
    if count <= 20000:
        for form in ["json", "jsonl"] if args.check else FORMS:
            run = lines if form == "jsonl" else measure(1, *show(form, json))
            # What a process needs without a fleet counts in a small one.
            kib = run.kib if count >= 5000 else max(0, run.kib - 16 * 1024)
            table.add(
                count,
                f"peak memory of `show -o {form}` / size of the file ({size / 1e6:.0f} MB)",
                kib * 1024 / size,
                fleet.goals["memory"],
                slack=2,
            )
    else:
        table.add(
            count,
            f"peak memory of `show -o jsonl` / size of the file ({size / 1e6:.0f} MB)",
            lines.kib * 1024 / size,
            fleet.goals["memory"],
            slack=1.5,
        )
    if count <= 5000:
        jq, events, run = others
        table.add(
            count,
            "`jq` / `show -o jsonl`",
            jq.seconds / lines.seconds,
            fleet.goals.get("jq"),
            at_least=True,
            slack=fleet.slack,
        )
        table.add(
            count,
            "the same by the clock",
            jq.wall / lines.wall,
            fleet.goals.get("jq by the clock"),
            at_least=True,
            slack=fleet.slack,
        )
        print(
            f"  jq {jq.seconds:.3f} s; YAML: libyaml events {events.seconds:.3f} s, show {run.seconds:.3f} s "
            f"({run.kib / 1024:.0f} MiB)",
            flush=True,
        )
        table.add(
            count,
            "`show` from YAML / libyaml event pass",
            run.seconds / events.seconds,
            fleet.goals["yaml"],
            slack=fleet.slack,
        )
        table.add(count, "the same by the clock", run.wall / events.wall, None)
    per_node[count] = lines.seconds / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument(
        "--fleet", nargs="+", default=[fleet.name for fleet in FLEETS], choices=[fleet.name for fleet in FLEETS]
    )
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="kmm-bench-") as temporary:
        for fleet in FLEETS:
            if fleet.name not in args.fleet:
                continue
            table, per_node = Table(args.check), {}
            for count in args.nodes:
                bench(fleet, count, args, args.keep or pathlib.Path(temporary), table, per_node)
            for count in per_node:
                if 5000 in per_node and count > 5000:
                    table.add(
                        count, "time per node / the same of 5,000", per_node[count] / per_node[5000], 1.15, slack=1.5
                    )
            print(f"\nThe {fleet.name} fleet:\n")
            table.print()
            failed += [f"{fleet.name}, {line}" for line in table.failed]
    help_time = measure(20, args.bin / "kmm-plan", "--help").seconds
    print(f"kmm-plan --help: {help_time * 1000:.1f} ms")
    if args.check and help_time > 0.05:
        failed.append(f"kmm-plan --help: {help_time:.3f} s, limit 0.05 s")
    for line in failed:
        print(f"too slow or too large: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
