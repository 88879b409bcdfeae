# SPDX-License-Identifier: Apache-2.0
"""start kernel on a real API server: played nodes, which ssh reaches, reboot into another kernel, and their kubelets
say so."""
import json
import threading

from testbed.fleet import KERNEL, Fleet
from testbed.kubelet import MIRROR
from testbed.testing import ClusterCase
from test_recipe import DRIVER, FULL

RELEASE = "6.1.0-60-amd64"
RESOURCE = """apiVersion: sro.openshift.io/v1beta1
kind: SpecialResource
metadata: {name: kernel-gpu}
spec:
  namespace: kernel-gpu
  chart: {name: kernel-gpu, version: 0.0.1, repository: {name: local, url: "file:///nowhere"}}
  nodeSelector: {fleet: kernel}
"""
START = ("start", "kernel", "--to", RELEASE, "--install", "install-kernel $1", "--via", "ssh")


class Kubelets(threading.Thread):
    """Writes into the Nodes of a fleet what their machines run now, until `ended` is set; `silent`: those that do not
    register again."""

    def __init__(self, fleet):
        super().__init__(daemon=True)
        self.fleet, self.ended, self.silent = fleet, threading.Event(), set()
        self.unlabelled = set()  # nodes that the node feature discovery has not seen again
        self.written = {}

    def run(self):
        while not self.ended.wait(0.1):
            for name in self.fleet.names:
                runs = [(self.fleet.played / name / part).read_text().strip() for part in ("kernel", "boot-id")]
                if name in self.silent or "" in runs or self.written.get(name) == runs:
                    continue
                about = {"kernelVersion": runs[0], "bootID": runs[1]}
                self.fleet.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"nodeInfo": about}})
                if name not in self.unlabelled:
                    self.fleet.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {FULL: runs[0]}}})
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
        self.members = set()  # nodes with etcd

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

    def etcd(self, node, is_ready):
        """The static Pod of etcd on a node, which becomes a control plane."""
        path = f"/api/v1/namespaces/kube-system/pods/etcd-{node}"
        if node not in self.members:
            self.members.add(node)
            self.api.patch(f"/api/v1/nodes/{node}",
                           {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}})
            self.api.create({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"etcd-{node}", "namespace": "kube-system",
                             "annotations": {MIRROR: "1"}},
                "spec": {"nodeName": node, "hostNetwork": True,
                         "containers": [{"name": "etcd", "image": "registry.example/etcd"}]},
            })
            self.addCleanup(self.api.delete, path, gracePeriodSeconds=0)
        self.api.patch(path + "/status", {"status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
        }})

    def test_control_planes_wait_for_each_other(self):
        first, second, third = self.fleet.names
        for name in self.fleet.names:
            self.etcd(name, name != third)
        before = self.kernels()
        pace = ("--max-unavailable", "3", "--node-timeout", "3s")
        said = self.fleet.run(*START, *self.access, *pace, expect=11)
        self.assertIn(f"{first}: control-plane-unavailable", said)
        self.assertIn(f"static Pod kube-system/etcd-{third} is not Ready", said)
        self.assertEqual(before, self.kernels())
        self.assertEqual([[], [], []], [self.done(name) for name in self.fleet.names])
        self.etcd(third, True)
        said = self.fleet.run("retry", first)
        for name in self.fleet.names:
            self.assertEqual((RELEASE, RELEASE, False), self.kernels()[name])
            self.assertEqual(["install", "reboot"], self.done(name))
        ended = [said.index(f"{name} uncordoning -> done") for name in self.fleet.names]
        begun = [said.index(f"{name} pending -> checking") for name in self.fleet.names]
        self.assertEqual([True, True], [ended[0] < begun[1], ended[1] < begun[2]])

    def recipe(self):
        """The options of start recipe for a driver that has a copy for each kernel. It is removed at the end."""
        chart = self.fleet.root / "chart"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: kernel-gpu\nversion: 0.0.1\n")
        (chart / "templates/1000-driver.yaml").write_text(DRIVER)
        resource, facts = self.fleet.root / "gpu.yaml", self.fleet.root / "facts.yaml"
        resource.write_text(RESOURCE)
        facts.write_text(json.dumps({
            "clusterVersion": "4.17.4",
            "releases": [
                {"image": f"registry.example/release@sha256:{number:064}", "openShiftVersion": "4.17.4",
                 "driverToolkitImage": "registry.example/toolkit", "kernelFullVersion": kernel,
                 "rtKernelFullVersion": "", "operatingSystem": "9.4"}
                for number, kernel in enumerate((KERNEL, RELEASE))
            ],
        }))
        self.addCleanup(self.api.delete, "/api/v1/namespaces/kernel-gpu")
        self.addCleanup(self.api.delete, "/apis/sro.openshift.io/v1beta1/specialresources/kernel-gpu")
        for revision in range(1, 4):
            self.addCleanup(
                self.api.delete, f"/api/v1/namespaces/kube-system/secrets/kmm-upgrade.recipe.kernel-gpu.v{revision}"
            )
        return ("start", "recipe", "kernel-gpu", "-f", resource, "--chart", chart, "--facts", facts, *self.access)

    def served(self, name):
        """The kernels of the copies that have a Pod on the node."""
        return [
            pod["spec"]["nodeSelector"][FULL]
            for pod in self.api.items("/api/v1/namespaces/kernel-gpu/pods")
            if pod["spec"].get("nodeName") == name and "deletionTimestamp" not in pod["metadata"]
        ]

    def test_drivers_of_recipes_come_back_before_the_next_node(self):
        rolled_out = self.recipe()
        self.fleet.run(*rolled_out)
        self.fleet.run("delete")
        before = self.kernels()
        said = self.fleet.run(*START, *self.access, expect=10)
        self.assertIn("recipe-copy-missing", said)
        self.assertIn(f"kmm-upgrade start recipe kernel-gpu --next-kernel {RELEASE}", said)
        self.assertEqual(before, self.kernels())
        self.fleet.run(*rolled_out, "--next-kernel", RELEASE)
        self.fleet.run("delete")
        first, second, third = self.fleet.names
        self.assertEqual([KERNEL], self.served(first))
        self.assertIn("kernel-gpu/driver", self.fleet.run(*START, *self.access, "--dry-run"))

        # Nothing says what the second node runs: it gets no Pod.
        self.kubelets.unlabelled.add(second)
        said = self.fleet.run(*START, *self.access, "--node-timeout", "30s", expect=11)
        self.assertIn(f"{second}: driver-missing", said)
        self.assertIn(f"has no label {FULL}", self.fleet.run("show"))
        self.assertEqual([(RELEASE, RELEASE, False), (RELEASE, RELEASE, True), (KERNEL, KERNEL, False)],
                         [self.kernels()[name] for name in self.fleet.names])
        self.assertEqual(([RELEASE], [KERNEL]), (self.served(first), self.served(third)))
        self.api.patch(f"/api/v1/nodes/{second}", {"metadata": {"labels": {FULL: RELEASE}}})
        self.kubelets.unlabelled.clear()
        self.fleet.run("retry", second)
        for name in self.fleet.names:
            self.assertEqual((RELEASE, RELEASE, False), self.kernels()[name])
            self.assertEqual(["install", "reboot"], self.done(name))
            self.assertEqual([RELEASE], self.served(name))
        self.fleet.run("delete")
