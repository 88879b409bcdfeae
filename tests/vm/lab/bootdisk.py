# SPDX-License-Identifier: Apache-2.0
"""Disks from which a node boots as machines do: the BIOS starts GRUB, GRUB the kernel that is its default, and the
kernel goes on from the disk, which keeps what is written. Needs no privileges to make."""
import pathlib
import shutil
import struct
import tarfile

from . import guest, kmods, ociimage
from .common import HERE, Lab, kernel_release, need, run
from .nodes import COMMAND_LINE

GRUB = pathlib.Path("/usr/lib/grub/i386-pc")
# The only partition, in sectors of 512 bytes; GRUB lies before it.
START, SECTORS = 2048, 256 * 2048
NAME = "kmm-kernels"  # of the image with a module for each kernel
BOOTS = "GRUB boots"
CONFIG = """serial --unit=0
terminal_output serial
terminal_input serial
load_env
set default="$saved_entry"
set timeout=0
"""
# GRUB takes an id that begins with a digit for a number.
ENTRY = """menuentry "Debian GNU/Linux, with Linux {release}" --id gnulinux-{release} {{
  echo "{boots} {release}"
  linux /boot/vmlinuz-{release} {words}
  initrd /boot/initrd.img-{release}
}}
"""


class Kernels:
    """Two of Debian's kernels, for each of which a node can have its package, and the Module a build."""

    def __init__(self, lab):
        self.lab = lab
        self.base = lab.path("kernels", ".")
        self.releases = (lab.kernel, kernel_release(cloud=True))
        self.labs = {release: Lab(self.base / release, release) for release in self.releases}

    def other(self, release):
        return self.releases[1 - self.releases.index(release)]

    def module(self, release):
        """kmm_hello for that kernel, with an identity of its own; built when it is asked for first."""
        where = self.labs[release].dir / "module"
        if not (where / "kmm_hello.ko").exists():
            shutil.rmtree(where, ignore_errors=True)
            kmods.make(self.labs[release], where, {"kmm_hello": ("kmm_hello.c", {"@KMM_HELLO_VERSION@": release})})
        return where / "kmm_hello.ko"

    def publish(self, registry):
        """Pushes NAME:v1; returns the image as a node names it."""
        shutil.rmtree(self.base / NAME, ignore_errors=True)
        layout = ociimage.Layout(self.base / NAME)
        plain = ociimage.tar_layer(
            {f"opt/lib/modules/{r}/kmm_hello.ko": self.module(r).read_bytes() for r in self.releases}
        )
        layout.tag(layout.image([(ociimage.compress(plain), plain)]), "v1")
        registry.push(layout.dir, "v1", NAME)
        return registry.reference(NAME, "v1")

    def _package(self, release):
        """A directory with what the package of a kernel has: the kernel as Debian compresses it, an initrd, modules."""
        own = self.labs[release]
        tree = guest.Tree(own.dir / "package")
        archive = guest.Archive()
        for name in ("dev", "newroot"):
            archive.directory(name)
        archive.device("dev/console", 5, 1)
        archive.file("bin/busybox", pathlib.Path(need("busybox")).read_bytes(), 0o755)
        for applet in ("sh", "mount", "umount", "insmod", "chown", "switch_root"):
            archive.link(f"bin/{applet}", "busybox")
        boot = guest.kernel_modules(own, archive, ("virtio_pci", "virtio_blk", "ext4", *guest.BOOT_MODULES), ())
        archive.file("etc/lab-modules", "".join(path + "\n" for path in boot).encode())
        archive.file("init", (HERE / "guest/disk-init").read_bytes(), 0o755)
        tree.file(f"boot/vmlinuz-{release}", pathlib.Path(f"/boot/vmlinuz-{release}").read_bytes())
        tree.file(f"boot/initrd.img-{release}", archive.data())
        guest.kernel_modules(own, tree, guest.BOOT_MODULES, ())
        packed = own.dir / "package.tar"
        with tarfile.open(packed, "w") as tar:
            for path in sorted(tree.root.iterdir()):
                tar.add(path, arcname=path.name)
        return tree.root, packed

    def disks(self, names, worker):
        """Makes the disk of each node, with the first kernel installed; returns {name: path}."""
        first = self.releases[0]
        packages = {release: self._package(release) for release in self.releases}
        tree = guest.Tree(self.base / "root")
        guest.system(self.lab, tree, worker)
        guest.program(self.lab, tree, need("grub-editenv"), "bin/grub-editenv")
        for release, (_, packed) in packages.items():
            tree.file(f"opt/packages/{release}.tar", packed.read_bytes())
        shutil.copytree(packages[first][0], tree.root, dirs_exist_ok=True)
        tree.file("etc/lab-modules", b"")
        tree.file("etc/lab-volatile", b"/run\n/tmp\n/var/tmp\n")
        tree.file("bin/install-kernel", (HERE / "guest/install-kernel").read_bytes(), 0o755)
        tree.directory("boot/grub")
        environment = tree.root / "boot/grub/grubenv"
        run([need("grub-editenv"), environment, "create"])
        run([need("grub-editenv"), environment, "set", f"saved_entry=gnulinux-{first}"])
        core = self.base / "core.img"
        run([need("grub-mkimage"), "-O", "i386-pc", "-d", GRUB, "-p", "(hd0,msdos1)/boot/grub", "-o", core,
             "biosdisk", "part_msdos", "ext2", "normal", "linux", "loadenv", "serial", "terminal", "echo"])
        return {name: self._disk(name, tree, core) for name in names}

    def _disk(self, name, tree, core):
        words = COMMAND_LINE.format(name=name)
        entries = [ENTRY.format(release=release, words=words, boots=BOOTS) for release in self.releases]
        tree.file("boot/grub/grub.cfg", (CONFIG + "".join(entries)).encode())
        disk = self.base / f"{name}.disk"
        disk.unlink(missing_ok=True)
        # Without a journal, which GRUB does not read.
        run([need("mke2fs"), "-q", "-t", "ext4", "-m", "0", "-O", "^has_journal,^metadata_csum,^64bit", "-E",
             f"offset={START * 512}", "-d", tree.root, disk, f"{SECTORS // 2}k"])
        # GRUB's first sector leaves the end to the table of partitions, and reads the others, which follow it.
        sector = bytearray((GRUB / "boot.img").read_bytes()[:512])
        partition = struct.pack("<B3sB3sII", 0x80, b"\0\2\0", 0x83, b"\xff\xff\xff", START, SECTORS)
        sector[446:510] = partition.ljust(64, b"\0")
        with open(disk, "r+b") as file:
            file.write(bytes(sector) + core.read_bytes())
        return disk
