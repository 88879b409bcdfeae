# SPDX-License-Identifier: Apache-2.0
"""Makes ./host as SUSE's packages leave it: a kernel with a driver package, and one whose links weak-modules2 made."""
import gzip
import os
import pathlib
import sys

sys.path.insert(0, os.environ["KMM_SUPPORT"])
from worker_case import make_ko  # noqa: E402

OLD, NEW, LATER = "6.4.0-150600.21-default", "6.4.0-150600.23-default", "6.4.0-150600.30-default"
TAIL = " SMP preempt mod_unload modversions "
MODULES = pathlib.Path("host/lib/modules")


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def ko(name, release, **more):
    crcs = {"module_layout": "0x11", "_printk": "0x22"}
    return make_ko({"name": name, "vermagic": release + TAIL, "crcs": crcs, "undefined": ["_printk"], **more})


for each in (OLD, NEW, LATER):
    lines = "0x11\tmodule_layout\tvmlinux\tEXPORT_SYMBOL\t\n0x22\t_printk\tvmlinux\tEXPORT_SYMBOL\t\n"
    put(MODULES / each / "symvers.gz", gzip.compress(lines.encode(), mtime=0))
    put(MODULES / each / "kernel/fs/ext4.ko", ko("ext4", each))
put(MODULES / OLD / "updates/nic/nic.ko", ko("nic", OLD))
put(MODULES / OLD / "extra/disk.ko.xz", ko("disk", OLD, compress="xz"))
put(MODULES / OLD / "updates/same.ko", ko("same_a", OLD))
put(MODULES / OLD / "extra/same.ko", ko("same_b", OLD))
weak = MODULES / NEW / "weak-updates"
(weak / "updates/nic").mkdir(parents=True)
(weak / "extra").mkdir()
(weak / "updates/nic/nic.ko").symlink_to(f"/lib/modules/{OLD}/updates/nic/nic.ko")
(weak / "extra/disk.ko.xz").symlink_to(f"/lib/modules/{OLD}/extra/disk.ko.xz")
(weak / "updates/gone.ko").symlink_to(f"/lib/modules/{OLD}/updates/gone.ko")
