# SPDX-License-Identifier: Apache-2.0
"""The kubeadm cluster of tests/support/fake_kubernetes_fleet.py with the real kmm-upgrade and kmm-worker."""
import json
import os
import pathlib
import re
import subprocess
import sys

from fleet import Fleet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import fake_kubernetes_fleet  # noqa: E402

FROM, TARGET = fake_kubernetes_fleet.FROM, fake_kubernetes_fleet.TARGET
# Whose nodes have no etcd, but where a test brings one (Backed).
HOW = ("--switch", "binaries", "--no-etcd-snapshot")
START = ("start", "kubernetes", TARGET, *HOW)
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


class KubernetesFleet(Fleet):
    """Everything of one run below one directory, so that a copy of the directory is a copy of the world."""

    @classmethod
    def build(cls, tools, root, control_planes, workers, versions=(FROM, TARGET)):
        fleet = cls(tools, root)
        fake_kubernetes_fleet.build(root, tools.fake / "kubernetes-node", control_planes, workers, *versions)
        return fleet

    def copy(self, root):
        subprocess.run(["cp", "-a", self.root, root], check=True)  # with its sockets
        return type(self)(self.tools, root)

    def environment(self, **more):
        library = str(self.tools.bin.parent / "lib/libfast_sleep.so")
        return {
            **super().environment(),
            "PATH": f"{self.root}/bin:{self.tools.bin}:{os.environ['PATH']}",
            "KMM_FAST_SLEEP": library,
            **more,
        }

    def ssh(self, node, *words):
        """kmm-worker kubernetes WORDS on the node, called as kmm-upgrade does."""
        line = "exec sh -c 'echo kmm-worker-started >&2; exec \"$@\"' sh 'kmm-worker' 'kubernetes' " + " ".join(
            f"'{word}'" for word in words
        )
        return subprocess.run(
            [self.root / "bin/ssh", "-v", "-T", "--", node, line],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def follow(self, node):
        """Brings the objects to what the files of the node say, as every call to it does."""
        subprocess.run([self.root / "bin/follow", self.nodes, node], check=True)

    def behave(self, node, **what):
        (self.nodes / node / "fake/behaviour").write_text(json.dumps(what))

    def fault(self, node, text):
        """One more line of faults: VERB KIND; VERB may be *, or #N for the N-th call of all, NODE may be *."""
        with open(self.nodes / "faults", "a", encoding="utf-8") as file:
            file.write(f"{node} {text}\n")

    def start(self, *options, **more):
        return self.run(*START, *options, **more)

    def object(self, path):
        """The text of an object, "" if there is none."""
        file = self.cluster / f"{path}.yaml"
        return file.read_text() if file.exists() else ""

    def control_plane(self, node):
        """{component: tag of the Pod's image}, without those that have no Pod."""
        found = {}
        for component in (*COMPONENTS, "etcd"):
            match = re.search(rf"/{component}:([^\"\n]+)", self.object(f"pods/kube-system/{component}-{node}"))
            if match:
                found[component] = match[1]
        return found

    def kubelet(self, node):
        return re.search(r"kubeletVersion: (\S+)", self.object(f"nodes/{node}"))[1]

    def boot(self, node):
        return re.search(r"bootID: (\S+)", self.object(f"nodes/{node}"))[1]

    def lease(self, node):
        return re.search(r'renewTime: "(.+)"', self.object(f"leases/kube-node-lease/{node}"))[1]

    def configured(self):
        """kubernetesVersion of kubeadm-config."""
        return re.search(r"kubernetesVersion: (\S+)", self.object("configmaps/kube-system/kubeadm-config"))[1]

    def addons(self):
        """The tags of kube-proxy and CoreDNS that run."""
        pods = (path.read_text() for path in (self.cluster / "pods/kube-system").iterdir())
        return sorted({match for text in pods for match in re.findall(r"/(?:kube-proxy|coredns):([^\"\n]+)", text)})

    def states(self):
        """{version: state} of kmm-upgrade versions, but for those that are unavailable."""
        done = self.run("versions", "-o", "json")
        versions = json.loads(done.stdout)["kube_versions"]
        return {each["version"]: each["state"] for each in versions if each["state"] != "unavailable"}

    def log(self, node):
        """What was called on the node that changes something."""
        path = self.nodes / node / "fake/log"
        return path.read_text().splitlines() if path.exists() else []

    def applies(self):
        return [line for node in self.names() for line in self.log(node) if line.startswith("kubeadm upgrade apply")]

    def outcome(self):
        """Everything that an upgrade leaves, but for times, boots and process ids."""
        objects = {}
        for path in sorted(self.cluster.rglob("*.yaml")):
            if "leases" not in path.parts:
                objects[str(path.relative_to(self.cluster))] = re.sub(r"bootID: .*", "bootID: -", path.read_text())
        for node in self.names():
            for path in sorted((self.nodes / node / "etc/kubernetes/manifests").glob("*")):
                objects[str(path.relative_to(self.nodes))] = path.read_text()
            for path in ("usr/bin/kubelet", "usr/bin/kubeadm", "var/lib/kubelet/config.yaml"):
                objects[f"{node}/{path}"] = (self.nodes / node / path).read_text()
        events = self.events()
        final = {event["node"]: event["to"] for event in events if event.get("node") and event.get("to")}
        run = [event["to"] for event in events if not event.get("node") and event.get("to")]
        return {
            "objects": objects,
            "live": {node: self.kubelet(node) for node in self.names()},
            "nodes": final,
            "run": run[-1:],
        }
