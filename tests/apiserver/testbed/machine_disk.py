# SPDX-License-Identifier: Apache-2.0
"""The disk of a machine that is a node, with containerd and a kubelet, and the initrd by which it joins one cluster."""
import json
import pathlib
import shutil

from lab import guest
from lab.common import need, run

from . import binaries
from .binaries import attempt

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
OWN = HERE / "machine"
DISK_SIZE = "2G"
# Where the packages have their programs, and where the disk gets them.
PROGRAMS = {"usr/bin/containerd": "bin/containerd", "usr/bin/containerd-shim-runc-v2": "bin/containerd-shim-runc-v2",
            "usr/bin/crun": "bin/crun", **{f"usr/lib/cni/{name}": f"opt/cni/bin/{name}"
                                           for name in ("loopback", "macvlan", "host-local")}}


def packages(directory):
    """Debian's packages for a machine, unpacked below `directory`, once. Nothing is installed."""
    unpacked = directory / "unpacked"
    if unpacked.exists():
        return unpacked
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    script = f'. {ROOT}/scripts/lib/packages.sh && download_packages "$1" "${{packages_machine[@]}}"'
    attempt("downloading containerd and crun", ["bash", "-c", script, "packages", str(directory)])
    for package in sorted(directory.glob("*.deb")):
        run(["dpkg-deb", "-x", package, directory / "unpacking"])
    (directory / "unpacking").rename(unpacked)
    return unpacked


def build_disk(lab, build):
    """Writes LAB/disk.ext4; `build` is where packages may be kept. Returns the path."""
    unpacked = packages(build / "machine-packages")
    tree = guest.Tree(lab.path("disk"))
    for name in ("dev", "proc", "sys", "run", "tmp", "root", "var/tmp", "var/log", "var/lib", "etc/cni/net.d", "usr"):
        tree.directory(name)
    tree.file("bin/busybox", pathlib.Path(need("busybox")).read_bytes(), 0o755)
    for applet in run([need("busybox"), "--list"]).stdout.split():
        if applet != "busybox":
            tree.link(f"bin/{applet}", "busybox")
    for name in ("usr/bin", "usr/sbin"):
        tree.link(name, "../bin")
    tree.link("sbin", "bin")
    for source, target in PROGRAMS.items():
        guest.program(lab, tree, unpacked / source, target)
    guest.program(lab, tree, need("dropbear"), "opt/lab/dropbear")
    tree.file("bin/kubelet", binaries.kubelet().read_bytes(), 0o755)
    guest.kernel_modules(lab, tree, ("virtio_net",), ("overlay", "macvlan"))
    guest.accounts(tree)
    tree.file("etc/hosts", b"127.0.0.1 localhost\n")
    tree.file("etc/nsswitch.conf", b"hosts: files dns\n")
    tree.file("etc/resolv.conf", b"nameserver 10.0.2.3\n")
    tree.file("etc/os-release", b'ID=kmm-machine\nNAME="kmm machine"\nPRETTY_NAME="kmm machine"\n')
    tree.file("etc/inittab", (OWN / "inittab").read_bytes())
    tree.file("etc/cni/net.d/10-pods.conflist", (OWN / "cni.conflist").read_bytes())
    tree.file("etc/kubernetes/kubelet.yaml", (OWN / "kubelet.yaml").read_bytes())
    for name in ("rc", "serve"):
        tree.file(f"etc/{name}", (OWN / name).read_bytes(), 0o755)
    disk = lab.path("disk.ext4")
    disk.unlink(missing_ok=True)
    run(
        [
            need("mke2fs"),
            "-q",
            "-t",
            "ext4",
            "-m",
            "0",
            "-O",
            "^metadata_csum",
            "-J",
            "size=4",
            "-d",
            tree.root,
            disk,
            DISK_SIZE,
        ]
    )
    shutil.rmtree(tree.root)
    return disk


def kubeconfig(port, token):
    """How a node reaches the API server, which it sees as 10.0.2.2."""
    cluster = {"server": f"https://10.0.2.2:{port}", "certificate-authority": "/etc/kubernetes/ca.crt"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "node",
            "clusters": [{"name": "testbed", "cluster": cluster}],
            "users": [{"name": "node", "user": {"token": token}}],
            "contexts": [{"name": "node", "context": {"cluster": "testbed", "user": "node"}}],
        }
    ).encode()


def build_initrd(lab, cluster, registry):
    """Writes LAB/initrd.img with the identities of all nodes of the cluster; `registry` is HOST:PORT as a node names
    it. Returns the path."""
    archive = guest.Archive()
    for name in ("dev", "proc", "sys", "newroot"):
        archive.directory(name)
    archive.device("dev/console", 5, 1)
    archive.file("bin/busybox", pathlib.Path(need("busybox")).read_bytes(), 0o755)
    for applet in ("sh", "mount", "insmod", "cp", "switch_root"):
        archive.link(f"bin/{applet}", "busybox")
    boot = guest.kernel_modules(lab, archive, ("virtio_pci", "virtio_blk", "ext4"), ())
    archive.file("etc/lab-modules", "".join(path + "\n" for path in boot).encode())
    archive.file("init", (OWN / "init").read_bytes(), 0o755)
    state, secrets = cluster.state(), guest.keys(lab)
    archive.file("seed/etc/kubernetes/ca.crt", (cluster.dir / "pki/ca.crt").read_bytes())
    for name, token in state["real"].items():
        archive.file(f"seed/etc/kubernetes/{name}.conf", kubeconfig(state["port"], token), 0o600)
    archive.file(
        "seed/etc/containerd/config.toml",
        (OWN / "containerd.toml").read_bytes().replace(b"@REGISTRY@", registry.encode()),
    )
    archive.file(
        f"seed/etc/containerd/certs.d/{registry}/hosts.toml",
        f'server = "http://{registry}"\n[host."http://{registry}"]\n  capabilities = ["pull", "resolve"]\n'.encode(),
    )
    archive.directory("seed/root/.ssh", 0o700)
    archive.file("seed/root/.ssh/authorized_keys", (secrets / "id.pub").read_bytes(), 0o600)
    archive.file("seed/etc/dropbear/host", (secrets / "host").read_bytes(), 0o600)
    return guest.save(lab, archive)
