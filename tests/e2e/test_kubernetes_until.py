# SPDX-License-Identifier: Apache-2.0
"""Where an upgrade is to stop, and who remembers it."""
import subprocess

from kubernetes_fleet import FROM, START, TARGET
from kubernetes_case import Case


class Until(Case):
    needs_tracing = False

    def test_where_to_stop_is_kept(self):
        fleet = self.fleet
        (fleet.nodes / "faults").write_text("cp1 control-plane unreachable\n" * 100)
        self.must(*START, "--node-timeout", "2s", "--until", "upgraded-first-master", exit_code=11)
        self.assertEqual(self.run_states()[-1], "upgrading-first-master-failed")
        self.assertIn("until      upgraded-first-master", self.must("show"))
        (fleet.nodes / "faults").unlink()
        # A state that the upgrade has left, and one in which it never rests.
        self.assertIn(
            "downloaded-images is behind it", self.must("resume", "--until", "downloaded-images", exit_code=64)
        )
        self.assertIn(
            "expected one of upgraded-first-master", self.must("retry", "cp1", "--until", "upgraded", exit_code=64)
        )
        self.must("retry", "cp1", exit_code=11)
        self.assertEqual(self.run_states()[-1], "upgraded-first-master")
        self.assertNotIn("the upgrade stops there", self.must("show"))
        self.must("resume", "--until", "upgraded-second-master", exit_code=11)
        self.assertEqual((self.run_states()[-1], fleet.kubelet("cp1")), ("upgraded-second-master", FROM))
        self.assertIn("node w1 is prepared, and cp1 comes before it\n", self.must("step", "w1", exit_code=11))
        self.must("resume")
        self.require_complete()

    def test_it_stops_before_what_follows_a_stage_that_is_left_out(self):
        shown = self.must(*START, "--until", "upgraded-networking", exit_code=11)
        self.assertIn("upgraded-networking is left out of this upgrade", shown)
        self.assertEqual(self.run_states()[-1], "upgraded-first-master")
        self.must("resume")
        self.require_complete()


class Between(Case):
    """A way of two runs, that was stopped after the first one."""
    size = (1, 1)
    versions = (FROM, "v1.35.1", TARGET)
    needs_tracing = False

    def setUp(self):
        super().setUp()
        file = self.work / "versions.yaml"
        file.write_text(f"versions: [{{version: {FROM}}}, {{version: v1.35.1}}, "
                        f"{{version: {TARGET}, upgrade_from: [v1.35.1]}}]\n")
        self.options = ("--versions", str(file))
        self.must(*START, *self.options, "--until", "upgraded-kubelets", exit_code=11)
        self.must("step")

    def test_the_upgrade_is_not_over(self):
        framed = self.must("show", "--stx")
        self.assertRegex(framed, rf"\| to_version +\| {TARGET} +\|\n\| state +\| upgraded-first-master +\|\n")
        self.assertRegex(self.must("versions", *self.options), rf"{TARGET} +True +unavailable\n")
        done = subprocess.run([*self.fleet.command("guard"), "--", "true"], env=self.fleet.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("hint:    kmm-upgrade resume, or: kmm-upgrade delete\n", done.stderr)
        self.must("delete")
        self.assertRegex(self.must("versions", *self.options), rf"{TARGET} +False +unavailable\n")

    def test_the_second_run_began_where_the_way_did(self):
        self.must("resume", "--until", "upgraded-first-master", exit_code=11)
        self.assertRegex(self.must("show", "--stx"),
                         rf"\| from_version +\| {FROM} +\|\n\| to_version +\| {TARGET} +\|\n")

    def test_the_same_command_goes_on(self):
        self.must(*START, *self.options, "--or-resume")
        self.require_complete()
