# SPDX-License-Identifier: Apache-2.0
"""The networking step of an upgrade and its canary, on real kubelets: Pods of the nodes reach each other by routes, and
CoreDNS by the address of its Service; see testbed/kubeadm.py."""
import json
import subprocess
import unittest

from lab.common import wait_for
from test_kubeadm import NEW, SWITCH, LabCase
from testbed.kubeadm import REPOSITORY

SPACE = ("-n", "kube-system")
PODS = (*SPACE, "-l", "app.kubernetes.io/name=kmm-upgrade-canary")
NAME = "kubernetes.default.svc.cluster.local."


def manifests():
    """What the networking of a version consists of: a ConfigMap, and the agent on each node."""
    agent = {"hostNetwork": True, "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 1,
             "containers": [{"name": "agent", "image": f"{REPOSITORY}/pause:3.10.1"}]}
    labels = {"app": "lab-network"}
    metadata = {"name": "lab-network", "namespace": "kube-system"}
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"version": "${KUBERNETES_VERSION}"}},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata,
         "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": agent}}},
    )


class Canary(LabCase):
    """Each fault pauses the run with its cause; once it is mended `resume` goes on."""
    NODES = ("cp1", "w1")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = cls.lab.busybox_image()
        directory = cls.dir / "networking" / NEW
        directory.mkdir(parents=True, exist_ok=True)
        for number, document in enumerate(manifests()):
            (directory / f"{number}.json").write_text(json.dumps(document))

    def setUp(self):
        # Whatever has failed, the next test begins with a run of its own.
        self.addCleanup(subprocess.run, self.words("abort"), env=self.environment(), stdin=subprocess.DEVNULL,
                        capture_output=True, check=False)

    def start(self, *words, image="", first=True, expect=11):
        order = ("--networking-first", "--until", "upgraded-networking") if first else ()
        return self.tool("start", "kubernetes", NEW, *SWITCH, "--networking", str(self.dir / "networking"), *order,
                         "--canary-image", image or self.image, *words, expect=expect)

    def watch(self):
        """Writes down what becomes of the canary's Pods until the test ends; returns a function: (event, Pod) so
        far."""
        kubectl = self.lab.dir / "kubernetes" / self.lab.first / "kubectl"
        words = self.lab.words(kubectl, "--kubeconfig", self.lab.dir / "kubeconfig", "get", "pods", *PODS, "--watch",
                               "--output-watch-events", "-o", "json")
        log = open(self.dir / "pods.json", "wb")  # pylint: disable=consider-using-with
        self.addCleanup(log.close)
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log)  # pylint: disable=consider-using-with
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)

        def seen():
            text, place, found = (self.dir / "pods.json").read_text(), 0, []
            while text[place:].strip():
                try:
                    event, length = json.JSONDecoder().raw_decode(text[place:].lstrip())
                except ValueError:
                    break
                place = len(text) - len(text[place:].lstrip()) + length
                found.append((event["type"], event["object"]))
            return found

        return seen

    def assert_gone(self):
        self.assertEqual(self.lab.kubectl("get", "pods", *PODS, "-o", "name"), "")

    def assert_paused(self, told, *texts):
        """The run has paused at its networking, and says so also to somebody who looks later; no Pod is left."""
        shown = " ".join(self.ended("show", expect=0).stdout.split())
        self.assertIn("state upgrading-networking-failed", shown)
        self.assertIn("paused networking: network-canary-failed", shown)
        for text in texts:
            self.assertRegex(told, text)
            self.assertRegex(shown, text)
        self.assert_gone()

    def resumed(self, *words):
        told = self.tool("resume", *words, expect=11)
        self.assertIn("every rollout is complete; Pods on cp1 and w1 reach each other and DNS", told)
        self.assert_gone()
        self.tool("abort")

    def test_1_reached(self):
        """Four Pods really run, each on its node, two of which end with 0, and nothing is left of them."""
        seen = self.watch()
        told = self.start()
        self.assertIn(
            "2 of 2 objects changed, every rollout is complete; Pods on cp1 and w1 reach each other and DNS", told
        )
        self.assert_gone()
        wait_for("the last Pod to be seen going", lambda: [kind for kind, _ in seen()].count("DELETED") == 4, 60)
        last = {}
        for kind, pod in seen():
            if kind != "DELETED" and pod["status"].get("containerStatuses"):
                last.setdefault(pod["metadata"]["name"].split("-", 4)[4], []).append(pod)
        places = {name: pods[-1]["spec"]["nodeName"] for name, pods in last.items()}
        self.assertEqual(places, {"listen-0": "cp1", "listen-1": "w1", "ask-0": "cp1", "ask-1": "w1"})
        for name, pods in last.items():
            states = [pod["status"]["containerStatuses"][0]["state"] for pod in pods]
            if name.startswith("listen"):
                self.assertTrue([state for state in states if "running" in state], name)
                continue
            self.assertEqual(
                [state["terminated"]["exitCode"] for state in states if "terminated" in state][-1], 0, name
            )
            peer = {each["name"]: each["value"] for each in pods[-1]["spec"]["containers"][0]["env"]}["PEER"]
            self.assertIn(
                peer, [pod["status"].get("podIP") for pod in last["listen-1" if name == "ask-0" else "listen-0"]]
            )
        self.tool("abort")

    def test_2_no_route(self):
        """A route is missing on one node only: its answers do not arrive either."""
        cp1, w1 = self.lab.nodes["cp1"], self.lab.nodes["w1"]
        cp1.route(w1, "blackhole")
        self.addCleanup(cp1.route, w1)
        told = self.start()
        self.assert_paused(
            told,
            r"-ask-0 on node cp1: no answer from the Pod on node w1 at 10\.88\.2\.\d+ port \d+: nc: ",
            r"-ask-1 on node w1: no answer from the Pod on node cp1 at 10\.88\.1\.\d+ port \d+",
        )
        cp1.route(w1)
        self.resumed()

    def test_3_no_dns(self):
        """No Pod of CoreDNS is left; traffic between Pods is not blamed."""
        self.addCleanup(self.lab.kubectl, "scale", *SPACE, "deployment/coredns", "--replicas=2")
        self.lab.kubectl("scale", *SPACE, "deployment/coredns", "--replicas=0")
        wait_for(
            "CoreDNS to end",
            lambda: self.lab.kubectl("get", "pods", *SPACE, "-l", "k8s-app=kube-dns", "-o", "name") == "",
            120,
            1,
        )
        told = self.start()
        self.assert_paused(told, rf"-ask-0 on node cp1: DNS does not return 10\.96\.0\.1 for {NAME}: ",
                           rf"-ask-1 on node w1: DNS does not return 10\.96\.0\.1 for {NAME}: ")
        self.assertNotIn("no answer from the Pod", told)
        self.lab.kubectl("scale", *SPACE, "deployment/coredns", "--replicas=2")
        self.lab.kubectl("rollout", "status", *SPACE, "deployment/coredns", "--timeout=120s")
        self.resumed()

    def test_4_images(self):
        told = self.start(image=f"{REPOSITORY}/nothing:1")
        self.assert_paused(
            told,
            r"-listen-0 on node cp1: ImagePullBackOff: .*nothing:1: not found; Pod \S+ on node w1: ",
            "hint +load the image on these nodes",
        )
        told = self.tool("resume", "--canary-image", f"{REPOSITORY}/pause:3.10.1", expect=11)
        self.assert_paused(told, r"-listen-0 on node cp1: has ended: StartError: .*sh")
        self.resumed("--canary-image", self.image)

    def test_5_no_sandbox(self):
        """What the kubelet says only in an Event."""
        w1 = self.lab.nodes["w1"]
        w1.shell("mv /opt/cni/bin/host-local /opt/cni/kept")
        self.addCleanup(w1.shell, "[ ! -e /opt/cni/kept ] || mv /opt/cni/kept /opt/cni/bin/host-local")
        told = self.start("--node-timeout", "1m")
        self.assert_paused(told, r"-listen-1 on node w1: ContainerCreating after the time limit "
                                 r"\(last event: FailedCreatePodSandBox: .*host-local")
        w1.shell("mv /opt/cni/kept /opt/cni/bin/host-local")
        self.resumed()

    def test_6_no_room(self):
        """The kubelet refuses the Pod: no scheduler has chosen its node."""
        w1 = self.lab.nodes["w1"]
        pods = json.loads(self.lab.kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName=w1", "-o", "json"))
        w1.write("/etc/default/kubelet", f"KUBELET_EXTRA_ARGS=--max-pods={len(pods['items'])}\n")
        self.addCleanup(w1.shell, "rm -f /etc/default/kubelet && systemctl restart kubelet")
        w1.shell("systemctl restart kubelet")
        self.lab.wait_ready()
        told = self.start()
        self.assert_paused(told, r"-listen-1 on node w1: has ended: OutOfpods: ")
        w1.shell("rm /etc/default/kubelet && systemctl restart kubelet")
        self.lab.wait_ready()
        self.resumed()

    def test_7_upgraded(self):
        """In its own place in an upgrade, after the first control plane, in a namespace of Pod security
        `restricted`."""
        self.start("--until", "upgraded-first-master", first=False)
        # Not before: mirror Pods of control planes do not fit it.
        label = ("label", "namespace", "kube-system")
        self.lab.kubectl(*label, "pod-security.kubernetes.io/enforce=restricted")
        self.addCleanup(self.lab.kubectl, *label, "pod-security.kubernetes.io/enforce-")
        told = self.tool("resume", "--until", "upgraded-networking", expect=11)
        self.assertIn("Pods on cp1 and w1 reach each other and DNS", told)
        self.lab.kubectl(*label, "pod-security.kubernetes.io/enforce-")
        self.tool("resume")
        self.assert_runs(NEW)
        self.assert_gone()


if __name__ == "__main__":
    unittest.main()
