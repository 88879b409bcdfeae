# SPDX-License-Identifier: Apache-2.0
"""A machine with a kubelet of its own, two with KMM_FULL=1: what is rendered loads a real module, and kmm-upgrade walks
them."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from testbed import manifests
from testbed.machines import MODULE, Machines
from testbed.testing import ROOT, ClusterCase

KMM = "/apis/kmm.sigs.x-k8s.io/v1beta1"
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


def is_ready(thing):
    """Whether the condition Ready of a Pod or node holds."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in thing["status"].get("conditions", []))


class RealCase(ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.machines = Machines(cls.cluster)
        cls.names = cls.machines.fleet.names()
        cls.worker = ("--worker-image", cls.machines.image("kmm-worker", "1"))
        manifests.install_definitions(cls.api, ROOT)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.machines.clean)

    def module(self, namespace, selector, version=None, image="v1", **more):
        container = {"modprobe": {"moduleName": MODULE, "parameters": ["greeting=hello"]},
                     "kernelMappings": [{"regexp": "^.+$", "containerImage": self.machines.image("kmm-hello", image),
                                         "registryTLS": {"insecure": True}}]}
        if version:
            container["version"] = version
        thing = {
            "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
            "kind": "Module",
            "metadata": {"name": "kmm-hello", "namespace": namespace},
            "spec": {"selector": selector, "tolerations": [CORDON], "moduleLoader": {"container": container}, **more},
        }
        self.api.apply(thing)
        self.addCleanup(self.free, f"{KMM}/namespaces/{namespace}/modules/kmm-hello")

    def label(self, node, **labels):
        self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})


class Rendered(RealCase):
    """kmm-plan render worker-pods | kubectl apply -f -: what an admin does by hand."""

    def finished(self, pod):
        """`kubectl apply` of a Pod; what its worker said when it has succeeded."""
        path = self.api.path_of(pod)
        self.kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(pod))
        begun = time.monotonic()

        def ended():
            now = self.api.get(path)
            self.assertNotEqual(now["status"]["phase"], "Failed", now["status"])
            return now if now["status"]["phase"] == "Succeeded" else None
        done = self.wait(f"{path} to succeed", ended, 600)
        print(f"{pod['metadata']['name']}: {time.monotonic() - begun:.1f} s")
        self.api.delete(path)
        self.wait(f"{path} to be gone", lambda: self.api.raw("GET", path)[0] == 404)
        return done

    def rendered(self, *what):
        return self.documents("kmm-plan", "render", *what, "--kubeconfig", self.cluster.kubeconfig, *self.worker)

    def test_load_and_unload(self):
        node, namespace = self.names[0], self.namespace("rendered")
        self.module(namespace, {"rendered": "yes"})
        self.label(node, rendered="yes")
        config = f"{KMM}/nodemodulesconfigs/{node}"
        self.addCleanup(self.free, config)
        self.assertIsNone(self.machines.live(node))
        (wanted,) = [
            t for t in self.rendered("nmc") if t["kind"] == "NodeModulesConfig" and t["metadata"]["name"] == node
        ]
        (load,) = self.rendered("worker-pods")
        self.finished(load)
        self.assertEqual(self.machines.live(node), "v1")
        # What an operator would write down.
        wanted["metadata"].pop("uid", None)
        self.api.apply(wanted)
        boot = self.api.get(f"/api/v1/nodes/{node}")["status"]["nodeInfo"]["bootID"]
        self.api.patch(
            f"{config}/status", {"status": {"modules": [dict(m, bootId=boot) for m in wanted["spec"]["modules"]]}}
        )
        self.label(node, rendered=None)
        (unload,) = self.rendered("worker-pods")
        self.finished(unload)
        self.assertIsNone(self.machines.live(node))
        self.assertEqual(self.api.warnings, [])


