#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures kmm-plan on a live cluster: `show` against `kubectl get nodes -o json`, in turns, and prints a table of
ratios.

Usage: live_bench.py --bin DIR [--nodes N] [--rounds N] [--dir DIR] [--kubectl FILE] [--check]

The cluster is that of tests/apiserver: a real etcd and a real API server on loopback, with the fleet of generate.py put
into etcd. kubectl is built by Go from the modules that tests/apiserver/servers/go.mod pins, once, and kept beside the
servers. Ratios are of seconds on the clock, the least of each; what a program itself computes is said besides.
  --check  fails if the ratio of `show` is above its goal
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
APISERVER = HERE.parent / "apiserver"
ROOT = HERE.parent.parent
sys.path.insert(0, str(APISERVER))

from testbed import binaries, etcd, manifests  # noqa: E402
from testbed.servers import Cluster  # noqa: E402
from lab.common import LabError, say, stop_process  # noqa: E402

GOAL = 1.5


def build_kubectl(directory):
    """kubectl of the same sources as the servers; where it is."""
    target = binaries.cache() / f"kubectl-{binaries.KUBERNETES}"
    if target.exists():
        return target
    directory.mkdir(parents=True, exist_ok=True)
    go, sources = binaries.find_go(directory), directory / "kubectl"
    sources.mkdir(exist_ok=True)
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(APISERVER / "servers" / name, sources / name)
    environment = dict(
        os.environ, CGO_ENABLED="0", GOTOOLCHAIN="local", GOWORK="off", GOFLAGS="-mod=mod -buildvcs=false"
    )
    made = directory / "kubectl.new"
    say(f"building kubectl {binaries.KUBERNETES}")
    # As it is released: optimised, without symbols.
    binaries.attempt(
        "building kubectl",
        [go, "build", "-trimpath", "-ldflags=-s -w", "-o", made, "k8s.io/kubernetes/cmd/kubectl"],
        cwd=sources,
        env=environment,
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made, target)
    return target


def fill(cluster, count, directory):
    """The nodes and Modules of the benchmark; how many bytes the server keeps of each node."""
    subprocess.run([sys.executable, HERE / "generate.py", str(count), directory, "--no-yaml"], check=True)
    api = cluster.api()
    manifests.install_definitions(api, ROOT)
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "drivers"}})
    manifests.apply(api, directory / "modules.yaml")
    nodes = json.loads((directory / "nodes.json").read_text())["items"]
    # Nobody looks after these nodes: what does would only use processors meanwhile.
    for name in ("kubelet", "kube-controller-manager"):
        stop_process(cluster.state()["pids"][name])
    etcd.flood(cluster, nodes)
    return len(json.dumps(nodes[0]))


class Best:
    """The least seconds on the clock, and of processor time in that run."""

    def __init__(self):
        self.clock, self.processor, self.kib = float("inf"), 0.0, 0

    def run(self, command, environment, codes=(0,)):
        start = time.monotonic()
        with open(os.devnull, "wb") as nothing:
            child = subprocess.Popen(
                [str(word) for word in command], stdout=nothing, stderr=subprocess.PIPE, env=environment
            )
            said = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - start
        if child.returncode not in codes:
            sys.exit(f"{command[0]} ended with {child.returncode}: {said.decode(errors='replace')[-2000:]}")
        if took < self.clock:
            self.clock, self.processor, self.kib = took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def measure(args, cluster, kubectl):
    plan = (args.bin / "kmm-plan", "show", "--kubeconfig", cluster.kubeconfig, "--context", "admin", "-q")
    rows = {
        "kubectl get nodes -o json": (
            kubectl,
            "--kubeconfig",
            cluster.kubeconfig,
            "--context",
            "admin",
            "get",
            "nodes",
            "-o",
            "json",
        ),
        "kmm-plan show": plan,
        "kmm-plan show -o jsonl": (*plan, "-o", "jsonl"),
        "kmm-plan why": (
            args.bin / "kmm-plan",
            "why",
            "worker-000000.fleet.example.com",
            "drivers/driver-00",
            *plan[2:],
        ),
    }
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        best = {name: Best() for name in rows}
        # In turns, so that a busy moment of the machine is everybody's.
        for _ in range(args.rounds):
            for name, command in rows.items():
                best[name].run(command, environment)
    return best


def run(described, fill_cluster, measure_rows, head, judged, goal=GOAL):
    """A benchmark on a live cluster, from its command line to its table of ratios; the exit code. The first row of
    `measure_rows` is the peer; `judged` are the names of rows that --check holds to the goal, None for all. `head`
    makes the line above the table from the options and what `fill_cluster` has returned."""
    parser = argparse.ArgumentParser(description=described, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", type=pathlib.Path)
    parser.add_argument("--kubectl", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kmm-bench-") as temporary:
        directory = args.dir or pathlib.Path(temporary)
        cluster = Cluster(directory / "cluster")
        try:
            kubectl = args.kubectl or build_kubectl(directory / "build")
            cluster.up(directory / "build")
            # In a process of its own: what a process starts is born with its peak of memory.
            with concurrent.futures.ProcessPoolExecutor(1) as apart:
                filled = apart.submit(fill_cluster, cluster, args.nodes, directory / "fleet").result()
            best = measure_rows(args, cluster, kubectl)
        except LabError as error:
            sys.exit(f"error: {error}")
        finally:
            cluster.down()
    base = next(iter(best.values())).clock
    print(f"{head(args, filled)}, the least of {args.rounds} rounds\n")
    print("| what | seconds | ratio | processor seconds | peak MiB |\n| --- | ---: | ---: | ---: | ---: |")
    for name, one in best.items():
        print(f"| {name} | {one.clock:.2f} | {one.clock / base:.2f} | {one.processor:.2f} | {one.kib / 1024:.0f} |")
    is_slow = any(one.clock > goal * base for name, one in best.items() if judged is None or name in judged)
    return 1 if args.check and is_slow else 0


if __name__ == "__main__":
    sys.exit(run(__doc__, fill, measure, lambda args, size: f"{args.nodes:,} nodes of {size / 1000:.1f} kB",
                 ("kmm-plan show",)))
