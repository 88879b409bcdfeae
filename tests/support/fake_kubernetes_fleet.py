#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kubeadm cluster made of files: a directory cluster, a root directory for each node, and the programs by which
kmm-upgrade reaches them.

Usage: fake_kubernetes_fleet.py DIRECTORY PROGRAM CONTROL-PLANES WORKERS [VERSION...]

DIRECTORY/cluster  one object per file, for kmm-upgrade --cluster
DIRECTORY/nodes    NAME: root of a node (cp1.. and w1..), with binaries of each VERSION in /usr/local/kubernetes, of
                   which the first one runs; for KMM_FAKE_NODES
DIRECTORY/bin      ssh and chroot, to be first in PATH
PROGRAM is kmm-fake-kubernetes-node; fake_kubernetes_node.cpp says what nodes do and how faults are told.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import fake_kubeadm_node as node_files
import kubeadm_dump

FROM, TARGET = "v1.34.4", "v1.35.4"
NODE = """# the Node {name}
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels:
    kubernetes.io/hostname: {name}
    kubernetes.io/os: linux
{role}spec:
  podCIDR: 10.244.0.0/24
status:
  conditions:
    - type: MemoryPressure
      status: "False"
    - type: DiskPressure
      status: "False"
    - type: PIDPressure
      status: "False"
    - type: Ready
      status: "True"
  nodeInfo:
    architecture: amd64
    bootID: {boot}
    containerRuntimeVersion: containerd://2.1.4
    kernelVersion: 6.1.0-56-amd64
    kubeletVersion: {version}
    operatingSystem: linux
"""
KUBEADM_CONFIG = """apiVersion: v1
kind: ConfigMap
metadata:
  name: kubeadm-config
  namespace: kube-system
data:
  ClusterConfiguration: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: ClusterConfiguration
    etcd:
      local:
        dataDir: /var/lib/etcd
    kubernetesVersion: {version}
    networking:
      podSubnet: 10.244.0.0/16
      serviceSubnet: 10.96.0.0/12
"""


def names(control_planes, workers):
    return [f"cp{number + 1}" for number in range(control_planes)] + [f"w{number + 1}" for number in range(workers)]


def certificates(directory, name):
    """What of a node's certificates tells who it is."""
    directory.mkdir(parents=True)
    for file in ("admin.crt", "apiserver.crt"):
        (directory / file).write_text((node_files.CERTS / file).read_text())
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "36500",
            "-subj",
            f"/O=system:nodes/CN=system:node:{name}",
            "-keyout",
            "/dev/null",
            "-out",
            directory / "node.crt",
        ],
        check=True,
        capture_output=True,
    )


def write_object(cluster, item):
    metadata = item["metadata"]
    path = cluster / (item["kind"].lower() + "s") / metadata.get("namespace", "") / (metadata["name"] + ".yaml")
    node_files.put(path, json.dumps(item, indent=2) + "\n")


def write_objects(cluster, all_names, version):
    first = all_names[0]
    for name in all_names:
        role = '    node-role.kubernetes.io/control-plane: ""\n' if name.startswith("cp") else ""
        boot = node_files.BOOT
        node_files.put(
            cluster / "nodes" / f"{name}.yaml", NODE.format(name=name, role=role, boot=boot, version=version)
        )
    for item in kubeadm_dump.cluster(
        [f"{name}={version}" + (f"/{version}" if name.startswith("cp") else "") for name in all_names]
    ):
        labels = item["metadata"].get("labels", {})
        if item["kind"] != "Node" and item["metadata"]["name"] != "kubeadm-config" and "component" not in labels:
            write_object(cluster, item)
    dns = node_files.release_of(version)[1]
    for number, name in enumerate((first, all_names[-1])):
        write_object(
            cluster,
            kubeadm_dump.make_pod(
                "kube-system",
                f"coredns-{number}",
                name,
                f"registry.k8s.io/coredns/coredns:{dns}",
                "coredns",
                labels={"k8s-app": "kube-dns"},
            ),
        )
    proxy = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
    write_object(cluster, kubeadm_dump.config_map("kube-proxy", **{"config.conf": proxy}))
    write_object(cluster, kubeadm_dump.config_map("coredns", Corefile=".:53 {\n    kubernetes cluster.local\n}\n"))
    node_files.put(cluster / "configmaps/kube-system/kubeadm-config.yaml", KUBEADM_CONFIG.format(version=version))


def build(top, program, control_planes, workers, *versions):
    """Writes it all below the directory `top`, which may be absent."""
    top = pathlib.Path(top).absolute()
    all_names = names(int(control_planes), int(workers))
    versions = versions or (FROM, TARGET)
    version = versions[0]
    for name in all_names:
        root = top / "nodes" / name
        certs = top / "certificates" / name
        certificates(certs, name)
        node_files.make(root, version, "" if name.startswith("cp") else "worker", name, certs)
        for each in versions:
            node_files.binaries(root, "/usr/local/kubernetes", each)
    write_objects(top / "cluster", all_names, version)
    (top / "bin").mkdir()
    for name in ("ssh", "chroot", "follow"):
        os.symlink(program, top / "bin" / name)
    for name in all_names:
        subprocess.run([top / "bin/follow", top / "nodes", name], check=True)
    shutil.rmtree(top / "certificates")


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    build(*sys.argv[1:])
