#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of a node of a kubeadm cluster. What its programs do is in fake_kubeadm_machine.cpp;
fake_kubernetes_node.cpp says how they fail.

Usage: fake_kubeadm_node.py make ROOT [VERSION [worker]]
         writes the node (v1.34.4 unless said) below ROOT, and bin/chroot beside it, by which its programs are run;
         needs kmm-worker in PATH
       fake_kubeadm_node.py binaries ROOT DIRECTORY VERSION [stages]
         puts kubeadm and kubelet of a version into DIRECTORY of the node
"""
import base64
import hashlib
import os
import pathlib
import shutil
import stat
import sys

SUPPORT = pathlib.Path(__file__).resolve().parent
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
RELEASES = {
    "v1.33": ("3.5.24-0", "v1.12.0"),
    "v1.34": ("3.6.5-0", "v1.12.1"),
    "v1.35": ("3.6.6-0", "v1.13.1"),
}  # etcd and CoreDNS
CERTS = SUPPORT / "kubeadm_certs"
BOOT = "11111111-2222-4333-8444-555555555555"


def release_of(version):
    return RELEASES[version.rsplit(".", 1)[0]]


def manifest(component, version):
    tag = release_of(version)[0] if component == "etcd" else version
    command = (
        f"[{component}, --etcd-servers=https://127.0.0.1:2379]" if component == "kube-apiserver" else f"[{component}]"
    )
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {component}, namespace: kube-system}}\nspec:\n  containers:\n"
        f"  - name: {component}\n    image: registry.k8s.io/{component}:{tag}\n    command: {command}\n"
    )


def program(name, version):
    """Its second line is what it is."""
    return f"#!/bin/sh\n# {name} {version}\nexit 1\n"


def put(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def kubeconfig(user, data):
    return (f"apiVersion: v1\nkind: Config\ncurrent-context: {user}@kubernetes\ncontexts:\n- name: {user}@kubernetes\n"
            f"  context: {{cluster: kubernetes, user: {user}}}\nusers:\n- name: {user}\n  user:\n    {data}\n")


def start_kubelet(root, pid, text):
    """The process, as /proc shows it."""
    proc = root / "proc" / str(pid)
    put(proc / "comm", "kubelet\n")
    put(proc / "status", "Name:\tkubelet\nUid:\t0\t0\t0\t0\n")
    (proc / "ns").mkdir()
    (proc / "ns/mnt").symlink_to("mnt:[1]")
    put(
        proc / "cmdline",
        "/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0--pod-infra-container-image=r/pause:3.10.1\0",
    )
    put(proc / "exe", text, 0o755)


def make(root, version="v1.34.4", role="", name="cp1", certs=CERTS):
    put(root / "proc/sys/kernel/hostname", name + "\n")
    put(root / "proc/sys/kernel/random/boot_id", BOOT + "\n")
    put(root / "proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
    (root / "proc/1/ns").mkdir(parents=True)
    (root / "proc/1/ns/mnt").symlink_to("mnt:[1]")
    put(root / "proc/1/comm", "systemd\n")
    put(root / "proc/1/status", "Name:\tsystemd\nUid:\t0\t0\t0\t0\n")
    put(root / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    put(root / "etc/kubernetes/pki/ca.crt", (certs / "apiserver.crt").read_text())
    put(
        root / "etc/kubernetes/kubelet.conf",
        kubeconfig("default-auth", "client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem"),
        0o600,
    )
    put(root / "var/lib/kubelet/pki/kubelet-client-1.pem", (certs / "node.crt").read_text(), 0o600)
    (root / "var/lib/kubelet/pki/kubelet-client-current.pem").symlink_to("/var/lib/kubelet/pki/kubelet-client-1.pem")
    put(
        root / "var/lib/kubelet/config.yaml",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: "
        "/etc/kubernetes/manifests\nhealthzPort: 0\ncgroupDriver: systemd\n",
    )
    (root / "run").mkdir(parents=True, exist_ok=True)
    os.mknod(root / "run/containerd.sock", stat.S_IFSOCK | 0o600)
    put(
        root / "var/lib/kubelet/kubeadm-flags.env",
        'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=r/pause:3.10.1 '
        '--container-runtime-endpoint=unix:///run/containerd.sock"\n',
    )
    for tool in ("kubeadm", "kubelet", "crictl", "systemctl"):
        put(root / "usr/bin" / tool, program(tool, version), 0o755)
    start_kubelet(root, 77, program("kubelet", version))
    put(root / "fake/images", "")
    put(root / "fake/behaviour", "{}")
    put(root / "fake/releases", "".join(f"{minor} {etcd} {dns}\n" for minor, (etcd, dns) in RELEASES.items()))
    if role != "worker":
        for component in COMPONENTS:
            put(root / f"etc/kubernetes/manifests/{component}.yaml", manifest(component, version), 0o600)
        put(root / "etc/kubernetes/pki/apiserver.crt", (certs / "apiserver.crt").read_text())
        put(root / "etc/kubernetes/pki/ca.key", "KEY\n", 0o600)
        put(root / "etc/kubernetes/pki/etcd/server.crt", (certs / "apiserver.crt").read_text())
        put(root / "etc/kubernetes/pki/etcd/server.key", "KEY\n", 0o600)
        admin = base64.b64encode((certs / "admin.crt").read_bytes()).decode()
        put(
            root / "etc/kubernetes/admin.conf",
            kubeconfig("kubernetes-admin", "client-certificate-data: " + admin),
            0o600,
        )


def make_with_programs(root, *words):
    make(root, *words)
    chroot = pathlib.Path("bin/chroot")
    chroot.parent.mkdir(exist_ok=True)
    chroot.unlink(missing_ok=True)
    chroot.symlink_to(pathlib.Path(shutil.which("kmm-worker")).parent.parent / "fake/kubernetes-node")


def binaries(root, directory, version, stages=""):
    base = root / directory.lstrip("/") / version.lstrip("v")
    for name in ("kubeadm", "kubelet"):
        path = base / (f"stage{2 if name == 'kubelet' else 1}/usr/bin/{name}" if stages else name)
        put(path, program(name, version), 0o755)
        put(path.parent / f"{name}.sha256", hashlib.sha256(path.read_bytes()).hexdigest() + "\n")


def main():
    verb, root, *rest = sys.argv[1:]
    return {"make": make_with_programs, "binaries": binaries}[verb](pathlib.Path(root), *rest)


if __name__ == "__main__":
    sys.exit(main())