class Walked(RealCase):
    """kmm-upgrade without operator: labels, worker Pods and the DaemonSet of a device plugin on real nodes."""

    def setUp(self):
        super().setUp()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="kmm-kubelet-"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.state = self.work / "state"
        self.ns = self.namespace("walked")
        self.targets = []

    def target(self, name):
        """The Module selects that node from now on."""
        self.label(name, walked="yes")
        self.addCleanup(self.unlabel, name)
        self.addCleanup(self.free, f"{KMM}/nodemodulesconfigs/{name}")
        self.targets.append(name)

    def unlabel(self, name):
        """Takes away everything that a run puts on a node, too."""
        labels = self.api.get(f"/api/v1/nodes/{name}")["metadata"]["labels"]
        self.label(name, walked=None, **{label: None for label in labels if f"{self.ns}.kmm-hello" in label})

    def edit(self, version):
        self.module(self.ns, {"walked": "yes"}, version, version,
                    devicePlugin={"container": {"image": self.machines.image("pause", "1")}})

    def begin(self, *arguments):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KMM_", "KUBE"))}
        with open(self.work / "said", "w", encoding="utf-8") as said:
            return subprocess.Popen(
                [self.bin / "kmm-upgrade", *arguments, "--state-dir", self.state],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=dict(kept, HOME=str(self.work)),
            )

    def ended(self, child, *expected):
        """Waits for the end of a command; its exit code."""
        try:
            child.wait(1500)
        finally:
            child.kill()
            child.wait()
            said = (self.work / "said").read_text(encoding="utf-8")
            print(said)
        self.assertIn(child.returncode, expected, said)
        return child.returncode

    def walk(self, version, *options, fault=None):
        """kmm-upgrade brings the targets to a version from nothing on record; `fault` is called while it does.
        Everything is as it should be then. Returns the events of the journal."""
        self.edit(version)
        shutil.rmtree(self.state, ignore_errors=True)
        begun = time.monotonic()
        child = self.begin("start", "module", f"{self.ns}/kmm-hello", "--to", version, "--via", "self", *self.worker,
                           "--kubeconfig", self.cluster.kubeconfig, *options)
        try:
            if fault:
                fault()
        except Exception:
            child.kill()
            self.ended(child, -9)
            raise
        # A fault may pause it, which says why; then a person goes on.
        if self.ended(child, 0, *([11] if fault else [])) == 11:
            self.ended(self.begin("resume"), 0)
        print(f"to {version}: {time.monotonic() - begun:.1f} s")
        shown = json.loads(self.tool("kmm-upgrade", "show", "-o", "json", "--state-dir", self.state))
        self.assertEqual(shown["state"], "upgrade-complete")
        self.check_all_at(version)
        return [
            json.loads(line.strip("\0"))["payload"] for line in (self.state / "journal.ndjson").read_text().splitlines()
        ]

    def settled_pods(self):
        """All Pods by node, once none is being deleted."""
        pods = list(self.api.items(f"/api/v1/namespaces/{self.ns}/pods"))
        going = any("deletionTimestamp" in pod["metadata"] for pod in pods)
        return None if going else sorted(pods, key=lambda pod: pod["spec"]["nodeName"])

    def check_all_at(self, version):
        """All that holds when the targets have that version."""
        self.assertEqual(
            {name: self.machines.live(name) for name in self.targets}, dict.fromkeys(self.targets, version)
        )
        # One Pod of the device plugin a node, of the new version; no worker is left but for the last one, whose kubelet
        # ends it.
        base = f"{self.ns}.kmm-hello"
        schedule = f"beta.kmm.node.kubernetes.io/version-schedule-pod.{base}"
        pods = self.wait("the last workers to be gone", self.settled_pods)
        self.assertEqual(
            [(pod["spec"]["nodeName"], pod["metadata"]["labels"].get(schedule), is_ready(pod)) for pod in pods],
            [(name, version, True) for name in self.targets],
        )
        (plugin,) = self.api.items(f"/apis/apps/v1/namespaces/{self.ns}/daemonsets")
        self.assertEqual(plugin["metadata"]["labels"][schedule], version)
        for name in self.targets:
            node = self.api.get(f"/api/v1/nodes/{name}")
            self.assertTrue(is_ready(node))
            labels = {key: value for key, value in node["metadata"]["labels"].items() if base in key}
            ready = f"kmm.node.kubernetes.io/{base}"
            self.assertEqual(labels, {
                **{f"{ready}.{what}": "" for what in ("ready", "device-plugin-ready", "device-plugin-target")},
                f"{ready}.version.ready": version, f"kmm.node.kubernetes.io/version-module.{base}": version,
                f"beta.kmm.node.kubernetes.io/version-worker-pod.{base}": version, schedule: version})
            config = self.api.get(f"{KMM}/nodemodulesconfigs/{name}")
            for part in ("spec", "status"):
                (entry,) = config[part]["modules"]
                self.assertEqual(entry["config"]["containerImage"], self.machines.image("kmm-hello", version))
            self.assertEqual(entry["bootId"], node["status"]["nodeInfo"]["bootID"])
            self.assertEqual(entry["bootId"], self.machines.fleet.boot_id(name))

    def volume(self, name, node):
        """A directory of a machine as the volume of that claim in kmm-tools; where it is there."""
        place = f"/var/lib/{name}"
        self.machines.fleet.shell(node, f"mkdir -p {place}")
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        self.api.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "capacity": {"storage": "64Mi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "local": {"path": place},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
                    "claimRef": {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "namespace": "kmm-tools",
                        "name": name,
                    },
                },
            }
        )
        self.addCleanup(self.free, f"/api/v1/persistentvolumes/{name}")
        self.addCleanup(self.free, f"/api/v1/namespaces/kmm-tools/persistentvolumeclaims/{name}")
        return place

    def walk_by_job(self, version, *options):
        """The Job of manifests/upgrade-job does the same, as docs/upgrade-job.md tells, but that its images are here,
        and the API server is named: nothing forwards the addresses of Services. Its Pod runs on the first machine."""
        self.edit(version)
        for name in ("rbac", "rbac-drain"):
            self.kubectl(
                "apply",
                "-k",
                ROOT / "manifests" / name,
                "--server-side",
                "--field-manager=testbed",
                "--validate=strict",
            )
        self.kubectl(
            "apply",
            "-n",
            self.ns,
            "-f",
            ROOT / "manifests/rbac-namespace/binding.yaml",
            "-f",
            ROOT / "manifests/rbac-device-plugins/binding.yaml",
            "--server-side",
            "--field-manager=testbed",
            "--validate=strict",
        )
        self.addCleanup(self.empty_namespace, "kmm-tools")
        volume = self.volume("kmm-upgrade-state", self.names[0])
        image, _, tag = self.machines.image("kmm-upgrade", "1").rpartition(":")
        where = [{"name": "KUBERNETES_SERVICE_HOST", "value": "10.0.2.2"},
                 {"name": "KUBERNETES_SERVICE_PORT", "value": str(self.cluster.state()["port"])}]
        job = "/spec/template/spec/containers/0"
        patch = [
            {
                "op": "replace",
                "path": f"{job}/args",
                "value": [
                    "start",
                    "module",
                    f"{self.ns}/kmm-hello",
                    f"--to={version}",
                    "--or-resume",
                    "=".join(self.worker),
                    *options,
                ],
            },
            *({"op": "add", "path": f"{job}/env/-", "value": value} for value in where),
        ]
        overlay = {"resources": [os.path.relpath(ROOT / "manifests/upgrade-job", self.work.resolve())],
                   "images": [{"name": "registry.example/kmm-upgrade", "newName": image, "newTag": tag}],
                   "patches": [{"target": {"kind": "Job"}, "patch": json.dumps(patch)}]}
        (self.work / "kustomization.yaml").write_text(json.dumps(overlay))
        begun = time.monotonic()
        self.kubectl("apply", "-k", self.work, "--server-side", "--field-manager=testbed", "--validate=strict")

        def ended():
            status = self.api.get("/apis/batch/v1/namespaces/kmm-tools/jobs/kmm-upgrade").get("status", {})
            return [
                c["type"]
                for c in status.get("conditions", [])
                if c["status"] == "True" and c["type"] in ("Complete", "Failed")
            ]
        try:
            how = self.wait("the Job to end", ended, 900)
        finally:
            print(self.machines.fleet.shell(self.names[0], "cat /var/log/pods/kmm-tools_kmm-upgrade-*/*/*.log || true"))
        self.assertEqual(how, ["Complete"])
        print(f"to {version}, by the Job: {time.monotonic() - begun:.1f} s")
        record = self.machines.fleet.shell(self.names[0], f"tr -d '\\0' <{volume}/kmm-upgrade/record/journal.ndjson")
        self.assertIn("upgrade-complete", record)
        self.check_all_at(version)

    def test_nodes(self):
        first, last = self.names[0], self.names[-1]
        self.target(first)
        self.walk_by_job("v1")
        if last != first:
            self.target(last)
        boot, kubelets = self.machines.fleet.boot_id(last), []

        def faults():
            kubelets.extend(self.machines.restart_kubelet_without(first))
            self.machines.restart_with(last)
        events = self.walk("v2", fault=faults)
        self.assertEqual(len(set(kubelets)), 2, kubelets)
        self.assertNotEqual(boot, self.machines.fleet.boot_id(last))
        self.assertEqual([event["node"] for event in events if event.get("reason") == "node-rebooted"], [last])
