#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small API server on a loopback port that serves the objects of a directory, and runs a command against it.

Usage: fake_api.py [OPTION...] NAME=DIR... -- COMMAND...

Every NAME is a context of the kubeconfig that KUBECONFIG names while the command runs; its objects are those of DIR,
JSON documents. The first one is the current context. Exits like the command.

  --deny VERB:RESOURCE    403 for it, and access reviews say no; may be repeated
  --without NAME          this API group, or resource, is not there until somebody creates its definition; may be
                          repeated
  --refuse VERB:RESOURCE=TEXT  403 with that text for it, as admission says it; access reviews say yes
  --starting N            the first N requests are refused with 403, as by a server that has just been started; /readyz
                          says so
  --fail N:STATUS         the first N requests are answered with STATUS
  --budget-after N        a PodDisruptionBudget that allows nothing gives way after N refused evictions
  --mover N:STATUS        an admission webhook refuses the first N evictions with STATUS
  --kill N:WHEN:FILE      SIGKILLs the process whose number is in FILE before or after the Nth request is answered. In
                          place of N, patterns of "METHOD PATH" joined by commas: the request that fits the last,
                          after those before
  --clock SECONDS         how far its clock is ahead, as managedFields of what is applied say
  --log FILE              writes down the requests, one a line
  --dump FILE             writes the objects down when the command has ended, JSON
  --away VERB             no request is answered while a worker of this verb, as kubernetes-control-plane, runs in a Pod
  --namespaces            nothing is applied in a namespace of which there is no object
  --kubelet               DaemonSets have Pods where their nodeSelector says. Other Pods that name a node are run: by
                          `ssh -- NODE kmm-worker ARGUMENTS`, as played_kubelet.py says
  --controllers           more kinds, and controllers for them: played_controllers.py
  --policies              ValidatingAdmissionPolicies are served and bite
  --operator FAULTS       KMM's operator is played by scripted_operator.py, with these faults, separated by commas
