# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade on three real nodes: the way forward, what stops it, and the way back."""
from lab.common import NODES
from lab.upgrading import MODULE, UpgradeCase

START = ("start", "module", MODULE, "--to", "v2")


class Forward(UpgradeCase):
    def test_dry_run_does_nothing_and_then_v1_to_v2(self):
        self.all_on("v1")
        self.edit("v2")
        before = self.outcome()
        text = self.upgrade(*START, "--dry-run")
        for node in NODES:
            self.assertIn(node, text)
        self.assertEqual(self.outcome(), before)
        self.upgrade(*START)
        self.all_on("v2")
        self.assertEqual(self.most_in_flight(), 1)
        self.assertIn("upgrade-complete", self.upgrade("show"))
        self.upgrade("delete")
        self.assertIn("v2", self.upgrade("history"))

    def test_canary_stops_after_one_node_and_pause_after_the_next(self):
        self.edit("v2")
        text = self.upgrade(*START, "--canary", "1", "--pause-after", "1", expect=11)
        self.assertIn("kmm-upgrade resume", text)
        self.assert_live({"node-a": "v2", "node-b": "v1", "node-c": "v1"})
        self.assertEqual(self.stops(), ["canary"])
        self.upgrade("resume", expect=11)
        self.assert_live({"node-a": "v2", "node-b": "v2", "node-c": "v1"})
        self.assertEqual(self.stops(), ["canary", "pause-after"])
        self.upgrade("resume")
        self.all_on("v2")

    def stops(self):
        """Why the run paused, each time."""
        return [event["reason"] for event in self.events() if event["event"] == "paused"]

    def test_one_named_node_then_the_others_at_once(self):
        self.edit("v2")
        self.upgrade(*START, "--node", "node-b")
        self.assert_live({"node-a": "v1", "node-b": "v2", "node-c": "v1"})
        self.upgrade("delete")
        self.upgrade(*START, "--max-unavailable", "2")
        self.all_on("v2")
        self.assertEqual(self.most_in_flight(), 2)

    def test_by_hand_step_after_step(self):
        self.edit("v2")
        self.upgrade(*START, "--manual", "--node", "node-a", expect=11)
        self.all_on("v1")
        for _ in range(4):
            before = len(self.steps_begun())
            self.upgrade("step", expect=None)
            self.assertLessEqual(len(self.steps_begun()), before + 1)
        self.upgrade("resume")
        self.assert_live({"node-a": "v2", "node-b": "v1"})

    def steps_begun(self):
        return [event for event in self.events() if event["event"] == "intent" and event.get("node")]


class Brought(UpgradeCase):
    """A node whose root is busybox and that has no kmm-worker: it comes along, through a real sshd."""

    def test_a_node_without_kmm_worker(self):
        aside = "/bin/kmm-worker.aside"
        self.fleet.shell("node-b", f"mv /bin/kmm-worker {aside}")
        self.addCleanup(self.fleet.shell, "node-b", f"mv {aside} /bin/kmm-worker; rm -rf /var/lib/kmm-tools")
        self.edit("v2")
        self.upgrade(*START, "--node", "node-a", "--node", "node-b")
        self.assert_live({"node-a": "v2", "node-b": "v2", "node-c": "v1"})
        self.assertRegex(
            self.fleet.shell("node-b", "ls -A /var/lib/kmm-tools"),
            r"^kmm-worker-[0-9a-f]{64}\.run\nworker-[0-9a-f]{64}\n$",
        )
        self.assertEqual(self.fleet.shell("node-a", "ls -A /var/lib"), self.fleet.shell("node-c", "ls -A /var/lib"))


class CannotLoad(UpgradeCase):
    """A v2 that could not be loaded is found before v1 is touched."""

    def found(self, tag, words):
        self.edit("v2", tag)
        text = self.upgrade(*START, expect=10)
        self.assertIn(words, text)
        self.all_on("v1")

    def test_no_image(self):
        self.found("v99", "v99")

    def test_another_kernels_vermagic(self):
        self.found("v2-badmagic", "vermagic")

    def test_an_unknown_symbol(self):
        self.found("v2-unknown", "kmm_symbol_nobody_exports")


class FailingInit(UpgradeCase):
    def test_stops_at_the_first_node_and_comes_back(self):
        self.edit("v2", "v2-failinit")
        self.upgrade(*START, expect=11)
        self.assert_live({"node-a": None, "node-b": "v1", "node-c": "v1"})
        shown = self.upgrade("show")
        for words in ("node-a", "module-refused", "ENODEV", "no device found", "kmm-upgrade retry ",
                      "kmm-upgrade abort"):
            self.assertIn(words, shown)
        text = self.upgrade("abort", "--rollback", "current")
        self.assertIn("node-a", text)
        self.assertIn("v1", text)
        self.all_on("v1")
        self.assertIn("upgrade-aborted", self.upgrade("show"))

    def test_retry_with_a_repaired_image(self):
        self.edit("v2", "v2-failinit")
        self.upgrade(*START, expect=11)
        self.edit("v2")
        self.upgrade("retry", "node-a")
        self.upgrade("resume")
        self.all_on("v2")

    def test_a_skipped_node_is_said(self):
        self.edit("v2", "v2-failinit")
        self.upgrade(*START, expect=11)
        self.edit("v2")
        self.upgrade("skip", "node-a", "--reason", "broken hardware")
        self.upgrade("resume", expect=12)
        self.assert_live({"node-a": None, "node-b": "v2", "node-c": "v2"})
        self.assertIn("broken hardware", self.upgrade("show"))
