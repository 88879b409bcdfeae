# SPDX-License-Identifier: Apache-2.0
"""A kubeadm cluster of any size whose nodes answer at once, and what kmm-upgrade asks of it.

The API server is that of fake_api.py. Nodes are reached by ssh or by Pods. What a node answers is what the real
kmm-worker answers on one of three model nodes of fake_kubernetes_fleet.py, the first and the second control plane and
a worker, which carry out each step once; other nodes repeat the answer in their own name.
"""
import collections
import copy
import datetime
import http.server
import json
import os
import pathlib
import re
import shlex
import socketserver
import subprocess
import sys
import threading
import time
import urllib.parse

import fake_api
import fake_kubernetes_fleet
import fake_policies
import killing
import kubeadm_dump
from played_kubelet import message_of

FROM, TARGET = fake_kubernetes_fleet.FROM, fake_kubernetes_fleet.TARGET
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
IMAGE = "registry.example/kmm-worker@sha256:" + "0" * 64
START = ("start", "kubernetes", TARGET, "--switch", "binaries", "--no-etcd-snapshot")  # model nodes have no etcd
SSH = """#!{python} -IS
import json, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({socket!r})
connection.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
code, out, err = json.loads(connection.makefile().read())
sys.stderr.write(err)
sys.stdout.write(out)
sys.exit(code)
"""

Request = collections.namedtuple("Request", "verb path bytes")
Walk = collections.namedtuple("Walk", "code said requests calls steps seconds processor record written peak_kib")


class Nodes:
    """What nodes answer; `cluster` is the Cluster of fake_api.py that follows them. They begin with the version
    `first`."""

    def __init__(self, directory, bin_directory, fake_directory, first=FROM):
        self.directory, self.bin, self.first = directory, bin_directory, first
        fake_kubernetes_fleet.build(directory, fake_directory / "kubernetes-node", 2, 1, first, TARGET)
        self.fast_sleep = fake_directory.parent / "lib/libfast_sleep.so"
        self.answers, self.versions, self.calls = {}, {}, []
        self.mutex, self.cluster = threading.Lock(), None

    def ask_model(self, model, words):
        environment = dict(
            os.environ,
            PATH=f"{self.directory}/bin:{self.bin}:{os.environ['PATH']}",
            KMM_FAKE_NODES=str(self.directory / "nodes"),
            KMM_FAST_SLEEP=str(self.fast_sleep),
        )
        command = " ".join(shlex.quote(word) for word in ["kmm-worker", *words])
        done = subprocess.run(
            [self.directory / "bin/ssh", "--", model, command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def call(self, node, words):
        """(exit code, document) of `kmm-worker WORDS` on the node."""
        model = node if node == "cp1" else "cp2" if node.startswith("cp") else "w1"
        with self.mutex:
            self.calls.append((node, words[1]))
            before = self.versions.get(node, (self.first, self.first))
            key = (model, before, *words)
            if key not in self.answers:
                self.answers[key] = self.ask_model(model, words)
            code, text = self.answers[key]
            if code == 0 and words[1] in ("control-plane", "kubelet", "restore"):
                version = words[words.index("--target") + 1] if "--target" in words else self.first
                self.versions[node] = (before[0], version) if words[1] == "kubelet" else (version, before[1])
                if words[1] == "restore":
                    self.answers.clear()  # the model was brought back, too
                self.follow(node)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = re.sub(r'("time": ?")[^"]*', rf"\g<1>{now}", text)
        return code, re.sub(rf"\b{model}\b", node, text)

    def follow(self, node):
        """Brings the objects to what the node has become, as kubelets and kubeadm do."""
        plane, kubelet = self.versions[node]
        with self.cluster.changed:
            for component in COMPONENTS if node.startswith("cp") else ():
                pod = copy.deepcopy(self.cluster.objects[("pods", "kube-system", f"{component}-{node}")])
                for each in (pod["spec"]["containers"][0], pod["status"]["containerStatuses"][0]):
                    each["image"] = f"registry.k8s.io/{component}:{plane}"
                self.cluster.put(pod, "MODIFIED")
            found = copy.deepcopy(self.cluster.objects[("nodes", "", node)])
            found["status"]["nodeInfo"]["kubeletVersion"] = kubelet
            self.cluster.put(found, "MODIFIED")
            config = copy.deepcopy(self.cluster.objects[("configmaps", "kube-system", "kubeadm-config")])
            config["data"] = {key: text.replace(FROM, plane) for key, text in config["data"].items()}
            if node == "cp1":
                self.cluster.put(config, "MODIFIED")


class Kubelet(fake_api.Kubelet):
    nodes = None

    def run(self):
        pod = self.cluster.objects[self.key]
        self.tell("Running", {"running": {}})
        code, text = self.nodes.call(pod["spec"]["nodeName"], pod["spec"]["containers"][0]["args"])
        self.logs[self.key] = text
        return self.ended(code, message_of(text))


class Ssh(socketserver.StreamRequestHandler):
    nodes = None

    def handle(self):
        words = json.loads(self.rfile.readline())
        node, line = words[words.index("--") + 1:][:2]
        command = shlex.split(line)
        command = command[command.index("kubernetes"):]
        code, text = self.nodes.call(node, command)
        err = "debug1: Sending command: kmm-worker\nkmm-worker-started\n"
        self.wfile.write(json.dumps((code, text, err)).encode())


class Counted:
    """A stream that knows how much was written to it."""

    def __init__(self, stream):
        self.stream, self.bytes = stream, 0

    def write(self, data):
        self.bytes += len(data)
        return self.stream.write(data)

    def __getattr__(self, name):
        return getattr(self.stream, name)


class Handler(fake_api.Handler):
    requests = []

    def setup(self):
        super().setup()
        self.wfile = Counted(self.wfile)

    def handle_request(self):
        before = self.wfile.bytes
        try:
            super().handle_request()
        finally:
            self.requests.append(
                Request(self.command, urllib.parse.unquote(self.path[len("/main") :]), self.wfile.bytes - before)
            )


def write_objects(directory, names):
    items = kubeadm_dump.cluster([f"{name}={FROM}" + (f"/{FROM}" if name.startswith("cp") else "") for name in names])
    items = [item for item in items if item["kind"] in ("Node", "Pod", "ConfigMap")]
    items.append(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "owner", "namespace": "kube-system"}}
    )
    items.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u"}})
    for name in names:
        items.append({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": name},
                      "metadata": {"name": name, "namespace": "kube-node-lease"}})
    directory.mkdir()
    (directory / "all.json").write_text(json.dumps({"kind": "List", "items": items}))


