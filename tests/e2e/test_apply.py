# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade apply with several Modules on the same nodes."""
import shutil
import unittest

import case
from fleet import Fleet, scratch

NODES = ("node-a", "node-b")


class Apply(unittest.TestCase):
    def setUp(self):
        work = scratch("apply")
        self.addCleanup(shutil.rmtree, work, ignore_errors=True)
        self.fleet = Fleet.bare(case.TOOLS, work / "w", NODES)

    def apply(self, exit_code=0):
        done = self.fleet.run("apply")
        self.assertEqual(done.returncode, exit_code, done.stdout)
        return done.stdout

    def assert_settled(self):
        """A second apply asks the nodes and changes nothing."""
        calls = len(self.fleet.calls())
        self.assertIn("nothing to do", self.apply())
        self.assertEqual({call[2] for call in self.fleet.calls()[calls:]}, {"status"})

    def test_a_restart_in_one_run_is_made_good_in_the_others(self):
        for name in ("first", "second", "third"):
            self.fleet.write_module(name, "v1")
        self.apply()
        for name in ("first", "second"):
            self.fleet.write_module(name, "v2")
        # The third is not touched, the first is done before: both are lost with the restart.
        self.fleet.fault("node-b", "unload slow 0")
        self.fleet.fault("node-b", "unload reboot-after")
        said = self.apply()
        for node in NODES:
            self.assertEqual(self.fleet.loaded(node), ["first", "second", "third"], said)
        self.assertIn("node-b was restarted and is looked at again", said)
        self.assert_settled()

    def test_a_node_is_left_in_the_order_of_needs_while_another_comes(self):
        self.fleet.write_module("base", "v1")
        self.fleet.write_module("upper", "v1", needs="drivers/base")
        for node in NODES:
            (self.fleet.nodes / node / "needs").write_text("upper base\n")
        labels = {node: self.fleet.cluster / "nodes" / f"{node}.yaml" for node in NODES}
        labels["node-b"].write_text(labels["node-b"].read_text().replace("role: worker", "role: none"))
        self.apply()
        self.assertEqual([self.fleet.loaded(node) for node in NODES], [["base", "upper"], []])
        labels["node-a"].write_text(labels["node-a"].read_text().replace("role: worker", "role: none"))
        labels["node-b"].write_text(labels["node-b"].read_text().replace("role: none", "role: worker"))
        said = self.apply()
        self.assertEqual([self.fleet.loaded(node) for node in NODES], [[], ["base", "upper"]], said)
        self.assert_settled()
