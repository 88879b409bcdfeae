# SPDX-License-Identifier: Apache-2.0
"""Drains on a live cluster: with --evict-users and ResourceClaims who uses the module's devices leaves and everybody
else stays; Pods that do not end are named until the time limit."""

import shutil

from testbed.fleet import Fleet
from testbed.kubelet import DEAD
from testbed.proxy import Proxy
from testbed.testing import ClusterCase

RESOURCES = "/apis/resource.k8s.io/v1"
DRIVER, OURS, THEIRS = "hello.example.com", "hello.example.com", "other.example.com"


class Evicted(ClusterCase):
    def device_class(self, name):
        self.api.apply({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
                        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{name}'"}}]}})
        self.addCleanup(self.api.delete, f"{RESOURCES}/deviceclasses/{name}")

    def claim(self, namespace, name, asked, driver=None, node=None, kind="ResourceClaim"):
        """A claim, or a template for claims, of a device of class `asked`; with a device that `driver` gave."""
        path = f"{RESOURCES}/namespaces/{namespace}/{kind.lower()}s/{name}"
        spec = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": asked}}]}}
        self.api.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": name, "namespace": namespace},
                "spec": spec if kind == "ResourceClaim" else {"spec": spec},
            }
        )
        self.addCleanup(self.free, path)
        if driver:
            result = {"request": "one", "driver": driver, "pool": node, "device": "device-0"}
            self.api.patch(f"{path}/status", {"status": {"allocation": {"devices": {"results": [result]}}}})

    def pod(self, namespace, name, node, grace=0, **claim):
        """A Pod on a node, with a claim."""
        spec = {
            "nodeName": node,
            "terminationGracePeriodSeconds": grace,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/user:1",
                    "resources": {"claims": [{"name": "device"}]} if claim else {},
                }
            ],
        }
        if claim:
            spec["resourceClaims"] = [{"name": "device", **claim}]
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
        self.api.request("POST", f"/api/v1/namespaces/{namespace}/pods", made)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        self.wait(f"{path} to run", lambda: self.api.get(path)["status"].get("phase") == "Running")

    def running(self, namespace):
        """{name: uid} of the Pods that are not on their way out."""
        return {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in self.api.items(f"/api/v1/namespaces/{namespace}/pods")
            if "deletionTimestamp" not in pod["metadata"]
        }

    def test_users_of_a_dra_driver(self):
        fleet = Fleet(self, "claims", count=2, via="self")
        more = {"dra": {"driverName": DRIVER, "container": {"image": "registry.example/dra:1"}, "deviceClasses": [
            {"name": OURS, "selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}]}}
        fleet.edit("v1", more)
        self.addCleanup(self.api.delete, f"{RESOURCES}/deviceclasses/{OURS}")
        fleet.run(*fleet.start("v1"), "--kubeconfig", fleet.access())
        shutil.rmtree(fleet.state)

        first, second = fleet.names
        work, others = self.namespace("claims-work"), self.namespace("claims-others")
        self.device_class(THEIRS)
        self.claim(work, "asks", OURS)
        self.claim(work, "has", THEIRS, DRIVER, first)
        self.claim(work, "theirs", THEIRS, THEIRS, first)
        self.claim(work, "made", OURS, kind="ResourceClaimTemplate")
        # Of the same name as one that counts, in another namespace.
        self.claim(others, "asks", THEIRS, THEIRS, first)
        self.pod(work, "asks", first, resourceClaimName="asks")
        self.pod(work, "has", first, resourceClaimName="has")
        self.pod(work, "made", second, resourceClaimTemplateName="made")
        self.pod(work, "theirs", first, resourceClaimName="theirs")
        self.pod(work, "plain", second)
        self.pod(others, "asks", first, resourceClaimName="asks")
        path = f"/api/v1/namespaces/{work}/pods/made"
        made = self.wait("a claim from the template", lambda: self.api.get(path)["status"].get("resourceClaimStatuses"))
        self.assertTrue(made[0]["resourceClaimName"].startswith("made-device-"), made)
        kept = {name: uid for name, uid in self.running(work).items() if name in ("theirs", "plain")}, self.running(
            others
        )

        fleet.edit("v2", more)
        start = (*fleet.start("v2"), "--evict-users")
        # Nobody would make these Pods again: not without a word.
        said = fleet.run(*start, "--kubeconfig", fleet.access(), expect=10)
        for name in ("asks", "has", "made"):
            self.assertIn(f"{work}/{name}", said)
        for name in (f"{work}/theirs", f"{work}/plain", f"{others}/asks"):
            self.assertNotIn(name, said)
        with Proxy(self.cluster) as proxy:
            fleet.run(*start, "--force", "--kubeconfig", fleet.access(proxy.port))
            evicted = [r.resource.split("/")[-2] for r in proxy.records if r.resource.endswith("/eviction")]
            self.assertEqual([], [str(record) for record in proxy.changing() if record.status >= 300])
        self.assertEqual((sorted(evicted[:2]), evicted[2:]), (["asks", "has"], ["made"]))
        self.assertEqual((self.running(work), self.running(others)), kept)
        for name in fleet.names:
            node = self.api.get(f"/api/v1/nodes/{name}")
            self.assertFalse(node["spec"].get("unschedulable", False))
            self.assertEqual(
                node["metadata"]["labels"][f"kmm.node.kubernetes.io/{fleet.namespace}.{fleet.name}.version.ready"], "v2"
            )


class Stuck(ClusterCase):
    """A Pod that was evicted and stays: which one, why, since when and how long the drain waits."""
    pod = Evicted.pod

    def drained(self, name):
        """A node whose only Pod is `work/stays`: (the fleet, the path of the Pod)."""
        fleet = Fleet(self, name, count=1)
        fleet.install("v1")
        fleet.edit("v2")
        work = self.namespace(f"{name}-work")
        path = f"/api/v1/namespaces/{work}/pods/stays"
        self.addCleanup(self.api.delete, path, gracePeriodSeconds=0)
        self.addCleanup(self.free, path)
        self.pod(work, "stays", fleet.names[0], grace=1)
        return fleet, path

    def refused(self, fleet, why, hint):
        """The drain waits, says for whom, and fails the node at its time limit; nothing was unloaded."""
        before = fleet.live()
        said = fleet.run(
            *fleet.start("v2"), "--drain", "--force", "--node-timeout", "12s", "--kubeconfig", fleet.access(), expect=11
        )
        pod = rf"{fleet.name}-work/stays \(Terminating since \d+s{why}\)"
        self.assertRegex(said, rf"waits for 1 Pod to end: {pod}; \d\.\ds left of 12\.0s")
        self.assertRegex(said, rf"drain-timeout: 1 Pod still there after 12\.0s: {pod}; uncordoned")
        self.assertIn(hint, " ".join(fleet.run("show").split()))
        self.assertFalse(self.api.get(f"/api/v1/nodes/{fleet.names[0]}")["spec"].get("unschedulable", False))
        self.assertEqual(fleet.live(), before)

    def retried(self, fleet):
        before = fleet.live()
        fleet.run("retry", fleet.names[0], "--kubeconfig", fleet.access())
        self.assertNotEqual(fleet.live(), before)

    def test_finalizer(self):
        fleet, path = self.drained("kept")
        self.api.patch(path, {"metadata": {"finalizers": ["example.com/keep"]}})
        self.refused(fleet, ", finalizer example.com/keep",
                     "kubectl get pod -n kept-work stays -o yaml shows who keeps it: finalizer example.com/keep")
        self.api.patch(path, {"metadata": {"finalizers": []}})
        self.retried(fleet)

    def test_dead_kubelet(self):
        fleet, path = self.drained("dead")
        node = fleet.names[0]
        self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {DEAD: "yes"}}})
        self.api.patch(path, {"metadata": {"labels": {"seen": "dead"}}})
        self.refused(
            fleet,
            "",
            f"the kubelet of {node} does not end dead-work/stays: look at its log; if the node will not start "
            "again: kubectl delete pod -n dead-work stays --force",
        )
        self.api.delete(path, gracePeriodSeconds=0)
        self.retried(fleet)
