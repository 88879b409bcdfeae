#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `kmm-upgrade versions` and `health` on a live cluster of kubeadm's form against `kubectl get nodes,pods -n
kube-system -o json`, in turns, and prints a table of ratios.

Usage: kubernetes_bench.py --bin DIR [--nodes N] [--rounds N] [--dir DIR] [--kubectl FILE] [--check]

The cluster is that of tests/apiserver: a real etcd and a real API server on loopback. What kubeadm, kubelets and their
DaemonSets would have made is put into etcd: the fleet of generate.py with three control-plane nodes, whose static Pods
are there, and on every node a kube-proxy and a Pod of the network. Ratios are of seconds on the clock, the least of
each; what a program itself computes is said besides.
  --check  fails if a ratio is above its goal
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent / "apiserver")]

import kubeadm_dump  # noqa: E402
import live_bench  # noqa: E402
from testbed import etcd  # noqa: E402
from lab.common import stop_process  # noqa: E402

VERSION = "v1.34.4"
MASTERS = 3
# What a server keeps of a Pod beside what the tools read.
MANAGED = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {f"f:field-{number}": {".": {}, "f:name": {}, "f:value": {}} for number in range(24)}},
    }
    for manager in ("kube-controller-manager", "kubelet")
]


def pod(name, image, node):
    made = kubeadm_dump.make_pod(
        "kube-system", f"{name}-{node}", node, image, name, [name], {"k8s-app": name}, "DaemonSet"
    )
    made["metadata"]["managedFields"] = MANAGED
    made["spec"]["containers"][0]["env"] = [
        {"name": f"SETTING_{number}", "value": "a value of a usual length"} for number in range(20)
    ]
    return made


def make_objects(count, directory):
    """What lies in etcd, as (key, object)."""
    subprocess.run([sys.executable, HERE / "generate.py", str(count), directory, "--no-yaml"], check=True)
    nodes = json.loads((directory / "nodes.json").read_text())["items"]
    for number, node in enumerate(nodes):
        name = node["metadata"]["name"]
        node["status"]["nodeInfo"]["kubeletVersion"] = VERSION
        if number < MASTERS:
            node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = ""
        yield f"minions/{name}", node
        pods = [
            pod("kube-proxy", f"registry.k8s.io/kube-proxy:{VERSION}", name),
            pod("network", "registry.example/network:1", name),
        ]
        for made in pods + (list(kubeadm_dump.static_pods(name, VERSION)) if number < MASTERS else []):
            yield f"pods/kube-system/{made['metadata']['name']}", made
    for made in kubeadm_dump.cluster(["one=" + VERSION + "/" + VERSION]):
        if made["kind"] == "ConfigMap":
            yield f"configmaps/kube-system/{made['metadata']['name']}", made


def fill(cluster, count, directory):
    # Nobody looks after these nodes: what does would only use processors meanwhile.
    for name in ("kubelet", "kube-controller-manager"):
        stop_process(cluster.state()["pids"][name])
    etcd.put(cluster, list(make_objects(count, directory)))


def measure(args, cluster, kubectl):
    access = ("--kubeconfig", cluster.kubeconfig, "--context", "admin")
    rows = {
        "kubectl get nodes,pods -n kube-system -o json": (
            (kubectl, *access, "get", "nodes,pods", "-n", "kube-system", "-o", "json"),
            (0,),
        ),
        "kmm-upgrade versions": ((args.bin / "kmm-upgrade", "versions", *access), (0,)),
        # No component of this cluster answers where it should: it says so, which is 17.
        "kmm-upgrade health": ((args.bin / "kmm-upgrade", "health", *access), (0, 17)),
    }
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        best = {name: live_bench.Best() for name in rows}
        # In turns, so that a busy moment of the machine is everybody's.
        for _ in range(args.rounds):
            for name, (command, codes) in rows.items():
                best[name].run(command, environment, codes)
    return best


if __name__ == "__main__":
    sys.exit(live_bench.run(__doc__, fill, measure,
                            lambda args, _: f"{args.nodes:,} nodes with two Pods each in kube-system", None))
