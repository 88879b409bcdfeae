# SPDX-License-Identifier: Apache-2.0
"""The testbed itself: what the other tests rely on."""
import time

from testbed import etcd, nodes
from testbed.client import ApiError
from testbed.kubelet import PLAY
from testbed.testing import ClusterCase


def pod(name, node, annotations=None):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "registry.example/c:1"}],
        },
    }


class Testbed(ClusterCase):
    def setUp(self):
        super().setUp()
        self.names = [f"bed-{i}" for i in range(10)]
        nodes.create(self.api, [nodes.node(name, labels={"bed": "yes"}) for name in self.names])
        for name in self.names:
            self.addCleanup(self.api.delete, f"/api/v1/nodes/{name}")

    def ended(self, name):
        path = f"/api/v1/namespaces/default/pods/{name}"
        self.addCleanup(self.api.delete, path)
        phase = self.wait(
            f"pod {name} to end",
            lambda: (s := self.api.get(path)["status"]).get("phase") in ("Succeeded", "Failed") and s,
        )
        return phase["phase"], phase["containerStatuses"][0]["state"]["terminated"]

    def test_versions(self):
        self.assertEqual(self.api.get("/version")["gitVersion"], "v1.34.4")
        self.assertEqual(
            self.cluster.api(self.cluster.state()["token"]).get("/api/v1/nodes/bed-0")["metadata"]["name"], "bed-0"
        )

    def test_strict_fields_are_refused(self):
        wrong = pod("wrong", "bed-0")
        wrong["spec"]["restartPolcy"] = "Never"
        with self.assertRaises(ApiError) as refused:
            self.api.create(wrong, dryRun="All")
        self.assertIn("restartPolcy", str(refused.exception))

    def test_pods_end_as_told(self):
        self.api.create(pod("good", "bed-0"))
        self.api.create(pod("bad", "bed-1", {PLAY: '{"exitCode": 3, "message": "module in use"}'}))
        self.assertEqual(self.ended("good")[0], "Succeeded")
        phase, state = self.ended("bad")
        self.assertEqual((phase, state["exitCode"], state["message"]), ("Failed", 3, "module in use"))

    def test_daemon_sets_run_on_every_node(self):
        namespace = self.namespace("bed")
        self.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "d", "namespace": namespace},
                "spec": {
                    "selector": {"matchLabels": {"app": "d"}},
                    "template": {
                        "metadata": {"labels": {"app": "d"}},
                        "spec": {"nodeSelector": {"bed": "yes"}, "containers": [{"name": "c", "image": "c:1"}]},
                    },
                },
            }
        )
        path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets/d"
        self.wait("ten Pods", lambda: self.api.get(path)["status"].get("numberReady") == 10)
        on = {p["spec"]["nodeName"] for p in self.api.items(f"/api/v1/namespaces/{namespace}/pods")}
        self.assertEqual(on, set(self.names))

    def test_thousands_of_nodes_in_seconds(self):
        start = time.monotonic()
        etcd.flood(self.cluster, [nodes.node(f"many-{i:04}") for i in range(1000)])
        self.addCleanup(etcd.drain, self.cluster, "many-")
        put = time.monotonic() - start
        # What etcd has reaches the cache of the server a moment later.
        self.wait(
            "all nodes",
            lambda: sum(n["metadata"]["name"].startswith("many-") for n in self.api.items("/api/v1/nodes")) == 1000,
        )
        print(f"1000 nodes in {put:.1f} s, listed after {time.monotonic() - start:.1f} s")
        node = self.api.get("/api/v1/nodes/many-0999")
        self.assertEqual(node["status"]["nodeInfo"]["kernelVersion"], nodes.KERNEL)
        self.api.patch("/api/v1/nodes/many-0999", {"metadata": {"labels": {"gpu": "yes"}}})

    def test_the_server_comes_back_after_a_crash(self):
        self.cluster.kill_apiserver()
        self.assertFalse(self.api.ready())
        start = time.monotonic()
        self.cluster.start_apiserver()
        self.cluster.wait_ready()
        print(f"API server ready again after {time.monotonic() - start:.1f} s")
        self.api.create(pod("after", "bed-2"))
        self.assertEqual(self.ended("after")[0], "Succeeded")