"""
import argparse
import bisect
import copy
import datetime
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import urllib.parse

import fake_policies
import killing
import node_lifecycle
import played_controllers
import scripted_operator
from json_patch import json_patch
from played_kubelet import Kubelet
from scripted_operator import field_of, matches, merge

# plural, group, version, kind, namespaced
KINDS = [
    ("events", "", "v1", "Event", True),
    ("nodes", "", "v1", "Node", False), ("pods", "", "v1", "Pod", True), ("namespaces", "", "v1", "Namespace", False),
    ("secrets", "", "v1", "Secret", True), ("configmaps", "", "v1", "ConfigMap", True),
    ("daemonsets", "apps", "v1", "DaemonSet", True), ("leases", "coordination.k8s.io", "v1", "Lease", True),
    ("customresourcedefinitions", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", False),
    ("modules", "kmm.sigs.x-k8s.io", "v1beta1", "Module", True),
    ("nodemodulesconfigs", "kmm.sigs.x-k8s.io", "v1beta1", "NodeModulesConfig", False),
    ("moduleimagesconfigs", "kmm.sigs.x-k8s.io", "v1beta1", "ModuleImagesConfig", True),
    ("modulebuildsignconfigs", "kmm.sigs.x-k8s.io", "v1beta1", "ModuleBuildSignConfig", True),
    ("preflightvalidations", "kmm.sigs.x-k8s.io", "v1beta2", "PreflightValidation", False),
    ("specialresources", "sro.openshift.io", "v1beta1", "SpecialResource", False),
    ("clusterversions", "config.openshift.io", "v1", "ClusterVersion", False),
    ("imagedigestmirrorsets", "config.openshift.io", "v1", "ImageDigestMirrorSet", False),
    ("services", "", "v1", "Service", True),
    ("poddisruptionbudgets", "policy", "v1", "PodDisruptionBudget", True),
    ("managedclusters", "cluster.open-cluster-management.io", "v1", "ManagedCluster", False),
    ("managedclustermodules", "hub.kmm.sigs.x-k8s.io", "v1beta1", "ManagedClusterModule", False),
]
BY_KIND = {kind: (plural, group, version, namespaced) for plural, group, version, kind, namespaced in KINDS}


def read_documents(path):
    document = json.loads(path.read_text())
    return document["items"] if document["kind"].endswith("List") else [document]


class Cluster:
    def __init__(self, directory):
        self.objects, self.version, self.changed = {}, 100, threading.Condition()
        self.applied = {}  # what server-side apply got last, by key
        for path in sorted(pathlib.Path(directory).rglob("*")):
            if path.suffix == ".json":
                for document in read_documents(path):
                    self.put(document)
        self.events = []

    def put(self, document, kind="ADDED"):
        plural, _, _, namespaced = BY_KIND[document["kind"]]
        meta = document["metadata"]
        if namespaced:
            meta.setdefault("namespace", "default")
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        meta.setdefault("uid", f"00000000-0000-4000-8000-{self.version:012d}")
        if document["kind"] == "Node":
            node_lifecycle.taint_cordon(document)
        self.objects[(plural, meta.get("namespace", "") if namespaced else "", meta["name"])] = document
        if hasattr(self, "events"):
            self.events.append((self.version, plural, kind, copy.deepcopy(document)))
            self.changed.notify_all()

    def remove(self, key):
        self.version += 1
        self.events.append((self.version, key[0], "DELETED", self.objects.pop(key)))
        self.changed.notify_all()


def is_selected(document, query, namespace):
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, value = term.partition("=")
        if field_of(document, path) != value:
            return False
    if namespace and document["metadata"].get("namespace") != namespace:
        return False
    return matches(query.get("labelSelector", ""), document["metadata"].get("labels", {}))


def step_daemon_sets(cluster):
    """The Pods of every DaemonSet are where its nodeSelector says, and ready at once unless their image is "broken"."""
    for key, daemon_set in sorted(cluster.objects.items()):
        if key[0] != "daemonsets":
            continue
        meta, template = daemon_set["metadata"], daemon_set["spec"]["template"]
        wanted = template["spec"].get("nodeSelector", {})
        nodes = [item["metadata"]["name"] for other, item in sorted(cluster.objects.items()) if other[0] == "nodes"
                 and all(item["metadata"].get("labels", {}).get(name) == value for name, value in wanted.items())]
        names = {f'{meta["name"]}-{node}': node for node in nodes}
        ready = "False" if "broken" in template["spec"]["containers"][0]["image"] else "True"
        for name, node in names.items():
            if ("pods", meta["namespace"], name) not in cluster.objects:
                owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": meta["name"], "uid": meta["uid"]}
                cluster.put({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": node},
                             "metadata": {"name": name, "namespace": meta["namespace"], "ownerReferences": [owner],
                                          "labels": copy.deepcopy(template["metadata"]["labels"])},
                             "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}})
        for other, pod in sorted(cluster.objects.items()):
            references = pod["metadata"].get("ownerReferences", []) if other[0] == "pods" else []
            owners = [owner["uid"] for owner in references]
            if meta["uid"] in owners and other[2] not in names:
                cluster.remove(other)
        if daemon_set.get("status", {}).get("desiredNumberScheduled") != len(nodes):
            new = copy.deepcopy(daemon_set)
            new["status"] = {"desiredNumberScheduled": len(nodes)}
            cluster.put(new, "MODIFIED")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    options = None
    killing = None
    clusters = {}
    moved = 0  # evictions that were asked for
    refusals = -1  # how many evictions a budget refuses yet; below zero: for ever
    failures = 0
    lock = threading.Lock()

    def log_message(self, *arguments):
        pass

    def answer(self, document, status=200):
        body = json.dumps(document, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status, reason, message):
        self.answer({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message,
                     "code": status}, status)

    def served(self, cluster):
        return [row for row in KINDS if not {row[0], row[1]} & set(self.options.without)
                or ("customresourcedefinitions", "", f"{row[0]}.{row[1]}") in cluster.objects]

    def discover(self, cluster, parts):
        if parts == ["version"]:
            return self.answer({"gitVersion": "v1.34.0", "major": "1", "minor": "34"})
        group, version = ("", parts[1:2]) if parts[0] == "api" else ((parts[1:2] or [""])[0], parts[2:3])
        rows = [row for row in self.served(cluster) if row[1] == group]
        if not rows:
            return self.fail(404, "NotFound", "the server could not find the requested resource")
        if not version:
            versions = [{"groupVersion": f"{group}/{name}", "version": name}
                        for name in sorted({row[2] for row in rows})]
            return self.answer({"kind": "APIGroup", "name": group, "versions": versions,
                                "preferredVersion": versions[0]})
        rows = [row for row in rows if row[2] == version[0]]
        if not rows:
            return self.fail(404, "NotFound", "the server could not find the requested resource")
        return self.answer({"kind": "APIResourceList", "groupVersion": "/".join(filter(None, (group, version[0]))),
                            "resources": [{"name": row[0], "kind": row[3], "namespaced": row[4]} for row in rows]})

    def review(self, kind, body):
        if kind == "selfsubjectreviews":
            return self.answer({"kind": "SelfSubjectReview", "status": {"userInfo": {"username": "jane"}}}, 201)
        asked = body["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        allowed = f"{asked['verb']}:{resource}" not in self.options.deny
        return self.answer({"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}}, 201)

    def handle_request(self):
        if Kubelet.is_away.is_set():
            self.close_connection = True
            return
        with self.lock:
            is_last = self.killing.is_now(f"{self.command} {self.path}")
        if is_last:
            self.killing.kill("before")
        self.do_request()
        if is_last:
            self.killing.kill("after")

    def do_request(self):
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        parts = url.path.strip("/").split("/")
        with self.lock:
            if self.options.log:
                with open(self.options.log, "a", encoding="utf-8") as log:
                    log.write(f"{self.command} {urllib.parse.unquote(self.path)}\n")
            if Handler.failures > 0:
                Handler.failures -= 1
                return self.fail(self.options.fail_status, "", "the server is sad")
            if parts[1:] == ["readyz"]:
                return self.answer({}, 500 if self.options.starting > 0 else 200)
            if self.options.starting > 0:
                self.options.starting -= 1
                return self.fail(403, "Forbidden", f'forbidden: User "jane" cannot get path "/{"/".join(parts[1:])}"')
        cluster = self.clusters[parts.pop(0)]
        if parts[0] == "version" or len(parts) < (3 if parts[0] == "api" else 4):
            return self.discover(cluster, parts)
        group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        if rest[0] in ("selfsubjectreviews", "selfsubjectaccessreviews"):
            return self.review(rest[0], body)
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (rest + ["", ""])[:3]
        row = next((row for row in self.served(cluster) if (row[0], row[1], row[2]) == (plural, group, version)), None)
        if row is None:
            return self.fail(404, "NotFound", "the server could not find the requested resource")
        verb = {"GET": "get" if name else "watch" if "watch" in query else "list", "POST": "create", "PUT": "update",
                "PATCH": "patch", "DELETE": "delete"}[self.command]
        if f"{verb}:{'/'.join(filter(None, (plural, subresource)))}" in self.options.deny:
            return self.fail(403, "Forbidden",
                             f'{plural}{group and "." + group} is forbidden: User "jane" cannot {verb} resource "{plural}" '
                             f'in API group "{group}" at the cluster scope')
        for entry in self.options.refuse:
            what, _, text = entry.partition("=")
            if what == f"{verb}:{plural}":
                return self.fail(403, "Forbidden", f'{plural} "{body["metadata"]["name"]}" is forbidden: {text}')
        if verb != "delete" and (text := fake_policies.refusal(cluster, plural, body)):
            return self.fail(403, "Forbidden", text)
        with cluster.changed:
            if verb == "list":
                return self.list(cluster, row, namespace, query)
            if verb != "watch":
                if subresource == "log":
                    query["log"] = "yes"
                self.single(cluster, row, (plural, namespace, name), body, query)
                if self.options.controllers and self.command != "GET":
                    played_controllers.step(cluster)
                if self.options.kubelet and self.command != "GET" and plural in ("nodes", "daemonsets"):
                    step_daemon_sets(cluster)
                return None
        return self.watch(cluster, row, namespace, query)

    def list(self, cluster, row, namespace, query):
        found = [item for key, item in sorted(cluster.objects.items()) if key[0] == row[0] and is_selected(item, query,
            namespace)]
        start = int(query.get("continue", 0))
        limit = int(query.get("limit", 0)) or len(found)
        meta = {"resourceVersion": str(cluster.version)}
        if start + limit < len(found):
            meta["continue"] = str(start + limit)
        self.answer({"kind": row[3] + "List", "apiVersion": "/".join(filter(None, row[1:3])), "metadata": meta,
                     "items": found[start:start + limit]})

    def single(self, cluster, row, key, body, query):
        dry = query.get("dryRun") == "All"
        if query.pop("log", ""):
            pod = cluster.objects.get(key)
            return self.log_of(pod, Kubelet.logs[key] if key in Kubelet.logs else pod
                               and played_controllers.log_of(pod))
        if self.command == "POST" and key[2]:
            return self.evict(cluster, key, dry)
        if self.command == "POST":
            key = (key[0], key[1], body["metadata"]["name"])
            if key in cluster.objects:
                return self.fail(409, "AlreadyExists", f'{row[0]} "{key[2]}" already exists')
            body["metadata"]["managedFields"] = [{"manager": query.get("fieldManager"), "operation": "Update"}]
            if not dry:
                cluster.put(body)
                if self.options.kubelet and row[0] == "pods" and body["spec"].get("nodeName"):
                    Kubelet(cluster, key)
            return self.answer(body, 201)
        current = cluster.objects.get(key)
        kind = self.headers.get("Content-Type", "")
        if current is None and "apply-patch" not in kind:
            return self.fail(404, "NotFound", f'{row[0]} "{key[2]}" not found')
        if self.command == "GET":
            return self.answer(Kubelet.renewed(current) if key[:2] == ("leases", "kube-node-lease") else current)
        if self.command == "DELETE":
            status = current.get("status", {})
            running = any("running" in entry["state"] for entry in status.get("containerStatuses", []))
            is_forced = (body or {}).get("gracePeriodSeconds") == 0
            if row[0] == "pods" and self.options.kubelet and running and status["phase"] == "Running" and not is_forced:
                new = copy.deepcopy(current)
                new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                cluster.put(new, "MODIFIED")
            else:
                cluster.remove(key)
            return self.answer(current)
        if current is None and self.options.namespaces and key[1] and ("namespaces", "", key[1]) not in cluster.objects:
            return self.fail(404, "NotFound", f'namespaces "{key[1]}" not found')
        new = copy.deepcopy(current) if current else {}
        meta = body.get("metadata", {}) if isinstance(body, dict) else {}
        if "resourceVersion" in meta and current and meta["resourceVersion"] != current["metadata"]["resourceVersion"]:
            return self.fail(409, "Conflict",
                             "the object has been modified; please apply your changes to the latest version")
        if self.command == "PUT":
            new = body
        elif "json-patch" in kind:
            if not json_patch(new, body):
                return self.fail(422, "Invalid", "the server rejected our request due to an error in our request")
        else:
            owner = played_controllers.other_owner(current, body) if "apply-patch" in kind else None
            if owner and query.get("force") != "true":
                return self.answer(played_controllers.conflict(*owner), 409)
            if "apply-patch" in kind and self.options.controllers:
                played_controllers.drop(new, cluster.applied.get(key, {}), body)
                if not dry:
                    cluster.applied[key] = copy.deepcopy(body)
            merge(new, body)
            if self.options.controllers:
                played_controllers.count(current, new)
        if self.options.clock and "apply-patch" in kind:
            now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.options.clock)
            new["metadata"]["managedFields"] = [{"manager": query.get("fieldManager"), "operation": "Apply",
                                                 "time": now.strftime("%Y-%m-%dT%H:%M:%SZ")}]
        if not dry and new != current:
            cluster.put(new, "MODIFIED")
        return self.answer(new)

    def log_of(self, pod, text):
        if pod is None:
            return self.fail(404, "NotFound", "pods not found")
        text = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        return self.wfile.write(text)

    def evict(self, cluster, key, dry):
        """As the eviction API: budgets decide, several of them never allow it."""
        pod = cluster.objects.get(key)
        if pod is None:
            return self.fail(404, "NotFound", f'pods "{key[2]}" not found')
        moved, _, status = self.options.mover.partition(":")
        Handler.moved += 1
        if Handler.moved <= int(moved):
            return self.fail(int(status), "", f'admission webhook "mover.example" denied the request: {key[2]} moves')
        labels = pod["metadata"].get("labels", {})
        budgets = [item for (plural, namespace, _), item in cluster.objects.items()
                   if plural == "poddisruptionbudgets" and namespace == key[1]
                   and all(labels.get(name) == value for name,
                           value in item["spec"]["selector"]["matchLabels"].items())]
        if len(budgets) > 1:
            return self.fail(500, "InternalError",
                             "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
        for budget in budgets:
            status = budget.setdefault("status", {})
            if Handler.refusals == 0:
                status["disruptionsAllowed"] = 1
            if status.get("disruptionsAllowed", 0) < 1:
                Handler.refusals -= 1
                name, needed, has = budget["metadata"]["name"], status.get("desiredHealthy",
                                                                           0), status.get("currentHealthy", 0)
                return self.answer({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                    "reason": "TooManyRequests", "code": 429,
                                    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                                    "details": {"causes": [{"reason": "DisruptionBudget",
                                                            "message": f"The disruption budget {name} needs {needed} "
                                                            f"healthy pods and has {has} currently"}]}}, 429)
            status["disruptionsAllowed"] -= 1
        if not dry:
            cluster.remove(key)
        return self.answer({"kind": "Status", "apiVersion": "v1", "status": "Success"}, 201)

    def watch(self, cluster, row, namespace, query):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen = int(query.get("resourceVersion") or 0)
        end = time.monotonic() + float(query.get("timeoutSeconds", 300))
        while time.monotonic() < end:
            with cluster.changed:
                first = bisect.bisect_right(cluster.events, seen, key=lambda event: event[0])
                new = [event for event in cluster.events[first:] if event[1] == row[0]]
                if not new:
                    cluster.changed.wait(min(1.0, max(0.0, end - time.monotonic())))
            for number, _, kind, document in new:
                seen = number
                if not is_selected(document, query, namespace):
                    continue
                line = json.dumps({"type": kind, "object": document}).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        try:
            self.handle_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET


def kubeconfig(names, port):
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": names[0],
        "clusters": [{"name": name, "cluster": {"server": f"http://127.0.0.1:{port}/{name}"}} for name in names],
        "users": [{"name": "jane", "user": {"token": "secret"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "jane"}} for name in names]}, indent=1)


def options_of(words):
    """What a command line without the command says; also for servers that are begun by other programs."""
    parser = argparse.ArgumentParser()
    for name in ("--deny", "--refuse", "--without"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("--starting", type=int, default=0)
    parser.add_argument("--clock", type=int, default=0)
    parser.add_argument("--fail", default="0:503")
    parser.add_argument("--budget-after", type=int, default=-1)
    parser.add_argument("--mover", default="0:429")
    parser.add_argument("--kill", default="0:before:")
    for name in ("--log", "--dump", "--operator", "--away"):
        parser.add_argument(name)
    for name in ("--kubelet", "--policies", "--controllers", "--namespaces"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("clusters", nargs="+")
    options = parser.parse_args(words)
    options.fail_count, options.fail_status = map(int, options.fail.split(":"))
    return options


def main():
    split = sys.argv.index("--")
    options = options_of(sys.argv[1:split])
    if options.policies:
        fake_policies.serve(KINDS, BY_KIND)
    Handler.options, Handler.failures, Handler.refusals = options, options.fail_count, options.budget_after
    Kubelet.away_verb = options.away
    Handler.killing = killing.KillAt(options.kill)
    if options.controllers:
        KINDS.extend(played_controllers.KINDS)
        BY_KIND.update({kind: (plural, group, version, namespaced) for plural, group, version, kind,
                        namespaced in KINDS})
    Handler.clusters = {name: Cluster(directory) for name, directory in (entry.partition("=")[::2]
                                                                         for entry in options.clusters)}
    if options.controllers:
        for cluster in Handler.clusters.values():
            played_controllers.begin(cluster)
    if options.operator is not None:
        for cluster in Handler.clusters.values():
            scripted_operator.begin(cluster, options.operator.split(","))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # a client that was killed
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    home = pathlib.Path(os.environ["HOME"])
    config = home / "kubeconfig"
    config.write_text(kubeconfig(list(Handler.clusters), server.server_port))
    done = subprocess.run(sys.argv[split + 1:], env=dict(os.environ, KUBECONFIG=str(config)), check=False)
    if options.dump:
        dump = {name: [item for _, item in sorted(cluster.objects.items())] for name,
                cluster in Handler.clusters.items()}
        pathlib.Path(options.dump).write_text(json.dumps(dump, indent=1, sort_keys=True))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
