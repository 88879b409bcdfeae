# SPDX-License-Identifier: Apache-2.0
"""What the tests on the API server share. KMM_CLUSTER_DIR names a testbed that is up, KMM_BIN_DIR the tools under test,
KMM_FAKE_DIR the program that plays ssh."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from lab.common import wait_for

from . import binaries, manifests
from .client import ApiError
from .servers import Cluster

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent


def run_suite(names):
    """Runs test classes; the exit code: 1 if one fails or there are none."""
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    if suite.countTestCases() == 0:
        print("no tests found", file=sys.stderr)
        return 1
    return 0 if unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite).wasSuccessful() else 1


class ClusterCase(unittest.TestCase):
    """Tests against the running API server. A test leaves no nodes, Modules or namespaces of its own behind."""
    maxDiff = None
    longMessage = True

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(os.environ["KMM_CLUSTER_DIR"])
        cls.bin, cls.fake = (pathlib.Path(os.environ[name]) for name in ("KMM_BIN_DIR", "KMM_FAKE_DIR"))
        cls.api = cls.cluster.api()

    def setUp(self):
        self.api.warnings.clear()

    def tool(self, *arguments, stdin="", expect=0, env=None):
        """Runs one of our commands; its standard output. The exit code must be the expected one."""
        name, *rest = map(str, arguments)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("KMM_", "KUBE"))}
        done = subprocess.run([str(self.bin / name), *rest], input=stdin, capture_output=True, text=True, check=False,
                              env=dict(environment, HOME="/nonexistent", **(env or {})), timeout=600)
        self.assertEqual(
            done.returncode, expect, f"{' '.join([name, *rest])}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
        return done.stdout

    def documents(self, *arguments, stdin="", expect=0):
        """The objects that one of our commands prints with -o json: those of a List, or the one there is."""
        document = json.loads(self.tool(*arguments, "-o", "json", stdin=stdin, expect=expect))
        return document["items"] if document["kind"] == "List" else [document]

    def kubectl(self, *arguments, stdin=""):
        """Runs kubectl, of the servers' version, as the admin; its standard output. It must succeed, without a warning:
        but for kubectl's own, that it did not make what is there, which says nothing of what it was given."""
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run(
                [
                    str(binaries.servers()),
                    "kubectl",
                    "--kubeconfig",
                    str(self.cluster.kubeconfig),
                    *map(str, arguments),
                ],
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                timeout=600,
                env={"PATH": os.environ["PATH"], "HOME": home},
            )
        said = [
            line for line in done.stderr.splitlines() if "is missing the kubectl.kubernetes.io/last-applied" not in line
        ]
        self.assertEqual(
            (done.returncode, said), (0, []), f"kubectl {' '.join(map(str, arguments))}\n{done.stdout[-4000:]}"
        )
        return done.stdout

    def load_dump(self, *nodes):
        """Makes the Nodes, Pods, ConfigMaps and CoreDNS of a kubeadm cluster; the Pods without their owners, which are
        not there. `nodes`: as of kubeadm_dump.py."""
        program = ROOT / "tests/support/kubeadm_dump.py"
        text = subprocess.run([sys.executable, str(program), "--kinds", "Node,Pod,ConfigMap,Deployment", *nodes],
                              capture_output=True, text=True, check=True).stdout
        for thing in json.loads(text)["items"]:
            if thing["metadata"].get("namespace", "kube-system") != "kube-system":
                self.namespace(thing["metadata"]["namespace"])
            thing["metadata"].pop("ownerReferences", None)
            is_pod = thing["kind"] == "Pod"
            if thing["kind"] == "Deployment":
                thing["spec"]["paused"] = True  # its Pods are among those of the dump
            path = self.api.path_of(thing)
            self.api.create({key: part for key, part in thing.items() if key != "status" or thing["kind"] == "Node"})
            self.addCleanup(self.api.delete, path, **({"gracePeriodSeconds": 0} if is_pod else {}))
            if is_pod:
                self.api.patch(f"{path}/status", {"status": thing["status"]})

    def wait(self, what, probe, timeout=600):
        return wait_for(what, probe, timeout, 0.05)

    def free(self, path):
        """Deletes an object with its finalizers: nobody else here takes those of KMM away."""
        try:
            if self.api.get(path)["metadata"].get("finalizers"):
                self.api.patch(path, {"metadata": {"finalizers": None}})
            self.api.delete(path)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def namespace(self, name):
        """A namespace that accepts Pods. It is emptied when the test has ended, and stays: to remove it takes
        seconds."""
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.addCleanup(self.empty_namespace, name)
        # The controller manager would make it, too; after the server was killed often, it looks only now and then.
        self.api.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        )
        return name

    def empty_namespace(self, name):
        """Deletes what makes Pods, and the Pods; what else a test creates it deletes itself."""
        for kinds in ("apis/apps/v1", "daemonsets"), ("apis/batch/v1", "jobs"), ("api/v1", "pods"):
            path = f"/{kinds[0]}/namespaces/{name}/{kinds[1]}"

            def gone(path=path):
                left = list(self.api.items(path))
                for thing in left:
                    self.free(f"{path}/{thing['metadata']['name']}")
                return not left
            self.wait(f"{path} to be empty", gone, 60)


class LoadedCase(ClusterCase):
    """Tests that put the objects of a directory on the server first."""

    def setUp(self):
        super().setUp()
        manifests.install_definitions(self.api, ROOT)
        self.namespaces = set()

    def need_namespace(self, name):
        if name not in self.namespaces:
            self.namespaces.add(name)
            self.namespace(name)

    def load(self, directory):
        """Creates the objects of a directory; the List that the server then has of them, as kubectl would print it."""
        have = []
        how = {"fieldManager": "input", "force": "true", "fieldValidation": "Strict"}
        for file in sorted(pathlib.Path(directory).rglob("*.yaml")):
            for stub, text in manifests.documents(file):
                if "namespace" in stub["metadata"]:
                    self.need_namespace(stub["metadata"]["namespace"])
                # A uid is the server's to give.
                text, path = re.sub(r"^  uid: .*\n", "", text, flags=re.M), self.api.path_of(stub)
                for part in (path, f"{path}/status") if stub["kind"] == "NodeModulesConfig" else (path,):
                    stored = self.api.request("PATCH", part, text, "application/apply-patch+yaml", how)
                if stub["kind"] == "Node":
                    # The controllers would taint a node that does not say so.
                    stored = self.api.patch(
                        f"{path}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
                    )
                self.addCleanup(self.free, path)
                have.append(stored)
        self.assertEqual(self.api.warnings, [])
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": have})
