# SPDX-License-Identifier: Apache-2.0
"""Makes ./host: three kernels, and modules for the first one and the second."""
import gzip
import os
import pathlib
import sys

sys.path.insert(0, os.environ["KMM_SUPPORT"])
from worker_case import make_ko  # noqa: E402

OLD, MIDDLE, NEW = "5.14.0-9.el9.x86_64", "5.14.0-70.el9.x86_64", "5.14.0-427.el9.x86_64"
TAIL = " SMP preempt mod_unload modversions "
KERNEL = {"module_layout": "0x11", "_printk": "0x22", "kmalloc": "0x33"}
MODULES = pathlib.Path("host/lib/modules")


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def ko(name, release, crcs, **more):
    crcs = {"module_layout": "0x11", **crcs}
    undefined = [symbol for symbol in crcs if symbol != "module_layout"]
    return make_ko({"name": name, "vermagic": release + TAIL, "crcs": crcs, "undefined": undefined, **more})


def symvers(release, changes):
    lines = [f"{crc}\t{symbol}\tvmlinux\tEXPORT_SYMBOL\t" for symbol, crc in {**KERNEL, **changes}.items()]
    put(MODULES / release / "symvers.gz", gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    put(MODULES / release / "kernel/fs/ext4.ko", ko("ext4", release, {}))


for each, changed in ((OLD, {}), (MIDDLE, {}), (NEW, {"kmalloc": "0x34"})):
    symvers(each, changed)
extra = MODULES / OLD / "extra"
put(
    extra / "kmm/base.ko",
    ko("base", OLD, {"_printk": "0x22"}, exported=["base_call"], export_crcs={"base_call": "0x44"}),
)
put(extra / "kmm/user.ko.xz", ko("user", OLD, {"base_call": "0x44"}, depends="base", compress="xz"))
put(extra / "kmm/mem.ko", ko("mem", OLD, {"kmalloc": "0x33"}, exported=["mem_call"], export_crcs={"mem_call": "0x55"}))
put(extra / "kmm/needs_mem.ko", ko("needs_mem", OLD, {"mem_call": "0x55"}, depends="mem"))
put(extra / "plain.ko", make_ko({"name": "plain", "vermagic": OLD + TAIL, "undefined": ["_printk"]}))
put(extra / "flags.ko", ko("flags", OLD, {"_printk": "0x22"}).replace(b" SMP preempt", b" SMP voluntr"))
put(extra / "broken.ko", b"no module")
put(
    MODULES / MIDDLE / "extra/kmm/base.ko",
    ko("base", MIDDLE, {"_printk": "0x22"}, exported=["base_call"], export_crcs={"base_call": "0x44"}),
)
put(pathlib.Path("host/usr/sbin/depmod"), b"")
put(pathlib.Path(f"host/boot/initramfs-{NEW}.img"), b"")
(MODULES / "6.0.0-bare").mkdir()
(MODULES / "-no-kernel").mkdir()
weak = MODULES / NEW / "weak-updates"
(weak / "kmm").mkdir(parents=True)
(weak / "gone").mkdir()
(weak / "kmm/mem.ko").symlink_to(f"/lib/modules/{OLD}/extra/kmm/mem.ko")  # did fit before kmalloc changed
(weak / "kmm/base.ko").symlink_to(f"/lib/modules/{OLD}/extra/kmm/base.ko")  # a later build is there
(weak / "gone/gone.ko").symlink_to(f"/lib/modules/{OLD}/extra/gone/gone.ko")
(weak / "own.ko").symlink_to("/opt/own.ko")
# As written by packages that know /usr/lib only; a link at another path than those that are made; a link to a module.
(weak / "usr.ko").symlink_to(f"/usr/lib/modules/{OLD}/extra/usr.ko")
(weak / "kmm/user.ko.xz").symlink_to(f"/usr/lib/modules/{OLD}/extra/kmm/user.ko.xz")
(weak / "extra").mkdir()
(weak / "extra/base.ko").symlink_to(f"/lib/modules/{MIDDLE}/extra/kmm/base.ko")
(extra / "linked.ko").symlink_to("kmm/base.ko")
put(MODULES / "6.0.0-damaged/symvers.gz", b"\x1f\x8b\x08no gzip")
