# SPDX-License-Identifier: Apache-2.0
"""Where an upgrade is to stop, and who remembers it."""
from kubernetes_fleet import FROM, START
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
        self.must("resume")
        self.require_complete()

    def test_it_stops_before_what_follows_a_stage_that_is_left_out(self):
        shown = self.must(*START, "--until", "upgraded-networking", exit_code=11)
        self.assertIn("upgraded-networking is left out of this upgrade", shown)
        self.assertEqual(self.run_states()[-1], "upgraded-first-master")
        self.must("resume")
        self.require_complete()
