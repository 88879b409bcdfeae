# SPDX-License-Identifier: Apache-2.0
"""start recipe and remove recipe on a real API server: order, gates, copies for kernels, conflicts, rollback, a kill,
removal."""
import json
import pathlib
import subprocess
import tempfile

from test_manifests import Installed
from testbed import nodes
from testbed.client import kubeconfig
from testbed.kubelet import PLAY

OLD, NEW = "5.14.0-427.40.1.el9_4.x86_64", "5.14.0-570.12.1.el9_6.x86_64"
FULL = "feature.node.kubernetes.io/kernel-version.full"
SYSTEM = "Red Hat Enterprise Linux CoreOS 417.94.202410211619-0 (Plow)"
SRO = "specialresource.openshift.io/"

CHART = "apiVersion: v2\nname: {name}\nversion: {version}\n"
RESOURCE = """apiVersion: sro.openshift.io/v1beta1
kind: SpecialResource
metadata: {{name: {name}}}
spec:
  namespace: {name}
  chart: {{name: {name}, version: 0.0.1, repository: {{name: local, url: "file:///nowhere"}}}}
  nodeSelector: {{recipe: "yes"}}
  dependencies: {dependencies}
"""
JOB = """apiVersion: batch/v1
kind: Job
metadata:
  name: prepare
  annotations: {%swait: "true"}
spec:
  template:
    metadata:
      annotations: {%s: '{"exitCode": 0}'}
      labels: {app: prepare}
    spec: {restartPolicy: Never, containers: [{name: c, image: registry.example/prepare}]}
""" % (SRO, PLAY)
DRIVER = """apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: driver
  annotations: {%swait: "true", %skernel-affine: "true"}
spec:
  selector: {matchLabels: {app: driver}}
  template:
    metadata: {labels: {app: driver}}
    spec: {containers: [{name: driver, image: "registry.example/driver:{{ .Values.kernelFullVersion }}", env: [{name: V, value: "{{ .Chart.Version }}"}]}]}
""" % (SRO, SRO)
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '{{ .Chart.Version }}'}\n"


