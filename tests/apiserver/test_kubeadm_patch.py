# SPDX-License-Identifier: Apache-2.0
"""A real cluster goes back to a lower patch of its minor: the same sources with another version written into them, so
that every program says the version that it was asked for; see testbed/kubeadm.py."""
import itertools
import re
import unittest

from test_kubeadm import OLD, SWITCH, LabCase
from testbed import binaries

LOWER = f"v{binaries.PATCH.version}"


class Downgraded(LabCase):
    """Kubelets first, then control planes; and forward again."""
    NODES = ("cp1", "cp2", "w1")
    PROGRAMS = (binaries.KUBEADM[0], binaries.PATCH)

    def start(self, version, *words, downgrade_to=(LOWER,)):
        file = self.dir / "versions.yaml"
        lower = ", ".join(downgrade_to)
        file.write_text(f"versions:\n- version: {LOWER}\n- version: {OLD}\n  downgrade_to: [{lower}]\n")
        return ("start", "kubernetes", version, *SWITCH, "--versions", str(file), *words)

    def order(self, told):
        """What was done to nodes, in order: kubelets or control planes, and the nodes, sorted: which of the control
        planes is the last one is decided by etcd."""
        done = "upgrading-control-plane -> control-plane-upgraded|upgrading-kubelet -> kubelet-upgraded"
        found = re.findall(rf" (\w+) ({done})", told)
        return [(part, sorted(node for node, _ in group)) for part, group in itertools.groupby(
            found, lambda step: "kubelets" if "kubelet" in step[1] else "planes")]

    def test_1_refused_unless_listed(self):
        told = self.tool(*self.start(LOWER, downgrade_to=()), expect=10)
        self.assertIn(f"{LOWER} is below {OLD}, which runs and does not list it in downgrade_to", told)
        for node in self.lab.nodes.values():
            self.assertFalse(node.sees("/var/lib/kmm-node/backups/*"))

    def test_2_down(self):
        self.assertRegex(self.tool(*self.start(LOWER, "--dry-run")),
                         rf"(?ms)^kubelets {LOWER}$.*^control planes {LOWER}$")
        self.assertEqual(self.order(self.tool(*self.start(LOWER))),
                         [("kubelets", ["cp1", "cp2", "w1"]), ("planes", ["cp1", "cp2"])])
        self.assert_runs(LOWER)

    def test_3_up(self):
        self.assertEqual(self.order(self.tool(*self.start(OLD))),
                         [("planes", ["cp1", "cp2"]), ("kubelets", ["cp1", "cp2", "w1"])])
        self.assert_runs(OLD)

    def test_4_down_killed(self):
        met = self.killed_until_done(self.start(LOWER), 8, (2, 25), 11)
        self.assertGreater(met, 0)
        self.assert_runs(LOWER)


if __name__ == "__main__":
    unittest.main()
