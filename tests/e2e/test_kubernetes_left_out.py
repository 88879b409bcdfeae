# SPDX-License-Identifier: Apache-2.0
"""Workers that stay as they are: nobody reaches them, and the upgrade goes on without them."""
import re

from kubernetes_fleet import FROM, START, TARGET
from kubernetes_case import Case


class LeftOut(Case):
    size = (1, 2)
    versions = (FROM, "v1.35.1", TARGET)
    needs_tracing = False

    def setUp(self):
        super().setUp()
        self.set_ready("w2", "Unknown")
        (self.fleet.nodes / "faults").write_text("w2 * unreachable\n" * 1000)

    def set_ready(self, name, status):
        node = self.fleet.cluster / f"nodes/{name}.yaml"
        node.write_text(re.sub(r'(- type: Ready\s+status: )\S+', rf'\1"{status}"', node.read_text()))

    def test_a_dead_worker_stops_the_start_and_may_be_left_out(self):
        shown = self.must(*START, exit_code=10)
        for text in ("node-reach: ", "nodes-ready: not Ready: w2", "--leave-out"):
            self.assertIn(text, shown)
        self.assertIn("node cp1 is a control plane", self.must(*START, "--leave-out", "cp1", exit_code=64))
        self.assertIn("did you mean w2?", self.must(*START, "--leave-out", "w22", exit_code=66))
        self.assertIn("expected names of Nodes", self.must(*START, "--leave-out", "w2,", exit_code=64))
        self.assertIn("left out: w2\n", self.must(*START, "--leave-out", "w2", "--dry-run"))
        # w2 is not Ready and counts for nothing: at most one node may be away.
        self.must(*START, "--leave-out", "w2", "--max-unavailable", "1", exit_code=12)
        self.assertIn("w2: --leave-out", self.must("show"))
        self.assertEqual({node: self.fleet.kubelet(node) for node in ("cp1", "w1", "w2")},
                         {"cp1": TARGET, "w1": TARGET, "w2": FROM})
        self.assertEqual(self.fleet.log("w2"), [])
        # Once it is back, the same command brings it there, too.
        self.assertIn(
            f"once it can take part: kmm-upgrade start kubernetes --cluster {self.fleet.cluster} {TARGET} "
            "--switch binaries --no-etcd-snapshot --ignore-checks versions-uniform\n",
            self.must("show"),
        )
        (self.fleet.nodes / "faults").unlink()
        self.set_ready("w2", "True")
        self.must(*START, "--ignore-checks", "versions-uniform")
        self.require_complete()

    def test_it_stays_left_out_on_the_whole_way(self):
        file = self.work / "versions.yaml"
        file.write_text(f"versions: [{{version: {FROM}}}, {{version: v1.35.1}}, "
                        f"{{version: {TARGET}, upgrade_from: [v1.35.1]}}]\n")
        self.must(*START, "--versions", str(file), "--leave-out", "w2", exit_code=12)
        self.assertEqual({node: self.fleet.kubelet(node) for node in ("cp1", "w1", "w2")},
                         {"cp1": TARGET, "w1": TARGET, "w2": FROM})
        self.assertEqual(len(self.fleet.applies()), 2)

    def test_a_kubelet_that_would_be_too_old(self):
        node = self.fleet.cluster / "nodes/w2.yaml"
        node.write_text(node.read_text().replace(f"kubeletVersion: {FROM}", "kubeletVersion: v1.31.0"))
        shown = self.must(*START, "--leave-out", "w2", exit_code=10)
        self.assertIn(f"after control planes {TARGET}: w2, which is left out: kubelet v1.31.0 is more than 3 minors "
                      f"older than API server {TARGET}", shown)

    def test_a_node_that_comes_in_the_meantime_is_named(self):
        self.must(*START, "--leave-out", "w2", "--until", "upgraded-first-master", exit_code=11)
        node = self.fleet.cluster / "nodes/w1.yaml"
        (self.fleet.cluster / "nodes/w9.yaml").write_text(node.read_text().replace("w1", "w9"))
        self.assertIn(
            "note: node w9 came after the start and does not run v1.35.4: kmm-upgrade start kubernetes --cluster "
            f"{self.fleet.cluster} v1.35.4 --switch binaries --no-etcd-snapshot --ignore-checks "
            "versions-uniform\n",
            self.must("resume", exit_code=12),
        )


class Gone(Case):
    """Nodes that leave the cluster during the upgrade, and that do not answer."""
    needs_tracing = False

    def lose(self, name):
        (self.fleet.cluster / f"nodes/{name}.yaml").unlink()
        for pod in (self.fleet.cluster / "pods/kube-system").glob(f"*{name}*"):
            pod.unlink()
        (self.fleet.nodes / "faults").write_text(f"{name} * unreachable\n" * 1000)

    def asked(self, name):
        """How often the node was asked in vain."""
        return 1000 - (self.fleet.nodes / "faults").read_text().count(name)

    def test_a_control_plane_that_was_deleted_is_said_at_once(self):
        self.must(*START, "--until", "upgraded-first-master", exit_code=11)
        self.lose("cp2")
        shown = self.must("resume", exit_code=11)
        self.assertIn("there is no Node cp2, and it does not answer", shown)
        self.assertIn("kmm-upgrade abort, then start again with --ignore-checks versions-uniform", shown)
        self.assertLessEqual(self.asked("cp2"), 3)
        self.must("abort")
        self.must(*START, "--ignore-checks", "versions-uniform")
        self.assertEqual({node: self.fleet.kubelet(node) for node in ("cp1", "w1")}, {"cp1": TARGET, "w1": TARGET})

    def test_a_control_plane_that_was_deleted_before_its_kubelet(self):
        self.must(*START, "--until", "upgraded-second-master", exit_code=11)
        self.lose("cp2")
        shown = self.must("resume", exit_code=11)
        self.assertIn("kmm-upgrade abort, then start again with --ignore-checks versions-uniform", shown)
        self.assertNotIn("create nodes/", shown)

    def test_a_worker_that_was_deleted_is_gone_at_once(self):
        self.must(*START, "--until", "upgraded-second-master", exit_code=11)
        self.lose("w1")
        self.must("resume", exit_code=12)
        self.assertRegex(self.must("show"), "w1.*gone: there is no Node w1")
        self.assertLessEqual(self.asked("w1"), 3)
