# SPDX-License-Identifier: Apache-2.0
"""The kubelets of fake_api.py --kubelet: each runs the Pods of its node.

A worker Pod is run by `ssh -- NODE kmm-worker ARGUMENTS`. Its answer becomes the termination message, or, with a
message that says PodLog, the log of the Pod. An image with "missing" in its name cannot be pulled; a node that ssh
does not reach starts nothing. Afterwards the objects follow what the node has become, in $KMM_FAKE_NODES/../cluster:
files of fake_kubernetes_fleet.py. Pods with a command of their own: played_pods.py.
"""

import copy
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess
import threading

import played_pods

MESSAGE_BYTES = 4096


def value_of(key, text):
    found = re.search(rf'^ *{key}: "?([^"\n]+)', text, re.MULTILINE)
    return found[1] if found else ""


def message_of(text):
    """The termination message of a Pod whose worker has printed `text`: a long one stays in its log."""
    message = text.strip()
    if len(message) <= MESSAGE_BYTES:
        return message
    short = json.dumps(json.loads(message), separators=(",", ":"), ensure_ascii=False)
    return json.dumps({"apiVersion": "kmmtools/v1", "kind": "PodLog", "bytes": len(short.encode())})


class Followed:
    """What the files of a directory cluster said when they were read last."""

    def __init__(self):
        self.texts = {}
        nodes = os.environ.get("KMM_FAKE_NODES", "")
        self.directory = pathlib.Path(nodes).parent / "cluster" if nodes else None

    def changed(self):
        """(path, text) of files that are new or others; (path, None) of those that are gone."""
        if self.directory is None:
            return []
        now = {
            path: path.read_text() for path in sorted(self.directory.rglob("*.yaml")) if not path.name.startswith(".")
        }
        gone = [(path, None) for path in self.texts if path not in now]
        found = [(path, text) for path, text in now.items() if self.texts.get(path) != text] + gone
        self.texts = now
        return found

    def follow(self, cluster):
        for path, text in self.changed():
            plural, name = path.relative_to(self.directory).parts[0], path.stem
            space = path.parent.name if plural in ("pods", "leases", "configmaps") else ""
            old = copy.deepcopy(cluster.objects.get((plural, space, name)))
            if text is None:
                if old is not None:
                    cluster.remove((plural, space, name))
            elif plural == "nodes" and old:
                info = old["status"].setdefault("nodeInfo", {})
                info.update({key: value_of(key, text) for key in ("kubeletVersion", "bootID")})
                cluster.put(old, "MODIFIED")
            elif plural == "leases":
                cluster.put(
                    {
                        "apiVersion": "coordination.k8s.io/v1",
                        "kind": "Lease",
                        "metadata": {"name": name, "namespace": space},
                        "spec": {
                            "holderIdentity": name,
                            "leaseDurationSeconds": 40,
                            "renewTime": value_of("renewTime", text),
                        },
                    },
                    "MODIFIED" if old else "ADDED",
                )
            elif plural == "pods":
                cluster.put(json.loads(text), "MODIFIED" if old else "ADDED")
            elif name == "kubeadm-config" and old:
                version = value_of("kubernetesVersion", text)
                old["data"] = {
                    key: re.sub(r"(kubernetesVersion: ).*", rf"\g<1>{version}", each)
                    for key, each in old["data"].items()
                }
                cluster.put(old, "MODIFIED")


class Kubelet:
    """Runs one Pod."""

    CONFIG_FILE = "/etc/kmm-worker/config.yaml"
    logs = {}  # by key of the Pod
    away_verb, is_away = None, threading.Event()
    followed, following = None, threading.Lock()

    def __init__(self, cluster, key):
        self.cluster, self.key = cluster, key
        threading.Thread(target=self.run, daemon=True).start()

    def tell(self, phase, state, **more):
        """False if the Pod is gone or going."""
        with self.cluster.changed:
            pod = copy.deepcopy(self.cluster.objects.get(self.key))
            if pod is None:
                return False
            name = pod["spec"]["containers"][0].get("name", "worker")
            pod["status"] = {
                **pod.get("status", {}),
                "phase": phase,
                "containerStatuses": [{"name": name, "state": state}],
                **more,
            }
            self.cluster.put(pod, "MODIFIED")
            return "deletionTimestamp" not in pod["metadata"]

    def run(self):
        pod = self.cluster.objects[self.key]
        container = pod["spec"]["containers"][0]
        faults = pathlib.Path(os.environ.get("KMM_FAKE_NODES", "/nowhere"), "faults")
        if faults.is_file() and f"{pod['spec']['nodeName']} * unreachable" in faults.read_text():
            return None
        if not self.tell("Pending", {"waiting": {"reason": "ContainerCreating"}}):
            return self.end()
        if "missing" in container["image"]:
            text = f'failed to pull image "{container["image"]}": not found'
            self.tell("Pending", {"waiting": {"reason": "ErrImagePull", "message": text}})
            self.tell(
                "Pending",
                {"waiting": {"reason": "ImagePullBackOff", "message": f"Back-off pulling image: ErrImagePull: {text}"}},
            )
            return None
        if "command" in container:
            played_pods.run(self.cluster, self.key, pod, self.tell)
            return self.end()
        words = ["-" if word == self.CONFIG_FILE else word for word in container["args"]]
        config = pod["metadata"].get("annotations", {}).get("kmmtools.dev/worker-config", "")
        command = " ".join(shlex.quote(word) for word in ["kmm-worker"] + words)
        verb = pod["metadata"].get("labels", {}).get("kmmtools.dev/verb", "")
        if verb.startswith("kubernetes-"):
            self.tell("Running", {"running": {}})
        if verb == self.away_verb:
            Kubelet.is_away.set()
        done = subprocess.run(
            ["ssh", "--", pod["spec"]["nodeName"], command], input=config, capture_output=True, text=True, check=False
        )
        Kubelet.is_away.clear()
        if verb.startswith("kubernetes-"):
            self.follow()
        if done.returncode == 255 and "No route to host" in done.stderr:
            return None
        if done.returncode == 255:
            self.tell("Failed", {"terminated": {"exitCode": 137, "reason": "Error", "message": ""}})
            return self.end()
        self.logs[self.key] = done.stderr + done.stdout
        message = message_of(done.stdout) if verb.startswith("kubernetes-") else done.stdout.strip()
        self.tell("Running", {"running": {}})
        return self.ended(done.returncode, message)

    def ended(self, code, message):
        self.tell("Failed" if code else "Succeeded",
                  {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed",
                                  "message": message[:MESSAGE_BYTES]}})
        return self.end()

    @staticmethod
    def renewed(lease):
        """As kubelets do all the time."""
        lease["spec"]["renewTime"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return lease

    def follow(self):
        with self.following, self.cluster.changed:
            if Kubelet.followed is None:
                Kubelet.followed = Followed()
            Kubelet.followed.follow(self.cluster)

    def end(self):
        """Removes the Pod if it was deleted meanwhile."""
        with self.cluster.changed:
            pod = self.cluster.objects.get(self.key)
            if pod and "deletionTimestamp" in pod["metadata"]:
                self.cluster.remove(self.key)
