# SPDX-License-Identifier: Apache-2.0
"""What an upgrade of Kubernetes asks of the API server, of nodes and of its record for one node is the same in a
cluster of any size. tests/bench/kubernetes_fleet_bench.py measures it."""

import pathlib
import re
import shutil
import sys
import unittest

import case
from fleet import scratch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import instant_nodes  # noqa: E402

# Of all objects of a kind: a label or a field says which otherwise.
WHOLE = re.compile(r"^/api/v1/(nodes|pods)\?(?!.*(Selector|watch)=)")
FRESH_SECONDS = 5  # KubernetesActor::unavailable


class Scale(unittest.TestCase):
    def walk(self, nodes, *options, via="ssh"):
        work = pathlib.Path(scratch("scale"))
        self.addCleanup(shutil.rmtree, work, ignore_errors=True)
        walk = instant_nodes.walk(work / "w", case.TOOLS.bin, case.TOOLS.fake, 1, nodes - 1, via, *options)
        self.assertEqual(walk.code, 0, walk.said)
        return walk

    def whole_lists(self, walk):
        return [each.path for each in walk.requests if WHOLE.search(each.path)]

    def test_a_node_costs_the_same_in_any_fleet(self):
        few, many = self.walk(5), self.walk(20)
        expected = instant_nodes.of_node(few, "w2")
        self.assertEqual(expected["steps"], ["prepare", "cordon", "drain", "kubelet", "validate", "uncordon"])
        self.assertLess(len(expected["requests"]), 20, expected)
        for number in range(2, 19):  # the last one has one Pod more
            self.assertEqual(instant_nodes.of_node(many, f"w{number}"), expected)
        self.assertEqual(self.whole_lists(many), self.whole_lists(few))
        self.assertLess(many.record / 20, few.record / 5)

    def test_nodes_that_others_made_unavailable_count(self):
        walk = self.walk(20, "--max-unavailable", "3")
        lists = [each for each in self.whole_lists(walk) if "/nodes" in each]
        # Two before the first node; then they are looked at again as time goes by, and not for each node.
        self.assertLessEqual(len(lists), 4 + walk.seconds / FRESH_SECONDS, lists)

    def test_by_pods(self):
        few, many = self.walk(5, via="self"), self.walk(20, via="self")
        expected = instant_nodes.of_node(few, "w2")["calls"]
        for number in range(2, 19):
            self.assertEqual(instant_nodes.of_node(many, f"w{number}")["calls"], expected)
        self.assertEqual(self.whole_lists(many), self.whole_lists(few))
        for walk in (few, many):
            made = [each for each in walk.requests if each.verb == "POST" and re.search(r"/pods\?", each.path)]
            self.assertEqual(len(made), len(walk.calls))


if __name__ == "__main__":
    unittest.main()
