# SPDX-License-Identifier: Apache-2.0
"""Programs that options name are root's if root runs them."""
import os
import shutil
import subprocess
import unittest

import case
from case import E2eCase
from fleet import scratch


class Programs(E2eCase):
    needs_tracing = False
    nodes = ("node-a",)

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        super().setUp()
        self.program = self.work / "program"
        self.program.write_text(f"#!/bin/sh\nid -u >> '{self.work}/ran'\n")
        self.program.chmod(0o755)

    def test_of_somebody_else(self):
        os.chown(self.program, 65534, 65534)
        for option in ("--check", "--on-event"):
            done = self.fleet.start(option, str(self.program))
            self.assertEqual(done.returncode, 77, done.stdout)
            self.assertIn("untrusted-file", done.stdout)
        self.assertEqual(self.fleet.calls(), [])

    def test_given_away_after_the_start(self):
        for option in ("--check", "--on-event"):
            world = self.fleet.copy(self.work / option)
            ran = self.work / "ran"
            os.chown(self.program, 0, 0)
            self.assertEqual(world.start("--manual", option, str(self.program)).returncode, 11)
            ran.unlink(missing_ok=True)
            os.chown(self.program, 65534, 65534)
            done = world.run("resume")
            self.assertIn("expected one that only root may change", done.stdout)
            self.assertEqual(done.returncode, {"--check": 11, "--on-event": 0}[option], done.stdout)
            self.assertFalse(ran.exists())


class WorkerPrograms(unittest.TestCase):
    """What kmm-worker and the programs that it runs find in PATH."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.top = scratch("path")
        self.addCleanup(shutil.rmtree, self.top)
        self.host = self.top / "host"
        kernel = self.host / "proc/sys/kernel"
        (kernel / "random").mkdir(parents=True)
        (kernel / "random/boot_id").write_text("5f0e7d0c-0f0d-4a43-8b3c-d1a4e3a0c9f1\n")
        (kernel / "osrelease").write_text("6.1.0-kmm\n")
        for directory in ("usr/bin", "etc/kubernetes", "var/lib/kubelet"):
            (self.host / directory).mkdir(parents=True)
        self.others, self.own = self.top / "others", self.top / "own"
        for directory in (self.others, self.own):
            directory.mkdir()
            for name in ("chroot", "podman"):
                self.put(directory / name)
        os.chown(self.others, 65534, 65534)

    def put(self, program):
        program.write_text(f"#!/bin/sh\necho {program.parent.name} $PATH >> '{self.top}/ran'\necho v1.34.4\n")
        program.chmod(0o755)

    def run_worker(self, *words, path=None):
        path = path or f"{self.others}:{self.own}:{os.environ['PATH']}"
        (self.top / "ran").unlink(missing_ok=True)
        done = subprocess.run(
            [f"{case.TOOLS.bin}/kmm-worker", *words],
            env={**os.environ, "PATH": path, "KMM_HOST_ROOT": str(self.host)},
            capture_output=True,
            text=True,
            check=False,
        )
        ran = self.top / "ran"
        return done, ran.read_text() if ran.exists() else ""

    def test_directory_of_somebody_else(self):
        done, ran = self.run_worker("node", "install", "--to", "9.9.9", "--command", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"in a directory of PATH, {self.others}: {self.others} belongs to user 65534", done.stderr)
        self.assertIn(f"own {self.own}:", ran)
        self.assertNotIn(str(self.others), ran)
        _, ran = self.run_worker("kubernetes", "facts")
        self.assertIn(f"own {self.own}:", ran)
        self.assertNotIn(str(self.others), ran)

    def test_program_of_somebody_else(self):
        os.chown(self.own / "chroot", 65534, 65534)
        self.put(self.host / "usr/bin/systemctl")
        install = ("node", "install", "--to", "9.9.9", "--command", "true")
        reboot = ("node", "reboot", "--boot-id", "5f0e7d0c-0f0d-4a43-8b3c-d1a4e3a0c9f1")
        for words in (install, reboot):
            done, ran = self.run_worker(*words)
            self.assertEqual((done.returncode, ran), (77, ""), done.stderr)
            self.assertIn("untrusted-file", done.stderr)
        os.chown(self.own / "chroot", 0, 0)
        os.chown(self.host / "usr/bin/systemctl", 65534, 65534)
        done, ran = self.run_worker(*reboot)
        self.assertEqual((done.returncode, ran), (77, ""), done.stderr)

    def write_instance(self, **more):
        (self.host / "etc/kvc").mkdir(parents=True, exist_ok=True)
        values = {"KVC_CONTAINER_RUNTIME": "podman", "KMOD_NAMES": "demo", "KMOD_SOFTWARE_VERSION": "1", **more}
        text = "".join(f"{key}={value}\n" for key, value in values.items())
        (self.host / "etc/kvc/demo.conf").write_text(text)

    def test_runtime(self):
        self.write_instance(KMOD_CONTAINER_BUILD_CONTEXT="https://git.example/demo")
        os.chown(self.own / "podman", 65534, 65534)
        path = f"{self.own}:{os.environ['PATH']}"
        for words in (("build",), ("wrapper", "--", "tool")):
            done, ran = self.run_worker("run", "demo", *words, path=path)
            self.assertEqual((done.returncode, ran), (77, ""), done.stderr)
        os.chown(self.own / "podman", 0, 0)
        done, ran = self.run_worker("run", "demo", "wrapper", "--", "tool", path=f"{path}:{self.others}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"own {self.own}:", ran)
        self.assertNotIn(str(self.others), ran)

    def test_what_an_image_is_built_of(self):
        (self.own / "podman").write_text(f"#!/bin/sh\necho $1 >> '{self.top}/ran'\n[ $1 != image ]\n")
        context = self.top / "context"
        context.mkdir()
        (context / "Dockerfile").write_text("FROM scratch\n")
        file = self.top / "Dockerfile"
        file.write_text("FROM scratch\n")
        path = f"{self.own}:{os.environ['PATH']}"
        self.write_instance(KMOD_CONTAINER_BUILD_CONTEXT=context, KMOD_CONTAINER_BUILD_FILE=file)
        done, ran = self.run_worker("run", "demo", "build", path=path)
        self.assertEqual((done.returncode, ran), (0, "image\nbuild\n"), done.stderr)
        for changed in (context, context / "Dockerfile", file):
            os.chown(changed, 65534, 65534)
            done, ran = self.run_worker("run", "demo", "build", path=path)
            self.assertEqual((done.returncode, ran), (77, "image\n"), done.stderr)
            self.assertIn("untrusted-file", done.stderr)
            os.chown(changed, 0, 0)
        os.chown(context / "Dockerfile", 65534, 65534)
        self.write_instance(KMOD_CONTAINER_BUILD_CONTEXT="https://git.example/demo", KMOD_CONTAINER_BUILD_FILE="f")
        done, ran = self.run_worker("run", "demo", "build", path=path)
        self.assertEqual((done.returncode, ran), (0, "image\nbuild\n"), done.stderr)
