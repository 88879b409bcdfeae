# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade --via operator on a live cluster, beside an operator that is played by KMM's tables."""
import json

from testbed.fleet import KMM, Fleet
from testbed.kmm_operator import KmmOperator
from testbed.proxy import Proxy
from testbed.testing import ClusterCase


class Operated(ClusterCase):
    """One label a node is all that is written; the rest is the operator's."""

    def label(self, fleet, kind):
        prefix = "kmm.node.kubernetes.io" if kind == "version-module" else "beta.kmm.node.kubernetes.io"
        return f"{prefix}/{kind}.{fleet.namespace}.{fleet.name}"

    def set_label(self, fleet, node, kind, value):
        self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {self.label(fleet, kind): value}}})

    def versions(self, fleet):
        """What status.modules says of each node."""
        found = []
        for node in fleet.names:
            status, data = self.api.raw("GET", f"{KMM}/nodemodulesconfigs/{node}")
            modules = json.loads(data).get("status", {}).get("modules", []) if status == 200 else []
            found.append([entry.get("version") for entry in modules])
        return found

    def test_three_nodes(self):
        fleet = Fleet(self, "operated", via="operator")
        refused = fleet.run(*fleet.start("v1"), "--kubeconfig", fleet.access(), expect=10)
        self.assertIn("operator-missing", refused)
        for node in fleet.names:
            self.set_label(fleet, node, "version-module", "v1")
        with KmmOperator(fleet):
            self.wait("v1 on all nodes", lambda: self.versions(fleet) == [["v1"]] * 3)
            fleet.edit("v2")
            with Proxy(self.cluster) as proxy:
                fleet.run(*fleet.start("v2"), "--kubeconfig", fleet.access(proxy.port))
                changing = [record for record in proxy.changing() if "/leases" not in record.resource]
                print(f"{len(proxy.records)} requests for three nodes")
            self.assertEqual(
                [f"PATCH /api/v1/nodes/{node}" for node in fleet.names], [f"{r.method} {r.resource}" for r in changing]
            )
            for record in changing:
                self.assertIn("version-module", record.body.decode())
            self.assertEqual(self.versions(fleet), [["v2"]] * 3)

            # A state that KMM never leaves: named before anything is changed, mended when told.
            self.set_label(fleet, fleet.names[1], "version-worker-pod", None)
            fleet.edit("v3")
            fleet.run("delete")
            refused = fleet.run(*fleet.start("v3"), "--kubeconfig", fleet.access(), expect=10)
            self.assertIn("worker-lost (P,-,P)", refused)
            fleet.run(*fleet.start("v3"), "--kubeconfig", fleet.access(), "--repair")
            self.assertEqual(self.versions(fleet), [["v3"]] * 3)
