# SPDX-License-Identifier: Apache-2.0
"""The guest: an initramfs of busybox, dropbear, a few kernel modules and kmm-worker. Needs no privileges to make."""
import lzma
import os
import pathlib
import shutil
import stat

from . import kmods
from .common import HERE, LabError, need, run

# What the network needs, then what tests need: an in-tree module to remove, and in-tree modules that depend on others.
BOOT_MODULES = ("virtio_pci", "virtio_net")
TEST_MODULES = ("dummy", "bridge")
# v1 of kmm_hello in every guest: the tests put a node back with one insmod.
FIRST_VERSION = "/opt/lab/kmm_hello-v1.ko"
# The second look after a load comes sooner than after 2 s; what the default is, is a test of its own.
WORKER_CONFIG = b"kmm-worker:\n  verify-after: 200ms\n"


class Archive:
    """A newc cpio archive in memory (format: Linux Documentation/driver-api/early-userspace/buffer-format.rst)."""

    def __init__(self):
        self.parts, self.seen, self.number = [], set(), 1

    def _entry(self, name, mode, data=b"", device=(0, 0)):
        raw = name.encode() + b"\0"
        fields = (self.number, mode, 0, 0, 1, 0, len(data), 0, 0, device[0], device[1], len(raw), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + raw
        self.number += 1
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def directory(self, name, mode=0o755):
        name = name.strip("/")
        if not name or name in self.seen:
            return
        self.directory(name.rpartition("/")[0])
        self.seen.add(name)
        self._entry(name, stat.S_IFDIR | mode)

    def file(self, name, data, mode=0o644):
        name = name.strip("/")
        if name in self.seen:
            return
        self.directory(name.rpartition("/")[0])
        self.seen.add(name)
        self._entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        name = name.strip("/")
        if name not in self.seen:
            self.directory(name.rpartition("/")[0])
            self.seen.add(name)
            self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def device(self, name, major, minor):
        self._entry(name, stat.S_IFCHR | 0o600, b"", (major, minor))

    def data(self):
        self._entry("TRAILER!!!", 0)
        out = b"".join(self.parts)
        return out + b"\0" * (-len(out) % 512)


class Tree:
    """A directory with the interface of Archive."""

    def __init__(self, root):
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)

    def directory(self, name, mode=0o755):
        (self.root / name).mkdir(parents=True, exist_ok=True)
        (self.root / name).chmod(mode)

    def file(self, name, data, mode=0o644):
        path = self.root / name.strip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)

    def link(self, name, target):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def loaded_later():
    """Libraries that our commands load when they need them first, so that ldd does not name them."""
    known = [line.split() for line in run([need("ldconfig"), "-p"]).stdout.splitlines()]
    paths = []
    for name, package in (("libcurl.so.4", "libcurl4"), ("libarchive.so.13", "libarchive13")):
        found = [words[-1] for words in known if words[:1] == [name]]
        if not found:
            raise LabError(f"there is no {name}: install {package}")
        paths.append(found[0])
    return paths


def program(lab, archive, path, where, later=()):
    """A dynamic program without its symbols, with its interpreter and libraries at the paths where this host has
    them."""
    small = lab.path("stripped")
    run([need("strip"), "-o", small, path])
    archive.file(where, small.read_bytes(), 0o755)
    small.unlink()
    for library in later:
        archive.file(library, pathlib.Path(library).read_bytes(), 0o755)
    for line in run([need("ldd"), path, *later]).stdout.splitlines():
        words = line.split()
        if "not found" in line:
            raise LabError(f"{path}: {line.strip()}")
        library = next((w for w in words if w.startswith("/") and not w.endswith(":")), None)
        if library:
            archive.file(library, pathlib.Path(library).read_bytes(), 0o755)


def kernel_modules(lab, archive, boot_names=BOOT_MODULES, more=TEST_MODULES):
    """Copies the modules with their dependencies and an index; returns the boot ones in load order."""
    root = lab.path("root", ".")
    shutil.rmtree(root, ignore_errors=True)
    base = f"lib/modules/{lab.kernel}"
    boot = []
    for name in boot_names + more:
        shown = run([need("modprobe"), "-S", lab.kernel, "--show-depends", name]).stdout
        for path in [line.split()[1] for line in shown.splitlines() if line.startswith("insmod ")]:
            copy = root / path.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            if name in boot_names and path not in boot:
                boot.append(path)
    for index in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copyfile(f"/{base}/{index}", root / base / index)
    run([need("depmod"), "-b", root, lab.kernel])
    for path in sorted((root / base).rglob("*")):
        if path.is_file():
            archive.file(str(path.relative_to(root)), path.read_bytes())
    return boot


