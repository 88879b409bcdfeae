# SPDX-License-Identifier: Apache-2.0
"""start kernel on a real API server: played nodes, which ssh reaches, reboot into another kernel, and their kubelets
say so."""
import json
import threading

from testbed.fleet import KERNEL, Fleet
from testbed.testing import ClusterCase

RELEASE = "6.1.0-60-amd64"
START = ("start", "kernel", "--to", RELEASE, "--install", "install-kernel $1", "--via", "ssh")


class Kubelets(threading.Thread):
    """Writes into the Nodes of a fleet what their machines run now, until `ended` is set; `silent`: those that do not
    register again."""

    def __init__(self, fleet):
        super().__init__(daemon=True)
        self.fleet, self.ended, self.silent = fleet, threading.Event(), set()
        self.written = {}

    def run(self):
        while not self.ended.wait(0.1):
            for name in self.fleet.names:
                runs = [(self.fleet.played / name / part).read_text().strip() for part in ("kernel", "boot-id")]
                if name in self.silent or "" in runs or self.written.get(name) == runs:
                    continue
                about = {"kernelVersion": runs[0], "bootID": runs[1]}
                self.fleet.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"nodeInfo": about}})
                self.written[name] = runs


class Kernel(ClusterCase):
    def setUp(self):
        super().setUp()
        self.fleet = Fleet(self, "kernel")
        self.kubelets = Kubelets(self.fleet)
        self.kubelets.start()
        self.addCleanup(self.kubelets.join)
        self.addCleanup(self.kubelets.ended.set)
        self.fleet.install()
        self.access = ("--kubeconfig", self.fleet.access())

    def kernels(self):
        """{node: (what its machine runs, what its Node says, whether it is cordoned)}"""
        found = {}
        for name in self.fleet.names:
            node = self.api.get(f"/api/v1/nodes/{name}")
            machine = (self.fleet.played / name / "kernel").read_text().strip()
            found[name] = (
                machine, node["status"]["nodeInfo"]["kernelVersion"], node["spec"].get("unschedulable", False)
            )
        return found

    def done(self, name):
        path = self.fleet.played / name / "done"
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []

    def pod(self, name, node):
        """A Pod of an application, which the drain evicts."""
        self.api.create({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.fleet.namespace,
                         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "1",
                                              "controller": True}]},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "registry.example/app"}]},
        })

    def test_walk(self):
        before = self.kernels()
        self.assertIn(f"reboot, wait for a new boot of {RELEASE}", self.fleet.run(*START, *self.access, "--dry-run"))
        self.assertEqual(before, self.kernels())
        self.fleet.run(*START, *self.access, "--canary", "1", expect=11)
        first, *others = self.fleet.names
        self.assertEqual((RELEASE, RELEASE, False), self.kernels()[first])
        for name in others:
            self.assertEqual((KERNEL, KERNEL, False), self.kernels()[name])
        self.fleet.run("resume")
        for name in self.fleet.names:
            self.assertEqual((RELEASE, RELEASE, False), self.kernels()[name])
            self.assertEqual(["install", "reboot"], self.done(name))
            self.assertIsNotNone(self.fleet.live()[name])
        self.assertEqual([], self.api.warnings)

    def test_a_module_without_the_kernel_is_refused(self):
        loader = {"version": "v1", "modprobe": {"moduleName": "kernel"},
                  "kernelMappings": [{"literal": KERNEL, "containerImage": "registry.example/kernel:v1"}]}
        self.fleet.edit("v1", {"moduleLoader": {"container": loader}})
        before = self.kernels()
        self.assertIn("no-kernel-mapping", self.fleet.run(*START, *self.access, expect=10))
        self.assertEqual(before, self.kernels())
        self.assertFalse(self.fleet.recorded())

    def test_a_node_that_does_not_register_again_stops_the_run(self):
        first, second, third = self.fleet.names
        self.kubelets.silent.add(second)
        said = self.fleet.run(*START, *self.access, "--node-timeout", "3s", expect=11)
        self.assertIn(f"{second}: node-differs", said)
        states = json.loads(self.fleet.run("show", "-o", "json"))
        self.assertNotEqual("upgrade-complete", states["state"])
        self.assertEqual((RELEASE, RELEASE, False), self.kernels()[first])
        self.assertEqual((RELEASE, KERNEL, True), self.kernels()[second])
        self.assertEqual((KERNEL, KERNEL, False), self.kernels()[third])
        self.kubelets.silent.clear()
        self.fleet.run("retry", second)
        for name in self.fleet.names:
            self.assertEqual((RELEASE, RELEASE, False), self.kernels()[name])
            self.assertEqual(["install", "reboot"], self.done(name))