def serve(objects, nodes):
    """The API server and what plays ssh, begun."""
    fake_api.Kubelet = Kubelet
    fake_api.step_daemon_sets = lambda cluster: None  # what the one there is has made is there
    if not any(row[0] == fake_policies.KINDS[0][0] for row in fake_api.KINDS):
        fake_policies.serve(fake_api.KINDS, fake_api.BY_KIND)
    fake_policies.refused["late"] = fake_policies.LATE
    Handler.options = fake_api.options_of(["--kubelet", "main"])
    Handler.killing, Handler.requests = killing.KillAt("0:before:"), []
    nodes.cluster = fake_api.Cluster(objects)
    Handler.clusters = {"main": nodes.cluster}
    Kubelet.nodes = Ssh.nodes = nodes
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ssh = socketserver.ThreadingUnixStreamServer(str(nodes.directory / "ssh.socket"), Ssh)
    for each in (server, ssh):
        each.daemon_threads, each.handle_error = True, lambda *_: None
        threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server, ssh


def processor_seconds(pid):
    """Of the process itself, without its children. It has ended and was not waited for."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(command, environment, log):
    """(exit code, seconds, processor seconds, bytes written, peak of memory) of a process."""
    begun = time.monotonic()
    with open(log, "wb") as file:
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    seconds, processor = time.monotonic() - begun, processor_seconds(child.pid)
    written = int(re.search(r"wchar: (\d+)", pathlib.Path(f"/proc/{child.pid}/io").read_text())[1])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, seconds, processor, written, usage.ru_maxrss


def walk(directory, bin_directory, fake_directory, control_planes, workers, via, *options):
    """A whole upgrade below `directory`, which is made."""
    directory.mkdir()
    nodes = Nodes(directory / "models", bin_directory, fake_directory)
    write_objects(directory / "objects", fake_kubernetes_fleet.names(control_planes, workers))
    server, ssh = serve(directory / "objects", nodes)
    (directory / "kubeconfig").write_text(fake_api.kubeconfig(["main"], server.server_port))
    program = directory / "bin/ssh"
    program.parent.mkdir()
    program.write_text(SSH.format(python=sys.executable, socket=str(nodes.directory / "ssh.socket")))
    program.chmod(0o755)
    reach = ("--via", "self", "--worker-image", IMAGE) if via == "self" else ("--via", via)
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(directory), "LC_ALL": "C.UTF-8",
                   "KUBECONFIG": str(directory / "kubeconfig"), "KMM_STATE_DIR": str(directory / "state")}
    log = directory / "log"
    try:
        code, seconds, processor, written, peak = run(
            [bin_directory / "kmm-upgrade", *START, *reach, *options], environment, log
        )
    finally:
        for each in (server, ssh):
            each.shutdown()
            each.server_close()
    journal = directory / "state/journal.ndjson"
    lines = journal.read_text().splitlines() if journal.exists() else []
    events = [payload for payload in (json.loads(line)["payload"] for line in lines) if "event" in payload]
    steps = [event for event in events if event["event"] == "intent" and event.get("node")]
    record = sum(path.stat().st_size for path in (directory / "state").rglob("*") if path.is_file())
    return Walk(code, log.read_text(), Handler.requests, nodes.calls, steps, seconds, processor, record, written, peak)


def of_node(walked, node):
    """What one node is asked for: its steps, calls, and requests that name it, each without its name."""
    pattern = re.compile(rf"(?<![\w]){node}(?![\w])")
    requests = [
        f"{each.verb} {pattern.sub('NODE', each.path)}" for each in walked.requests if pattern.search(each.path)
    ]
    return {
        "steps": [event["step"] for event in walked.steps if event["node"] == node],
        "calls": [verb for name, verb in walked.calls if name == node],
        "requests": sorted(requests),
    }
