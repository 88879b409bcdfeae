# SPDX-License-Identifier: Apache-2.0
"""Versions, requirements and checks of a kubeadm cluster on a live API server: the same as from a dump of it."""
import json
import pathlib
import shutil
import sys
import tempfile
import time

from testbed.testing import ROOT, ClusterCase

sys.path.insert(0, str(ROOT / "tests/support"))
import fake_kubeadm_node  # noqa: E402

DUMPED = ("nodes,pods,configmaps,poddisruptionbudgets,apiservices,customresourcedefinitions,endpointslices,"
          "validatingwebhookconfigurations,mutatingwebhookconfigurations,secrets,deployments")


class Observed(ClusterCase):
    def dump(self):
        file = tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8")
        self.addCleanup(file.close)
        file.write(self.kubectl("get", DUMPED, "-A", "-o", "json"))
        file.flush()
        return ("-f", file.name)

    def test_live_and_from_a_dump(self):
        self.load_dump("kube-a=v1.34.4/v1.34.4", "kube-b=v1.34.4/v1.34.4", "kube-c=v1.34.4")
        live, dump = ("--kubeconfig", self.cluster.kubeconfig), self.dump()
        for line in (
            ("versions", "-o", "json"),
            ("versions", "v1.35.4"),
            ("versions", "--stx"),
            ("require", "kubelet == v1.34.4"),
            ("require", "etcd >= 3.6.5-0 and kube-proxy = 1.34.4 and apiserver < 1.35.0"),
        ):
            self.assertEqual(self.tool("kmm-upgrade", *line, *live), self.tool("kmm-upgrade", *line, *dump), line)
        self.assertEqual(
            json.loads(self.tool("kmm-upgrade", "versions", "-o", "json", *live))["kube_versions"][-1]["state"],
            "available",
        )
        self.tool("kmm-upgrade", "require", "apiserver >= v1.35.0", *live, expect=10)

        found = {}
        for name, source in (("live", live), ("dump", dump)):
            # Pods without a controller are what this testbed has.
            document = json.loads(
                self.tool(
                    "kmm-upgrade",
                    "check",
                    "kubernetes",
                    "v1.35.4",
                    "--ignore-checks",
                    "drain-unmanaged,other-orchestrators",
                    "-o",
                    "json",
                    *source,
                )
            )
            found[name] = {check["id"]: (check["outcome"], check["detail"]) for check in document["checks"]}
        for live_only in ("admin-rights", "freeze-possible"):
            self.assertEqual((found["live"][live_only][0], found["dump"][live_only][0]), ("OK", "SKIP"))
        # The server has no webhook and no Service kube-dns: a dump does not say that of kinds that it does not hold.
        for check in (
            "webhook-deadlock",
            "pdb-blocks-drain",
            "crd-conversion",
            "removed-api-stored",
            "removed-api-helm",
            "coredns-migratable",
        ):
            self.assertIn(found["dump"].pop(check)[0], ("OK", "SKIP"))
            self.assertEqual(found["live"].pop(check)[0], "OK", check)
        for live_only in ("admin-rights", "freeze-possible"):
            del found["live"][live_only], found["dump"][live_only]
        self.assertEqual(found["live"], found["dump"])
        for check in ("cp-pods-ready", "coredns-customised"):
            self.assertEqual(found["live"][check][0], "OK", check)

    def test_what_a_control_plane_hears(self):
        """kmm-worker asks a real API server and a real etcd, where the manifests of a node say that they are."""
        root = pathlib.Path(tempfile.mkdtemp(prefix="kmm-node-"))
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        fake_kubeadm_node.make(root)
        state, pki, own = self.cluster.state(), root / "etc/kubernetes/pki", self.cluster.dir / "pki"
        for name, source in (
            ("ca.crt", "ca.crt"),
            ("apiserver-kubelet-client.crt", "admin.crt"),
            ("apiserver-kubelet-client.key", "admin.key"),
        ):
            shutil.copy(own / source, pki / name)
        for name, words in (("kube-apiserver", f"--advertise-address=127.0.0.1, --secure-port={state['port']}"),
                            ("etcd", f'"--listen-client-urls=http://127.0.0.1:{state["etcd"]}"')):
            manifest = root / f"etc/kubernetes/manifests/{name}.yaml"
            manifest.write_text(manifest.read_text().replace(f"[{name}", f"[{name}, {words}"))
        self.api.get("/api/v1/componentstatuses")  # one that is deprecated
        facts = json.loads(
            self.tool("kmm-worker", "kubernetes", "facts", "--requested-apis", "--host-root", root, "-o", "json")
        )
        self.assertEqual((facts["apiServer"]["ready"], facts["apiServer"]["problem"]), (True, ""), facts)
        self.assertIn(
            {"group": "", "version": "v1", "resource": "componentstatuses", "removedIn": ""},
            facts["apiServer"]["requested"],
        )
        self.assertLess(abs(time.time() - float(facts["apiServer"]["started"])), 36000)
        etcd = facts["etcd"]
        self.assertEqual(
            (etcd["memberID"], [member["id"] for member in etcd["members"]]),
            (etcd["leaderID"], [etcd["memberID"]]),
            etcd,
        )
        self.assertGreater(etcd["sizeBytes"], 0)
        self.assertEqual((etcd["alarms"], etcd["errors"]), ([], []))
        self.assertEqual([found for found in facts["unread"] if found["field"] in ("etcd", "apiServer")], [])

    def test_a_mixed_cluster(self):
        self.load_dump("kube-a=v1.34.4/v1.35.4", "kube-b=v1.34.4/v1.34.4", "kube-c=v1.33.1")
        live = ("--kubeconfig", self.cluster.kubeconfig)
        rows = json.loads(self.tool("kmm-upgrade", "versions", "-o", "json", *live))["kube_versions"]
        self.assertEqual({row["version"]: row["state"] for row in rows if row["control_planes"] + row["kubelets"]},
                         {"v1.33.1": "partial", "v1.34.4": "partial", "v1.35.4": "partial"})
        self.assertNotIn("available", {row["state"] for row in rows})
        self.assertIn("versions-uniform", self.tool("kmm-upgrade", "health", "-o", "name", *live, expect=17))
