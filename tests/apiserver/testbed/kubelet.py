# SPDX-License-Identifier: Apache-2.0
"""What kubelets and the scheduler would do with the Pods of fake nodes: bind, run, end, remove. No container runs.

A Pod that is not bound is bound to the node that its DaemonSet chose, else to the first node its selector admits. A
bound Pod runs at once. It ends unless it is always restarted: successfully, unless the annotation of the Pod, else of
its node, tells otherwise: testbed.kmm-tools/play = {"exitCode": 1, "message": "...", "delayMs": 200, "stay": true}.
`message` becomes the termination message; `stay` leaves the Pod running, `"pending": "ImagePullBackOff"` leaves it
waiting with that reason.
A Pod that fails and is restarted on failure is in CrashLoopBackOff from then on.
A Pod of kmm-upgrade on a node with the annotation testbed.kmm-tools/ssh = {"program": FILE, "nodes": DIR} ends as that
program, tests/support/fake_node.cpp, says: its exit code, its answer as termination message.
A node with the annotation testbed.kmm-tools/dead keeps its Pods as they are: nobody runs or removes them. A node with
the label testbed.kmm-tools/real has a kubelet of its own: its Pods are left alone.
Whoever creates the mirror Pod of a static Pod also writes its status: it is only removed here.
"""
import concurrent.futures
import http.client
import json
import os
import shlex
import subprocess
import threading
import time

from lab.common import LabError, say

from .client import ApiError

PLAY, DEAD, REAL, SSH = (f"testbed.kmm-tools/{name}" for name in ("play", "dead", "real", "ssh"))
WORKER = ("app.kubernetes.io/managed-by", "kmm-upgrade")
MIRROR = "kubernetes.io/config.mirror"
# Where a worker Pod has its ModuleConfig, and the annotation that the file is made from.
CONFIG_FILE, CONFIG = "/etc/kmm-worker/config.yaml", "kmmtools.dev/worker-config"


