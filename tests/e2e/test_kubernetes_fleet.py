# SPDX-License-Identifier: Apache-2.0
"""The cluster of the tests of kmm-upgrade start kubernetes behaves as a kubeadm cluster does."""

import case
from fleet import scratch
from kubernetes_fleet import COMPONENTS, FROM, TARGET, KubernetesFleet

OLD = {**{component: FROM for component in COMPONENTS}, "etcd": "3.6.5-0"}
NEW = {**{component: TARGET for component in COMPONENTS}, "etcd": "3.6.6-0"}
SWITCH = ("--target", TARGET, "--switch", "binaries")


class Fleet(case.CopyCase):
    @classmethod
    def setUpClass(cls):
        cls._where = scratch("template")
        cls._template = KubernetesFleet.build(case.TOOLS, cls._where / "w", 3, 2)

    def must(self, node, *words):
        done = self.fleet.ssh(node, *words)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def apply(self):
        self.must("cp1", "control-plane", "--first", *SWITCH)

    def lost(self, done):
        self.assertEqual(done.returncode, 255, done.stderr)
        self.assertIn("closed by remote host", done.stderr)

    def test_it_can_be_upgraded(self):
        self.assertEqual(self.fleet.states(), {FROM: "active", TARGET: "available"})
        for words in (("check", "kubernetes", TARGET), ("health",)):
            done = self.fleet.run(*words)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertNotIn("[FAIL]", done.stdout)
            self.assertIn("[OK]", done.stdout)

    def test_objects_follow_the_nodes(self):
        fleet = self.fleet
        before = fleet.lease("cp1")
        self.assertEqual(fleet.control_plane("cp1"), OLD)
        self.apply()
        self.assertEqual(
            (fleet.control_plane("cp1"), fleet.control_plane("cp2"), fleet.configured()), (NEW, OLD, TARGET)
        )
        self.assertEqual(fleet.addons(), ["v1.12.1", FROM])
        self.assertEqual(fleet.states(), {FROM: "partial", TARGET: "partial"})
        self.assertGreater(fleet.lease("cp1"), before)
        for node in ("cp2", "cp3"):
            self.must(node, "control-plane", *SWITCH)
        self.assertEqual(fleet.addons(), ["v1.13.1", TARGET])
        for node in fleet.names():
            self.assertEqual(fleet.kubelet(node), FROM)
            self.must(node, "kubelet", *SWITCH)
            self.assertEqual(fleet.kubelet(node), TARGET)
        self.assertEqual(fleet.states(), {TARGET: "active"})
        self.assertEqual(fleet.log("w1")[0], "kubeadm upgrade node")
        self.assertEqual(len(fleet.applies()), 1)

    def test_another_control_plane_cannot_go_first(self):
        done = self.fleet.ssh("cp2", "control-plane", *SWITCH)
        self.assertEqual(done.returncode, 17, done.stderr)
        self.assertEqual(self.fleet.control_plane("cp2"), OLD)

    def test_connections_are_lost(self):
        fleet, step = self.fleet, ("control-plane", "--first", *SWITCH)
        fleet.fault("cp1", "control-plane unreachable")
        done = fleet.ssh("cp1", *step)
        self.assertEqual((done.returncode, done.stdout), (255, ""))
        self.assertIn("No route to host", done.stderr)
        fleet.fault("*", "#2 cut-before")
        self.lost(fleet.ssh("cp1", *step))
        self.assertEqual(fleet.applies(), [])
        fleet.fault("cp1", "* cut-in")
        self.lost(fleet.ssh("cp1", *step))
        # What was begun goes on.
        self.must("cp1", *step)
        self.assertEqual((len(fleet.applies()), fleet.control_plane("cp1"), fleet.configured()), (1, NEW, TARGET))
        fleet.fault("cp1", "kubelet cut-after")
        self.lost(fleet.ssh("cp1", "kubelet", *SWITCH))
        self.assertEqual(fleet.kubelet("cp1"), TARGET)
        self.assertEqual((fleet.nodes / "faults").read_text(), "")

    def test_nodes_are_rebooted(self):
        fleet = self.fleet
        fleet.fault("cp1", "control-plane reboot-in")
        self.lost(fleet.ssh("cp1", "control-plane", "--first", *SWITCH))
        self.assertTrue(fleet.boot("cp1").endswith("6"), fleet.boot("cp1"))
        fleet.behave("w1", reboot_in="systemctl restart kubelet")
        self.lost(fleet.ssh("w1", "kubelet", *SWITCH))
        # The new kubelet was in place.
        self.assertEqual((fleet.boot("w1"), fleet.kubelet("w1")), (fleet.boot("cp1"), TARGET))
        self.must("w1", "kubelet", *SWITCH)

    def test_kubeadm_dies_between_two_renames(self):
        for way in ({"die_at": 3}, {"die_at": 3, "all": True}, {"reboot_at": 3}):
            with self.subTest(way=way):
                fleet = self._template.copy(self.work / "-".join(way))
                fleet.behave("cp1", **way)
                done = fleet.ssh("cp1", "control-plane", "--first", *SWITCH)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertEqual(set(fleet.control_plane("cp1")), {"etcd", "kube-controller-manager", "kube-scheduler"})
                self.assertEqual(fleet.configured(), FROM)
                fleet.behave("cp1")
                for words in (("repair",), ("control-plane", "--first", *SWITCH)):
                    done = fleet.ssh("cp1", *words)
                    self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual((fleet.control_plane("cp1"), fleet.configured()), (NEW, TARGET))

    def test_kubeadm_dies_before_its_config_maps(self):
        self.fleet.behave("cp1", late=True)
        done = self.fleet.ssh("cp1", "control-plane", "--first", *SWITCH)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual((self.fleet.control_plane("cp1"), self.fleet.configured()), (NEW, FROM))