class Recipe(Installed):
    def setUp(self):
        super().setUp()
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.top = pathlib.Path(kept.name)
        # With no more rights than manifests/ gives.
        self.install()
        self.apply("rbac-recipe")
        self.bind("kube-system")
        self.addCleanup(
            self.api.delete, "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/kmm-upgrade"
        )
        text = json.loads(kubeconfig(self.cluster.dir, self.cluster.state()["port"], self.token("kmm-upgrade")))
        text["current-context"] = "token"
        self.access = self.top / "kubeconfig"
        self.access.write_text(json.dumps(text))
        self.access.chmod(0o600)
        for name, kernel in ("recipe-a", OLD), ("recipe-b", NEW):
            nodes.create(self.api, [nodes.node(name, kernel, {"recipe": "yes", FULL: kernel}, os_image=SYSTEM)])
            self.addCleanup(self.api.delete, f"/api/v1/nodes/{name}")
        self.chart("bed-base", "0.0.1", {"0100-prepare.yaml": JOB})
        self.chart("bed-top", "0.0.1", {"1000-driver.yaml": DRIVER, "2000-settings.yaml": SETTINGS})
        dependency = '[{chart: {name: bed-base, version: 0.0.1, repository: {name: local, url: "file:///nowhere"}}}]'
        (self.top / "resources.yaml").write_text(RESOURCE.format(name="bed-base", dependencies="[]") + "---\n" +
                                                 RESOURCE.format(name="bed-top", dependencies=dependency))

    def chart(self, name, version, templates):
        where = self.top / name
        (where / "templates").mkdir(parents=True, exist_ok=True)
        (where / "Chart.yaml").write_text(CHART.format(name=name, version=version))
        for file, text in templates.items():
            (where / "templates" / file).write_text(text)

    def upgrade(self, *arguments, expect=0):
        return self.tool(
            "kmm-upgrade", *arguments, "--state-dir", self.top / "state", "--kubeconfig", self.access, expect=expect
        )

    def start(self, *arguments, expect=0):
        return self.upgrade(
            "start",
            "recipe",
            "bed-top",
            "-f",
            self.top / "resources.yaml",
            "--chart",
            f"bed-top={self.top}/bed-top",
            "--chart",
            f"bed-base={self.top}/bed-base",
            *arguments,
            expect=expect,
        )

    def drivers(self):
        """Kernel and version of each copy."""
        found = {}
        for item in self.api.items("/apis/apps/v1/namespaces/bed-top/daemonsets"):
            spec = item["spec"]["template"]["spec"]
            found[spec["nodeSelector"][FULL]] = spec["containers"][0]["env"][0]["value"]
            self.assertEqual("yes", spec["nodeSelector"]["recipe"])
        return found

    def labels(self, name):
        return {key for key in self.api.get(f"/api/v1/nodes/{name}")["metadata"]["labels"] if key.startswith(SRO)}

    def releases(self):
        return {
            item["metadata"]["name"]
            for item in self.api.items("/api/v1/namespaces/kube-system/secrets")
            if "kmmtools" in item["type"]
        }

    def test_life(self):
        self.start("--dry-run")
        self.assertEqual(set(), self.releases())
        self.start()
        self.assertEqual({OLD: "0.0.1", NEW: "0.0.1"}, self.drivers())
        job = self.api.get("/apis/batch/v1/namespaces/bed-base/jobs/prepare")
        first = min(
            item["metadata"]["creationTimestamp"]
            for item in self.api.items("/apis/apps/v1/namespaces/bed-top/daemonsets")
        )
        self.assertLessEqual(job["status"]["completionTime"], first)
        states = {f"{SRO}state-bed-base-0100", f"{SRO}state-bed-top-1000", f"{SRO}state-bed-top-2000"}
        self.assertEqual((states, states), (self.labels("recipe-a"), self.labels("recipe-b")))
        self.assertEqual({"kmm-upgrade.recipe.bed-top.v1"}, self.releases())

        # Somebody else owns a field: nothing is changed, and the manager is named. Then it is taken over, as asked.
        self.upgrade("delete")
        other = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "bed-top"},
            "data": {"version": "mine"},
        }
        self.api.request(
            "PATCH",
            self.api.path_of(other),
            other,
            "application/apply-patch+yaml",
            {"fieldManager": "jane", "force": "true"},
        )
        self.chart("bed-top", "0.0.2", {})
        self.assertIn("jane", self.refused(75))
        self.assertEqual({"kmm-upgrade.recipe.bed-top.v1"}, self.releases())
        self.assertEqual({OLD: "0.0.1", NEW: "0.0.1"}, self.drivers())

        # The kernel of the first node is gone: its copy goes. Killed and resumed on the way.
        self.api.patch("/api/v1/nodes/recipe-a", {"metadata": {"labels": {FULL: NEW}}})
        self.api.patch("/api/v1/nodes/recipe-a/status", {"status": {"nodeInfo": {"kernelVersion": NEW}}})
        self.start("--to", "0.0.2", "--force-conflicts", "--manual", expect=11)
        self.upgrade("step", expect=0)
        self.upgrade("resume")
        self.assertEqual({NEW: "0.0.2"}, self.drivers())
        self.assertEqual("0.0.2", self.api.get(self.api.path_of(other))["data"]["version"])
        self.assertEqual({"kmm-upgrade.recipe.bed-top.v1", "kmm-upgrade.recipe.bed-top.v2"}, self.releases())

        # A release that does not become ready, rolled back.
        self.chart(
            "bed-top",
            "0.0.3",
            {
                "0500-broken.yaml": JOB.replace("name: prepare", "name: broken")
                .replace('"exitCode": 0', '"exitCode": 1')
                .replace("spec:\n  template", "spec:\n  backoffLimit: 0\n  template", 1)
            },
        )
        self.upgrade("delete")
        self.start(expect=11)
        self.assertIn("gate-failed", self.upgrade("show"))
        self.upgrade("abort", "--rollback", "all")
        self.assertEqual({NEW: "0.0.2"}, self.drivers())
        self.assertEqual(
            [], [item["metadata"]["name"] for item in self.api.items("/apis/batch/v1/namespaces/bed-top/jobs")]
        )
        self.assertEqual(states, self.labels("recipe-a"))

        self.upgrade("delete")
        self.upgrade("remove", "recipe", "bed-top")
        for name in "bed-top", "bed-base":
            self.assertNotIn(name, {item["metadata"]["name"] for item in self.api.items("/api/v1/namespaces")})
        self.assertEqual((set(), set(), set()), (self.labels("recipe-a"), self.labels("recipe-b"), self.releases()))

    def refused(self, code):
        done = subprocess.run(
            [
                str(self.bin / "kmm-upgrade"),
                "start",
                "recipe",
                "bed-top",
                "-f",
                self.top / "resources.yaml",
                "--chart",
                f"bed-top={self.top}/bed-top",
                "--chart",
                f"bed-base={self.top}/bed-base",
                "--state-dir",
                self.top / "state",
                "--kubeconfig",
                self.access,
                "-o",
                "json",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(code, done.returncode, done.stderr)
        error = json.loads(done.stdout)
        self.assertEqual("field-conflict", error["code"])
        return error["details"]
