# SPDX-License-Identifier: Apache-2.0
"""Three nodes on the API server, with kmm-upgrade walking them: by an ssh that tests/support/fake_node.cpp plays."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from . import manifests, nodes
from .client import kubeconfig
from .etcd import Saved
from .kubelet import SSH
from .testing import ROOT

sys.path.insert(0, str(ROOT / "tests/support"))
import played_calls  # noqa: E402

KERNEL = nodes.KERNEL
KMM = "/apis/kmm.sigs.x-k8s.io/v1beta1"


def module(name, namespace, version):
    return {
        "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
        "kind": "Module",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"fleet": name},
            # A cordoned node would be left out otherwise.
            "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}],
            "moduleLoader": {
                "container": {
                    "version": version,
                    "modprobe": {"moduleName": name.replace("-", "_")},
                    "kernelMappings": [{"regexp": "^.+$", "containerImage": f"registry.example/{name}:{version}"}],
                }
            },
        },
    }


def play(case, directory, objects):
    """Creates Nodes whose worker Pods, and ssh, tests/support/fake_node.cpp plays; what it keeps of them is in the
    directory."""
    behind = json.dumps({"program": str(case.fake / "ssh"), "nodes": str(directory)})
    for thing in objects:
        thing["metadata"]["annotations"][SSH] = behind
        played, about = directory / thing["metadata"]["name"], thing["status"]["nodeInfo"]
        played.mkdir(parents=True)
        (played / "kernel").write_text(about["kernelVersion"] + "\n")
        (played / "boot-id").write_text(about["bootID"] + "\n")
    nodes.create(case.api, objects)


class Fleet:
    """Nodes, a Module and everything of a run below one directory. The Module's name is in all names. `via`: how
    kmm-upgrade reaches the nodes, "ssh", or "self" for worker Pods, whose containers the fake kubelet plays by the same
    program."""

    def __init__(self, case, name, count=3, cordoned=(), via="ssh"):
        self.case, self.api, self.name, self.namespace = case, case.api, name, f"{name}-drivers"
        self.how = ("--via", via) + (("--worker-image", "registry.example/kmm-worker:1") if via == "self" else ())
        self.names = [f"{name}-{letter}" for letter in "abcdefgh"[:count]]
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="kmm-apiserver-", dir=memory))
        self.state, self.played = self.root / "state", self.root / "nodes"
        self.cordoned = [self.names[i] for i in cordoned]
        case.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        manifests.install_definitions(self.api, ROOT)
        case.namespace(self.namespace)
        play(case, self.played, [nodes.node(node, labels={"fleet": name}) for node in self.names])
        for node in self.names:
            case.addCleanup(self.api.delete, f"/api/v1/nodes/{node}")
            case.addCleanup(self.api.delete, f"{KMM}/nodemodulesconfigs/{node}")
        case.addCleanup(case.free, f"{KMM}/namespaces/{self.namespace}/modules/{name}")
        self.edit("v1")

    @property
    def module(self):
        return f"{self.namespace}/{self.name}"

    def edit(self, version, more=None):
        """Writes the Module, with `more` in its spec."""
        wanted = module(self.name, self.namespace, version)
        wanted["spec"].update(more or {})
        self.api.apply(wanted)

    def cordon(self):
        """What an admin does to some nodes, and nobody else may undo."""
        for node in self.cordoned:
            # With the taint that a controller would add, at a moment of its own.
            self.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True, "taints": [
                {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}})

    def access(self, port=None, token=None):
        """A kubeconfig for this port (the server's own, or a proxy's) and token (the admin's)."""
        state = self.case.cluster.state()
        file = self.root / f"kubeconfig-{port}"
        text = json.loads(kubeconfig(self.case.cluster.dir, port or state["port"], token or state["token"]))
        text["current-context"] = "token"
        file.write_text(json.dumps(text))
        file.chmod(0o600)
        return file

    def command(self, *arguments):
        return [str(self.case.bin / "kmm-upgrade"), *map(str, arguments)]

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KMM_", "KUBE"))}
        return {**kept, "PATH": f"{self.case.fake}:{os.environ['PATH']}", "KMM_FAKE_NODES": str(self.played),
                "KMM_STATE_DIR": str(self.state),  # an option would stand in each command that is advised
                "HOME": str(self.root), "LC_ALL": "C.UTF-8"}

    def begin(self, *arguments):
        return subprocess.Popen(self.command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", env=self.environment())

    def run(self, *arguments, expect=0, timeout=600):
        """kmm-upgrade to its end: what it said."""
        child = self.begin(*arguments)
        try:
            said, _ = child.communicate(timeout=timeout)
        finally:
            child.kill()
        self.case.assertEqual(child.returncode, expect, f"{' '.join(map(str, arguments))}\n{said[-4000:]}")
        return said

    def start(self, version, *options):
        return ("start", "module", self.module, "--to", version, *self.how, *options)

    def install(self, version="v1"):
        """The nodes run that version, by an upgrade that has ended."""
        self.edit(version)
        self.run(*self.start(version), "--kubeconfig", self.access())
        shutil.rmtree(self.state)
        (self.played / "calls").unlink(missing_ok=True)

    def recorded(self):
        return (self.state / "journal.ndjson").exists()

    def live(self):
        """{node: what is loaded}"""
        found = {}
        for node in self.names:
            path = self.played / node / "live"
            found[node] = path.read_text().strip() if path.exists() else None
        return found

    def calls(self):
        return played_calls.read(self.played / "calls")

    def pod_took(self, name, begun):
        """How long after `begun`, by the monotonic clock, the worker Pod of that name had ended."""
        lines = [line.split() for line in (self.played / "pods").read_text().splitlines()]
        return min(float(at) for which, at in lines if which == name and float(at) >= begun) - begun

    def most_without(self):
        return played_calls.most_without(self.calls())

    def outcome(self):
        """Everything that a run leaves, as lines: objects without what differs between two equal runs, and what is
        loaded."""
        things = [self.api.get(f"/api/v1/nodes/{node}") for node in self.names]
        things += [t for t in self.api.items(f"{KMM}/nodemodulesconfigs") if t["metadata"]["name"] in self.names]
        for path in ("/api/v1/namespaces/{}/pods", "/apis/apps/v1/namespaces/{}/daemonsets",
                     "/apis/coordination.k8s.io/v1/namespaces/{}/leases", KMM + "/namespaces/{}/modules",
                     "/api/v1/namespaces/{}/configmaps"):
            # The controller manager's own ConfigMap comes when it comes.
            things += [
                t for t in self.api.items(path.format(self.namespace)) if t["metadata"]["name"] != "kube-root-ca.crt"
            ]
        lines = []
        for thing in things:
            text = json.dumps(without_chance(thing), indent=1, sort_keys=True)
            kind = thing.get("kind") or "item"
            lines += [f"{kind} {thing['metadata']['name']}: {line}" for line in text.splitlines()]
        lines += [f"loaded: {node} {what}" for node, what in sorted(self.live().items())]
        if self.recorded():
            shown = json.loads(self.run("show", "-o", "json"))
            lines.append(f"run: {shown.get('state')}")
        return lines

    def save(self):
        return SavedFleet(self)


class SavedFleet:
    """A fleet as it was: its objects as etcd has them, and its files."""

    def __init__(self, fleet):
        self.fleet = fleet
        prefixes = [f"/registry/minions/{fleet.name}-", f"/registry/kmm.sigs.x-k8s.io/nodemodulesconfigs/{fleet.name}-"]
        prefixes += [f"/registry/{kind}/{fleet.namespace}/" for kind in ("pods", "daemonsets", "leases",
                                                                        "kmm.sigs.x-k8s.io/modules")]
        self.objects = Saved(fleet.case.cluster, prefixes)
        self.files = fleet.root / "saved"
        shutil.copytree(fleet.played, self.files)

    def restore(self):
        self.objects.restore()
        shutil.rmtree(self.fleet.played)
        shutil.copytree(self.files, self.fleet.played)
        shutil.rmtree(self.fleet.state, ignore_errors=True)


def without_chance(thing):
    """An object without identities, versions and times."""
    if isinstance(thing, dict):
        return {
            k: without_chance(v)
            for k, v in thing.items()
            if k
            not in (
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "generation",
                "managedFields",
                "lastTransitionTime",
                "renewTime",
                "acquireTime",
                "lastHeartbeatTime",
                "timeAdded",
            )
        }
    if isinstance(thing, list):
        return [without_chance(v) for v in thing]
    return thing
