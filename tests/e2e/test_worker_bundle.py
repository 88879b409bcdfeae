# SPDX-License-Identifier: Apache-2.0
"""The bundle of kmm-worker in roots with nothing of Debian 12: one made by hand that has busybox alone, and with
KMM_FULL=1 those of other releases of Debian."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import worker_case  # noqa: E402

MODULE = {"name": "kmm_demo", "file": "extra/kmm_demo.ko"}
FIRMWARE = "opt/firmware/demo.bin"
OWNER = 4711  # who has nothing but a home directory
NOBODY_NAMED = 0xFFFFFFFF
# Owner, the user OWNER, group, mask, others: a POSIX access control list as the kernel has it.
RIGHTS = ((1, 7, NOBODY_NAMED), (2, 7, OWNER), (4, 5, NOBODY_NAMED), (16, 7, NOBODY_NAMED), (32, 5, NOBODY_NAMED))
OTHERS_LIST = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *right) for right in RIGHTS)


class Roots:
    """The tests of each root; `make` fills self.root, with a shell and what the bundle needs."""

    marks_lists = True  # ls shows which files have an access control list

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can enter a root directory")
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="kmm-roots-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.scratch.chmod(0o755)
        cls.root = cls.scratch / "root"
        cls.make()
        cls.bundle = cls.root / "kmm-worker.run"
        own = f"{case.TOOLS.bin}/kmm-worker"
        subprocess.run([own, "bundle", "--out", cls.bundle], check=True, stdout=subprocess.DEVNULL)
        served = worker_case.make_image({"modules": [MODULE], "files": {FIRMWARE: "bytes"}})
        cls.registry = worker_case.registry(served)
        for name in ("proc", "dev", "tmp", "home"):
            (cls.root / name).mkdir(exist_ok=True)
        (cls.root / "tmp").chmod(0o1777)
        os.chown(cls.root / "home", OWNER, OWNER)
        worker_case.make_host(cls.root / "host", {"depmod": True})
        cls.mount("-t", "proc", "proc", cls.root / "proc")
        cls.mount("--bind", "/dev", cls.root / "dev")

    @classmethod
    def mount(cls, *words):
        subprocess.run(["mount", *words], check=True)
        cls.addClassCleanup(subprocess.run, ["umount", words[-1]], check=True)

    def worker(self, *words, user=0, expect=0, **environment):
        """What kmm-worker prints in the root, with an environment of these variables alone."""
        done = subprocess.run(
            ["chroot", f"--userspec={user}:{user}", self.root, "/kmm-worker.run", *words],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_it_starts_and_is_the_program_it_was_made_of(self):
        own = subprocess.run([f"{case.TOOLS.bin}/kmm-worker", "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(self.worker("--version"), own.stdout)
        self.worker("bundle", "--out", "/again.run", "-q")
        self.assertEqual((self.root / "again.run").read_bytes(), self.bundle.read_bytes())

    def test_it_is_unpacked_once_for_root_alone(self):
        self.worker("--version")
        kept = self.root / "var/lib/kmm-tools"
        self.assertEqual(kept.stat().st_mode & 0o777, 0o700)
        before = [(path.name, path.stat().st_ino) for path in kept.iterdir()]
        self.assertEqual(len(before), 1)
        self.worker("--version")
        self.assertEqual([(path.name, path.stat().st_ino) for path in kept.iterdir()], before)

    def test_root_runs_nothing_that_another_user_can_change(self):
        self.worker("--version", KMM_BUNDLE_DIR="/tmp")  # where nobody else can replace it
        kept = next((self.root / "tmp").glob("worker-*"))
        self.worker("--version", KMM_BUNDLE_DIR="/tmp")
        os.chown(kept, OWNER, OWNER)
        self.assertIn(f"change /tmp/{kept.name},", self.worker("--version", KMM_BUNDLE_DIR="/tmp", expect=74))
        shutil.rmtree(kept)
        (self.root / "group").mkdir()
        (self.root / "group").chmod(0o775)
        self.worker("--version", KMM_BUNDLE_DIR="/group", expect=0 if self.marks_lists else 74)
        os.setxattr(self.root / "group", "system.posix_acl_access", OTHERS_LIST)
        self.assertIn("change /group,", self.worker("--version", KMM_BUNDLE_DIR="/group", expect=74))
        (self.root / "open").mkdir()
        (self.root / "open").chmod(0o777)
        self.assertIn("change /open,", self.worker("--version", KMM_BUNDLE_DIR="/open/a/b", expect=74))

    def test_it_pulls_from_a_registry_by_name(self):
        image = f"localhost:{self.registry.rpartition(':')[2]}/drivers/demo:v2"
        words = ("--kernel", "all", "--image-firmware", "/opt/firmware", "--insecure")
        self.worker("pull", image, "--out", "/tmp/pulled", *words)
        self.assertEqual(
            (self.root / f"tmp/pulled/opt/lib/modules/{worker_case.RELEASE}/{MODULE['file']}").read_bytes(),
            worker_case.make_ko(MODULE),
        )
        self.assertEqual((self.root / "tmp/pulled" / FIRMWARE).read_text(), "bytes")

    def test_it_checks_a_module_with_the_tree_of_a_host(self):
        image = f"{self.registry}/drivers/demo:v2"
        words = ("check", "--image", image, "--insecure", "--module")
        self.assertIn("passed", self.worker(*words, MODULE["name"], KMM_HOST_ROOT="/host"))
        self.assertIn("absent", self.worker(*words, "absent", KMM_HOST_ROOT="/host", expect=66))

    def test_another_user_unpacks_below_the_home_directory(self):
        self.worker("explain", "ENOEXEC", user=OWNER, HOME="/home")
        kept = self.root / "home/.cache/kmm-tools"
        self.assertEqual([path.stat().st_uid for path in kept.iterdir()], [OWNER])
        text = self.worker("explain", "ENOEXEC", user=OWNER, expect=74)
        self.assertIn("HOME is not set", text)


class ByHand(Roots, unittest.TestCase):
    """Busybox under its own name and that of the shell, and no library."""

    marks_lists = False

    @classmethod
    def make(cls):
        (cls.root / "bin").mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), cls.root / "bin/busybox")
        (cls.root / "bin/sh").symlink_to("busybox")


class Released(Roots):
    @classmethod
    def make(cls):
        made = subprocess.run(
            ["debootstrap", "--variant=minbase", cls.release, cls.root],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise AssertionError(made.stdout)


class Bullseye(Released, unittest.TestCase):
    """Debian 11: glibc 2.31, OpenSSL 1.1."""

    release = "bullseye"


class Trixie(Released, unittest.TestCase):
    """Debian 13: later libraries than those of the bundle."""

    release = "trixie"