def stamp():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def wanted_node(pod):
    """The node that a DaemonSet chose for its Pod, or None."""
    terms = (pod["spec"].get("affinity", {}).get("nodeAffinity", {})
             .get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", []))
    for term in terms:
        for field in term.get("matchFields", []):
            if field["key"] == "metadata.name" and field["operator"] == "In":
                return field["values"][0]
    return None


class FakeKubelet:
    """Watches nodes and Pods, and plays the kubelets of the nodes that have none."""

    def __init__(self, api, threads=8):
        self.api, self.nodes, self.lock = api, {}, threading.Lock()
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.seen = {}

    def run(self):
        threading.Thread(target=self._follow, args=("/api/v1/nodes", self._node), daemon=True).start()
        self._follow("/api/v1/pods", self._pod)

    def _follow(self, path, handle):
        """Lists, then watches from there; again from the start whenever the server goes away."""
        while True:
            try:
                page = self.api.get(path)
                for thing in page["items"]:
                    handle("ADDED", thing)
                version = page["metadata"]["resourceVersion"]
                while True:
                    for kind, thing in self.api.watch(path, version):
                        if kind == "ERROR":
                            raise LabError(str(thing))
                        version = thing["metadata"]["resourceVersion"]
                        if kind != "BOOKMARK":
                            handle(kind, thing)
            except (OSError, ValueError, http.client.HTTPException, LabError) as error:
                say(f"{stamp()} {path}: {error}; listing again")
                time.sleep(0.2)

    def _node(self, kind, node):
        with self.lock:
            if kind == "DELETED":
                self.nodes.pop(node["metadata"]["name"], None)
            else:
                self.nodes[node["metadata"]["name"]] = {
                    "labels": node["metadata"].get("labels", {}),
                    "annotations": node["metadata"].get("annotations") or {},
                    "open": not node["spec"].get("unschedulable") and not node["spec"].get("taints"),
                }

    def _pod(self, kind, pod):
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self.seen.pop(uid, None)
            return
        step = self._step(pod)
        # An event may repeat what another told: each step of a Pod is taken once.
        if step and self.seen.get(uid) != step:
            self.seen[uid] = step
            self.pool.submit(self._try, getattr(self, "_" + step), pod)

    @staticmethod
    def _step(pod):
        if pod["metadata"].get("deletionTimestamp"):
            return "remove" if pod["spec"].get("nodeName") else None
        if not pod["spec"].get("nodeName"):
            return "bind"
        if MIRROR in (pod["metadata"].get("annotations") or {}):
            return None
        phase = pod["status"].get("phase", "Pending")
        if phase == "Pending" and not pod["status"].get("containerStatuses"):
            return "start"
        if phase == "Running" and pod["spec"].get("restartPolicy") in ("Never", "OnFailure"):
            return "end"
        return None

    def _try(self, step, pod):
        try:
            node = self.nodes.get(pod["spec"].get("nodeName"), {"annotations": {}, "labels": {}})
            if DEAD not in node["annotations"] and REAL not in node["labels"]:
                step(pod)
        except (OSError, http.client.HTTPException, ApiError) as error:
            if isinstance(error, ApiError) and error.status in (404, 409):
                return
            say(f"{stamp()} {pod['metadata']['namespace']}/{pod['metadata']['name']}: {error}")
            self.seen.pop(pod["metadata"]["uid"], None)
            time.sleep(0.2)
            self._try(step, pod)

    def _path(self, pod, sub=""):
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}{sub}"

    def _status(self, pod, status):
        # The uid: a Pod of the same name that came meanwhile is not meant.
        self.api.patch(self._path(pod, "/status"), {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status})

    def _play(self, pod):
        for annotations in (pod["metadata"].get("annotations") or {},
                            self.nodes.get(pod["spec"]["nodeName"], {}).get("annotations") or {}):
            if PLAY in annotations:
                return json.loads(annotations[PLAY])
        return {}

    def _bind(self, pod):
        name = wanted_node(pod)
        if name is None:
            selector = pod["spec"].get("nodeSelector", {}).items()
            with self.lock:
                fits = [n for n, node in self.nodes.items() if node["open"] and selector <= node["labels"].items()]
            if not fits:
                time.sleep(0.5)
                self.seen.pop(pod["metadata"]["uid"], None)
                return
            name = min(fits)
        self.api.request("POST", self._path(pod, "/binding"), {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": name}})

    @staticmethod
    def _containers(pod, state, ready, kind="containers"):
        return [{"name": c["name"], "image": c["image"], "imageID": c["image"], "ready": ready, "restartCount": 0,
                 "started": ready, "state": state} for c in pod["spec"].get(kind, [])]

    def _start(self, pod):
        reason = self._play(pod).get("pending")
        if reason:
            waiting = {"waiting": {"reason": reason, "message": f"{reason}: played"}}
            self._status(pod, {"phase": "Pending", "containerStatuses": self._containers(pod, waiting, False)})
            return
        now = stamp()
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        self._status(
            pod,
            {
                "phase": "Running",
                "startTime": now,
                "hostIP": "127.0.0.1",
                "podIP": "10.244.0.1",
                "podIPs": [{"ip": "10.244.0.1"}],
                "initContainerStatuses": self._containers(pod, done, True, "initContainers"),
                "conditions": [
                    {"type": t, "status": "True", "lastTransitionTime": now}
                    for t in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
                ],
                "containerStatuses": self._containers(pod, {"running": {"startedAt": now}}, True),
            },
        )

    def _worked(self, pod):
        """What the node says to a Pod of kmm-upgrade, as an annotation of play would tell it; None if it is none."""
        node = self.nodes.get(pod["spec"]["nodeName"], {}).get("annotations") or {}
        if SSH not in node or (pod["metadata"].get("labels") or {}).get(WORKER[0]) != WORKER[1]:
            return None
        if "command" in pod["spec"]["containers"][0]:  # of Pods that try the network
            return {"stay": True} if pod["spec"]["containers"][0]["name"] == "listen" else None
        behind = json.loads(node[SSH])
        words = ["-" if word == CONFIG_FILE else word for word in pod["spec"]["containers"][0]["args"]]
        command = [behind["program"], "--", pod["spec"]["nodeName"], shlex.join(["kmm-worker", *words])]
        done = subprocess.run(
            command,
            input=(pod["metadata"].get("annotations") or {}).get(CONFIG, ""),
            capture_output=True,
            text=True,
            check=False,
            env=dict(os.environ, KMM_FAKE_NODES=behind["nodes"]),
        )
        if done.returncode == 255:
            return {"stay": True}
        return {"exitCode": done.returncode, "message": done.stdout.strip()[:4096]}

    def _end(self, pod):
        play = self._worked(pod) or self._play(pod)
        if play.get("stay"):
            return
        time.sleep(play.get("delayMs", 0) / 1000)
        code, now = play.get("exitCode", 0), stamp()
        ended = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now,
                                "finishedAt": now, "message": play.get("message", "")}}
        if code and pod["spec"]["restartPolicy"] == "OnFailure":
            loop = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
            again = [dict(c, restartCount=1, lastState=ended) for c in self._containers(pod, loop, False)]
            self._status(pod, {"containerStatuses": again})
            return
        self._status(pod, {
            "phase": "Failed" if code else "Succeeded", "containerStatuses": self._containers(pod, ended, False),
            "conditions": [{"type": t, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
                           for t in ("ContainersReady", "Ready")]})
        self._note_end(pod)

    def _note_end(self, pod):
        """Writes down when a Pod of kmm-upgrade had ended: a line "NAME MONOTONIC-SECONDS" in the file `pods` of its
        fleet."""
        node = self.nodes.get(pod["spec"]["nodeName"], {}).get("annotations") or {}
        try:
            with open(os.path.join(json.loads(node[SSH])["nodes"], "pods"), "a", encoding="utf-8") as file:
                file.write(f"{pod['metadata']['name']} {time.monotonic()}\n")
        except (KeyError, FileNotFoundError):
            pass  # no fleet, or one that is gone

    def _remove(self, pod):
        self.api.delete(self._path(pod), gracePeriodSeconds=0, preconditions={"uid": pod["metadata"]["uid"]})
