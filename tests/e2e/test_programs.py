# SPDX-License-Identifier: Apache-2.0
"""Programs that options name are root's if root runs them."""
import os

from case import E2eCase


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
