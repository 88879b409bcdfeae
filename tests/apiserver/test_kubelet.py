# SPDX-License-Identifier: Apache-2.0
"""Two machines with kubelets of their own: what is rendered loads a real module, and kmm-upgrade walks them."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

from testbed import manifests
from testbed.machines import MODULE, Machines
from testbed.testing import ROOT, ClusterCase

KMM = "/apis/kmm.sigs.x-k8s.io/v1beta1"
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


class RealCase(ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.machines = Machines(cls.cluster)
        cls.names = cls.machines.fleet.names()
        cls.worker = ("--worker-image", cls.machines.image("kmm-worker", "1"))
        manifests.install_definitions(cls.api, ROOT)

    def module(self, namespace, selector, version=None, image="v1", **more):
        container = {"modprobe": {"moduleName": MODULE, "parameters": ["greeting=hello"]},
                     "kernelMappings": [{"regexp": "^.+$", "containerImage": self.machines.image("kmm-hello", image),
                                         "registryTLS": {"insecure": True}}]}
        if version:
            container["version"] = version
        thing = {"apiVersion": "kmm.sigs.x-k8s.io/v1beta1", "kind": "Module", "metadata": {"name": "kmm-hello", "namespace": namespace},
                 "spec": {"selector": selector, "tolerations": [CORDON], "moduleLoader": {"container": container}, **more}}
        self.api.apply(thing)
        self.addCleanup(self.free, f"{KMM}/namespaces/{namespace}/modules/kmm-hello")

    def label(self, node, **labels):
        self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})


class Rendered(RealCase):
    """kmm-plan render worker-pods, applied: what an admin does by hand."""

    def finished(self, pod):
        """Applies a Pod; what its worker said when it has succeeded."""
        path = self.api.path_of(pod)
        self.api.apply(pod)
        begun = time.monotonic()

        def ended():
            now = self.api.get(path)
            self.assertNotEqual(now["status"]["phase"], "Failed", now["status"])
            return now if now["status"]["phase"] == "Succeeded" else None
        done = self.wait(f"{path} to succeed", ended, 240)
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
        (wanted,) = [t for t in self.rendered("nmc") if t["kind"] == "NodeModulesConfig" and t["metadata"]["name"] == node]
        (load,) = self.rendered("worker-pods")
        self.finished(load)
        self.assertEqual(self.machines.live(node), "v1")
        # What an operator would write down.
        wanted["metadata"].pop("uid", None)
        self.api.apply(wanted)
        boot = self.api.get(f"/api/v1/nodes/{node}")["status"]["nodeInfo"]["bootID"]
        self.api.patch(f"{config}/status", {"status": {"modules": [dict(m, bootId=boot) for m in wanted["spec"]["modules"]]}})
        self.label(node, rendered=None)
        (unload,) = self.rendered("worker-pods")
        self.finished(unload)
        self.assertIsNone(self.machines.live(node))
        self.assertEqual(self.api.warnings, [])


class Walked(RealCase):
    """kmm-upgrade without operator: labels, worker Pods and the DaemonSet of a device plugin on two real nodes."""

    def setUp(self):
        super().setUp()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="kmm-kubelet-"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.state = self.work / "state"
        self.ns = self.namespace("walked")
        for name in self.names:
            self.label(name, walked="yes")

    def edit(self, version):
        self.module(self.ns, {"walked": "yes"}, version, version,
                    devicePlugin={"container": {"image": self.machines.image("pause", "1")}})

    def begin(self, *arguments):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KMM_", "KUBE"))}
        return subprocess.Popen([self.bin / "kmm-upgrade", *arguments, "--state-dir", self.state], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(kept, HOME=str(self.work)))

    def start(self, version, *options):
        return self.begin("start", "module", f"{self.ns}/kmm-hello", "--to", version, "--via", "self", *self.worker,
                          "--kubeconfig", self.cluster.kubeconfig, *options)

    def ended(self, child, expect=(0,)):
        try:
            said, _ = child.communicate(timeout=900)
        finally:
            child.kill()
        self.assertIn(child.returncode, expect, said)
        return said

    def daemon_pods(self):
        """{node: [version of a Pod of the device plugin that is ready]}"""
        found = {name: [] for name in self.names}
        for pod in self.api.items(f"/api/v1/namespaces/{self.ns}/pods"):
            labels = pod["metadata"]["labels"]
            version = labels.get(f"beta.kmm.node.kubernetes.io/version-schedule-pod.{self.ns}.kmm-hello")
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
            found[pod["spec"]["nodeName"]].append((version, ready))
        return found

    def walked_to(self, version):
        """All that holds when both nodes have that version."""
        self.assertEqual({name: self.machines.live(name) for name in self.names}, dict.fromkeys(self.names, version))
        self.assertEqual(self.daemon_pods(), {name: [(version, True)] for name in self.names})
        sets = list(self.api.items(f"/apis/apps/v1/namespaces/{self.ns}/daemonsets"))
        self.assertEqual(len(sets), 1, [s["metadata"]["name"] for s in sets])
        for name in self.names:
            node = self.api.get(f"/api/v1/nodes/{name}")
            labels = {k for k, v in node["metadata"]["labels"].items() if self.ns in k}
            base = f"kmm.node.kubernetes.io/{self.ns}.kmm-hello"
            self.assertLessEqual({f"{base}.ready", f"{base}.version.ready", f"{base}.device-plugin-ready"}, labels)
            config = self.api.get(f"{KMM}/nodemodulesconfigs/{name}")
            (entry,) = config["status"]["modules"]
            self.assertEqual(entry["bootId"], node["status"]["nodeInfo"]["bootID"])
            self.assertEqual(entry["config"]["containerImage"], self.machines.image("kmm-hello", version))

    def wait_step(self, child, node, step):
        """Waits until the journal says that this step was begun on this node."""
        def begun():
            try:
                lines = (self.state / "journal.ndjson").read_text(errors="replace").splitlines()
            except FileNotFoundError:
                lines = []
            for line in lines:
                try:
                    event = json.loads(line.strip("\0"))["payload"]
                except ValueError:
                    continue
                if (event.get("event"), event.get("node"), event.get("step")) == ("intent", node, step):
                    return True
            self.assertIsNone(child.poll(), f"it ended before {step} on {node}")
            return False
        self.wait(f"{step} on {node}", begun, 400)

    def test_two_nodes(self):
        for name in self.names:
            self.addCleanup(self.free, f"{KMM}/nodemodulesconfigs/{name}")
        self.edit("v1")
        begun = time.monotonic()
        print(self.ended(self.start("v1", "--max-unavailable", "2")))
        print(f"installed: {time.monotonic() - begun:.1f} s")
        self.walked_to("v1")
        shutil.rmtree(self.state)
        self.edit("v2")
        begun = time.monotonic()
        print(self.ended(self.start("v2")))
        print(f"walked: {time.monotonic() - begun:.1f} s")
        self.walked_to("v2")
        shutil.rmtree(self.state)
        self.edit("v1")
        begun = time.monotonic()
        child = self.start("v1")
        said = []
        reader = threading.Thread(target=lambda: said.append(child.stdout.read()))
        reader.start()
        self.wait_step(child, self.names[0], "unload")
        self.machines.restart_kubelet(self.names[0])
        print(f"kubelet restarted at {time.monotonic() - begun:.1f} s")
        self.wait_step(child, self.names[1], "load")
        self.machines.restart(self.names[1])
        print(f"machine restarted at {time.monotonic() - begun:.1f} s")
        child.wait(900)
        reader.join()
        print(said[0])
        if child.returncode != 0:
            self.assertEqual(child.returncode, 11, said[0])
            print(self.ended(self.begin("resume")))
        print(f"walked under faults: {time.monotonic() - begun:.1f} s")
        self.walked_to("v1")
