# SPDX-License-Identifier: Apache-2.0
"""The freeze of applications on a real API server: what the policy of start kubernetes refuses, what it lets through,
and how it ends."""
import base64
import datetime
import os
import pathlib
import sys
import tempfile

from testbed.client import ApiError
from testbed.testing import ROOT, ClusterCase

sys.path.insert(0, str(ROOT / "tests/support"))
import fake_kubernetes_fleet  # noqa: E402

TARGET = fake_kubernetes_fleet.TARGET
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/kmm-upgrade-freeze"
NOTICE = "/api/v1/namespaces/kube-system/configmaps/kmm-upgrade-freeze"
START = ("start", "kubernetes", TARGET, "--switch", "binaries", "--via", "ssh", "--manual",
         "--ignore-checks", "drain-unmanaged,other-orchestrators")


class Frozen(ClusterCase):
    def setUp(self):
        super().setUp()
        self.work = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        fake_kubernetes_fleet.build(self.work, self.fake / "kubernetes-node", 1, 1)
        for name in ("frozen", "exempt"):
            self.namespace(name)
            for secret in (
                "sh.helm.release.v1.web.v1",
                "sh.helm.release.v1.web.v2",
                "sh.helm.release.v1.web.v3",
                "plain",
            ):
                self.addCleanup(self.accepted, self.free, f"/api/v1/namespaces/{name}/secrets/{secret}")
            self.addCleanup(self.free, f"/api/v1/namespaces/{name}/configmaps/plain")
        for path in (NOTICE, POLICY, POLICY.replace("policies/", "policybindings/")):
            self.addCleanup(self.free, path)
        self.load_dump("cp1=v1.34.4/v1.34.4", "w1=v1.34.4")

    def upgrade(self, *words, expect=0):
        environment = {
            "PATH": f"{self.work}/bin:{self.bin}:{os.environ['PATH']}",
            "KMM_FAKE_NODES": str(self.work / "nodes"),
            "KMM_STATE_DIR": str(self.work / "state"),
            "KUBECONFIG": str(self.cluster.kubeconfig),
        }
        return self.tool("kmm-upgrade", *words, expect=expect, env=environment)

    def release(self, namespace, revision, status="deployed", kind="Secret"):
        """As Helm keeps a revision."""
        made = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {
                "name": f"sh.helm.release.v1.web.v{revision}",
                "namespace": namespace,
                "labels": {"owner": "helm", "name": "web", "status": status, "version": str(revision)},
            },
        }
        return {
            **made,
            **(
                {"type": "helm.sh/release.v1", "data": {"release": base64.b64encode(b"x").decode()}}
                if kind == "Secret"
                else {"data": {"release": "x"}}
            ),
        }

    def refused(self, act, *arguments, **options):
        with self.assertRaises(ApiError) as caught:
            act(*arguments, **options)
        self.assertEqual(caught.exception.status, 403)
        self.assertIn("the cluster is being upgraded from v1.34.4 to " + TARGET, str(caught.exception))

    def accepted(self, act, *arguments):
        """Once the server knows that it is: it looks at policies and their parameters by watches."""
        def probe():
            try:
                act(*arguments)
            except ApiError as error:
                if error.status == 403:
                    return False
                raise
            return True
        self.wait(f"{arguments[0]} to be accepted", probe, 30)

    def test_the_freeze(self):
        self.api.create(self.release("frozen", 1))
        old = "/api/v1/namespaces/frozen/secrets/sh.helm.release.v1.web.v1"
        status = {"metadata": {"labels": {"status": "superseded"}}}
        self.upgrade(*START, "--freeze-except", "exempt", expect=11)
        # It ends 24 hours after the server has taken it, by the clock of the server.
        notice = self.api.get(NOTICE)
        end, begin = (
            datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
            for text in (notice["data"]["notAfter"], notice["metadata"]["creationTimestamp"])
        )
        self.assertLess(abs((end - begin).total_seconds() - 24 * 3600), 60)
        # It was proven before the start ended: nothing is waited for here.
        self.refused(self.api.create, self.release("frozen", 2))
        self.refused(self.api.create, self.release("frozen", 2, kind="ConfigMap"))
        self.refused(self.api.patch, old, status)
        self.refused(self.api.delete, old)
        # Others, and exceptions, are not concerned; neither is the proof, which has no exceptions.
        self.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "plain", "namespace": "frozen"}})
        self.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain", "namespace": "frozen"}})
        self.api.create(self.release("exempt", 1))
        self.refused(
            self.api.create,
            {
                **self.release("kube-system", 1),
                "metadata": {"name": "kmm-upgrade-freeze-probe", "namespace": "kube-system"},
            },
        )
        status_of = self.api.get(POLICY)["status"]
        self.assertEqual(status_of.get("typeChecking", {}).get("expressionWarnings", []), [], status_of)
        # Its time is over: what is made and changed from now on is let through, objects from before as well.
        variables = self.api.get(POLICY)["spec"]["variables"]
        self.assertEqual(variables[0]["name"], "end")
        self.api.patch(
            POLICY,
            {
                "spec": {
                    "variables": [{"name": "end", "expression": "timestamp('2020-01-01T00:00:00Z')"}, *variables[1:]]
                }
            },
        )
        self.accepted(self.api.create, self.release("frozen", 2))
        self.accepted(self.api.patch, old, status)
        # It is prolonged by whoever goes on, and a person ends it while the upgrade stays.
        self.upgrade("step", "--node", "w1")
        self.refused(self.api.create, self.release("frozen", 3))
        self.upgrade("guard", "--", "false", expect=75)
        self.upgrade("unfreeze")
        self.accepted(self.api.create, self.release("frozen", 3))
        self.assertEqual(self.api.get(NOTICE)["data"]["mode"], "lifted")
        self.upgrade("abort")
        self.assertEqual([self.api.raw("GET", path)[0] for path in (POLICY, NOTICE)], [404, 404])
        self.upgrade("guard", "--", "true")
        # The next upgrade freezes as the first one did.
        self.upgrade("delete")
        self.upgrade(*START, expect=11)
        self.refused(self.api.create, self.release("exempt", 2))
        self.upgrade("abort")