def kernel(lab):
    """The kernel to boot: Debian's own, taken out of its compressed image where that is one of xz (an emulated
    processor needs as long to decompress it as to boot it), else the image as it is."""
    packed = pathlib.Path(f"/boot/vmlinuz-{lab.kernel}")
    image = lab.path("vmlinux")
    if image.exists() and image.stat().st_mtime > packed.stat().st_mtime:
        return image
    data = packed.read_bytes()
    start = data.find(b"\xfd7zXZ\0")
    if start < 0:
        return packed
    try:
        plain = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data[start:])
    except lzma.LZMAError:
        return packed
    if not plain.startswith(b"\x7fELF") or b"PVH" not in plain and b"Xen\0" not in plain:
        return packed
    temporary = image.with_suffix(".new")
    temporary.write_bytes(plain)
    os.replace(temporary, image)
    return image


def keys(lab):
    """The guests' host key and the user's key, made once."""
    base = lab.path("keys", ".")
    if not (base / "id").exists():
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir(mode=0o700)
        run([need("dropbearkey"), "-t", "ed25519", "-f", base / "host"])
        run([need("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "kmm-lab", "-f", base / "id"])
    return base


def accounts(tree):
    """Root and its shell, for dropbear."""
    tree.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    tree.file("etc/group", b"root:x:0:\n")
    tree.file("etc/shells", b"/bin/sh\n")


def save(lab, archive):
    """Writes LAB/initrd.img; returns the path."""
    image = lab.path("initrd.img")
    temporary = image.with_suffix(".new")
    temporary.write_bytes(archive.data())
    os.replace(temporary, image)
    return image


def system(lab, tree, worker):
    """What every guest has but for its kernel: busybox, dropbear with its keys, kmm-worker, who is who."""
    for name in ("dev", "proc", "sys", "run", "tmp", "var/tmp", "var/lib", "var/log", "root/.ssh"):
        tree.directory(name, 0o700 if name.startswith("root") else 0o755)
    busybox = need("busybox")
    tree.file("bin/busybox", pathlib.Path(busybox).read_bytes(), 0o755)
    for applet in run([busybox, "--list"]).stdout.split():
        if applet != "busybox":
            tree.link(f"bin/{applet}", "busybox")
    for name in ("bin", "sbin"):
        tree.link(f"usr/{name}", "../bin")
    tree.link("sbin", "bin")
    program(lab, tree, need("dropbear"), "opt/lab/dropbear")
    if worker:
        program(lab, tree, worker, "bin/kmm-worker", loaded_later())
    secrets = keys(lab)
    tree.file("etc/dropbear/host", (secrets / "host").read_bytes(), 0o600)
    tree.file("root/.ssh/authorized_keys", (secrets / "id.pub").read_bytes(), 0o600)
    tree.file("etc/kmm-tools/config.yaml", WORKER_CONFIG)
    accounts(tree)
    tree.file("etc/hosts", b"127.0.0.1 localhost\n10.0.2.2 registry\n")
    tree.file("etc/nsswitch.conf", b"hosts: files\n")
    tree.file("etc/os-release", b'ID=kmm-lab\nNAME="kmm lab"\nPRETTY_NAME="kmm lab node"\n')
    tree.file("etc/inittab", (HERE / "guest/inittab").read_bytes())
    tree.file("etc/rc", (HERE / "guest/rc").read_bytes(), 0o755)
    tree.link("init", "bin/busybox")


def build_initrd(lab, worker=None, ca_file=None):
    """Writes LAB/initrd.img; `worker` is the kmm-worker to put into the guests. Returns the path."""
    archive = Archive()
    archive.device("dev/console", 5, 1)
    system(lab, archive, worker)
    program(lab, archive, need("kmod"), "opt/lab/kmod")
    for name in ("modprobe", "depmod"):
        archive.link(f"opt/lab/{name}", "kmod")
    boot = kernel_modules(lab, archive)
    archive.file("etc/lab-modules", "".join(path + "\n" for path in boot).encode())
    archive.file("etc/lab-volatile", b"/run\n/tmp\n/var/tmp\n/var/lib\n")
    archive.file(FIRST_VERSION, kmods.build(lab)["v1"]["kmm_hello"].read_bytes())
    if ca_file:
        archive.file("etc/ssl/certs/ca-certificates.crt", pathlib.Path(ca_file).read_bytes())
    return save(lab, archive)
