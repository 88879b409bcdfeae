# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade on a live cluster: three nodes from v1 to v2, killed at any request, with the API server killed at any
request."""
import difflib
import os
import re
import signal
import statistics
import time

from testbed import etcd, manifests, nodes
from testbed.fleet import KMM, Fleet
from testbed.proxy import Proxy
from testbed.testing import ROOT, ClusterCase

FULL = bool(os.environ.get("KMM_FULL"))
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


def differences(expected, found):
    return "\n".join(difflib.unified_diff(expected, found, "expected", "found", "", "", 0, ""))


def node_of(record):
    """The node that a request changes, by itself or by a Pod that loads or unloads, or None."""
    found = re.search(r"/(?:nodes|nodemodulesconfigs)/([^/?]+)", record.path)
    if found:
        return found[1]
    thing = record.document() if record.method == "POST" else None
    if thing and thing.get("kind") == "NodeModulesConfig":
        return thing["metadata"]["name"]
    if thing and thing.get("kind") == "Pod" and thing["spec"]["containers"][0]["args"][0] in ("load", "unload"):
        return thing["spec"]["nodeName"]
    return None


class Broken(Exception):
    """What must hold of the requests of a run does not."""


def check_requests(fleet, records):
    """What must hold of all requests of a run: one node after the other, each in one piece; nobody's cordon lifted;
    nothing is left that was created, except what shall stay."""
    walked, left = [], {}
    for record in (r for r in records if r.changes):
        node = node_of(record)
        if node and (not walked or walked[-1] != node):
            if node in walked:
                raise Broken(f"{node} is written to after {walked[-1]} was begun: {record}")
            walked.append(node)
        if node and node not in fleet.names:
            raise Broken(f"a node that is not of this run: {record}")
        if b'"unschedulable"' in record.body:
            raise Broken(f"a cordon is changed: {record}")
        if record.method == "POST" and record.status == 201:
            thing = record.document()
            if thing["kind"] != "NodeModulesConfig":
                left[f"{record.resource}/{thing['metadata']['name']}"] = record
        if record.method == "DELETE":
            left.pop(record.resource, None)
    if left:
        raise Broken(f"created and never deleted: {'; '.join(map(str, left.values()))}")
    if fleet.most_without() > 1:
        raise Broken(f"{fleet.most_without()} nodes were without their module at once")


class Walk(ClusterCase):
    """An upgrade with all that shall be true when it has ended."""

    def test_by_ssh(self):
        self.walk("ssh")

    def test_by_worker_pods(self):
        records = self.walk("self")
        pods = [r for r in records if r.method == "POST" and r.resource.endswith("/pods")]
        print(f"{len(pods)} Pods, {len(records)} requests for three nodes")
        self.assertGreater(len(pods), 6)

    def walk(self, via):
        fleet = Fleet(self, f"walk-{via}", cordoned=(1,), via=via)
        fleet.install()
        fleet.cordon()
        before = fleet.live()
        fleet.edit("v2")
        with Proxy(self.cluster) as proxy:
            said = fleet.run(*fleet.start("v2"), "--kubeconfig", fleet.access(proxy.port))
            check_requests(fleet, proxy.records)
            changing, records = proxy.changing(), list(proxy.records)
        self.assertNotIn("warning", said)
        self.assertEqual([], [str(record) for record in changing if record.status >= 300])
        self.assertEqual([], list(self.api.items(f"/api/v1/namespaces/{fleet.namespace}/pods")))
        self.assertEqual({name for name in before if before[name] != fleet.live()[name]}, set(fleet.names), said)
        for name in fleet.names:
            node = self.api.get(f"/api/v1/nodes/{name}")
            labels = {k: v for k, v in node["metadata"]["labels"].items() if fleet.namespace in k}
            self.assertEqual(labels, {
                f"kmm.node.kubernetes.io/version-module.{fleet.namespace}.{fleet.name}": "v2",
                f"beta.kmm.node.kubernetes.io/version-worker-pod.{fleet.namespace}.{fleet.name}": "v2",
                f"beta.kmm.node.kubernetes.io/version-schedule-pod.{fleet.namespace}.{fleet.name}": "v2",
                f"kmm.node.kubernetes.io/{fleet.namespace}.{fleet.name}.ready": "",
                f"kmm.node.kubernetes.io/{fleet.namespace}.{fleet.name}.version.ready": "v2"})
            self.assertEqual(node["spec"].get("unschedulable", False), name in fleet.cordoned)
            config = self.api.get(f"{KMM}/nodemodulesconfigs/{name}")
            for part in ("spec", "status"):
                (entry,) = config[part]["modules"]
                self.assertEqual((entry["name"], entry["namespace"]), (fleet.name, fleet.namespace))
                self.assertEqual(entry["config"]["containerImage"], f"registry.example/{fleet.name}:v2")
        # What was done is what kmm-plan wants: nothing is left to do.
        shown = self.documents("kmm-plan", "show", *fleet.names, "--kubeconfig", fleet.access())[0]
        ours = [entry for entry in shown["entries"] if entry["module"] == fleet.name]
        self.assertEqual([entry["action"] for entry in ours], ["keep"] * len(fleet.names))
        return records

    def test_what_others_write_meanwhile_stays(self):
        fleet = Fleet(self, "rival")
        fleet.install()
        fleet.edit("v2")
        written = {}

        def interfere(record, moment):
            node = node_of(record)
            if moment == "before" and record.changes and "/nodes/" in record.path:
                number = written[node] = written.get(node, 0) + 1
                self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"rival": f"wrote-{number}"}},
                                                         "spec": {"unschedulable": number % 2 == 1}})
        with Proxy(self.cluster) as proxy:
            proxy.reset(interfere)
            fleet.run(*fleet.start("v2"), "--kubeconfig", fleet.access(proxy.port))
        self.assertEqual(set(written), set(fleet.names))
        for name, number in written.items():
            node = self.api.get(f"/api/v1/nodes/{name}")
            self.assertEqual(node["metadata"]["labels"]["rival"], f"wrote-{number}")
            self.assertEqual(node["spec"].get("unschedulable", False), number % 2 == 1)
            self.assertEqual(
                node["metadata"]["labels"][f"kmm.node.kubernetes.io/{fleet.namespace}.{fleet.name}.version.ready"], "v2"
            )


    def test_a_cordon_that_somebody_else_sets_after_ours_was_lifted_stays(self):
        fleet = Fleet(self, "cordons", count=1)
        fleet.install()
        fleet.edit("v2")
        node, done = f"/api/v1/nodes/{fleet.names[0]}", []

        def interfere(record, moment):
            cordoned = self.api.get(node)["spec"].get("unschedulable") if record.changes and not done else False
            if cordoned and moment == "before":
                done.append(record)
                for cordon in (None, True):
                    self.api.patch(node, {"spec": {"unschedulable": cordon}})
        with Proxy(self.cluster) as proxy:
            proxy.reset(interfere)
            said = fleet.run(*fleet.start("v2", "--drain"), "--kubeconfig", fleet.access(proxy.port))
        self.assertEqual(len(done), 1)
        self.assertIn("left cordoned (cordoned by someone else)", said)
        stored = self.api.get(node)
        self.assertTrue(stored["spec"].get("unschedulable"))
        self.assertNotIn("kmmtools.dev/cordoned-by", stored["metadata"].get("annotations", {}))


class Killer:
    """A run that is ended at a request, either side of it, then resumed, comes to the end of a run that was left alone.
    Without
    KMM_FULL every `share`-th request is tried."""
    via = None
    share = server_share = 1

    def setUp(self):
        super().setUp()
        self.fleet = Fleet(self, f"killed-{self.via}", cordoned=(1,), via=self.via)
        self.fleet.install()
        self.fleet.cordon()
        self.fleet.edit("v2")
        self.saved = self.fleet.save()
        self.proxy = Proxy(self.cluster)
        self.addCleanup(self.proxy.close)
        self.access = self.fleet.access(self.proxy.port, self.token())
        begun = time.monotonic()
        self.fleet.run(*self.fleet.start("v2"), "--kubeconfig", self.access)
        self.took = time.monotonic() - begun
        records = self.proxy.reset()
        check_requests(self.fleet, records)
        self.requests = len(records)
        self.expected = self.fleet.outcome()

    def token(self):
        """Of an account that has its rights by a role: a server that was just started knows no roles for a moment. For
        a day: all requests take hours."""
        self.namespace("kmm-tools")
        for name in ("rbac/upgrade.yaml", "rbac-everywhere", "rbac-drain"):
            for thing in manifests.apply(self.api, ROOT / "manifests" / name):
                self.addCleanup(self.api.delete, self.api.path_of(thing))
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86400},
        }
        path = "/api/v1/namespaces/kmm-tools/serviceaccounts/kmm-upgrade/token"
        return self.api.request("POST", path, request)["status"]["token"]

    def go_on(self):
        """What a person does after a crash: resume, or start again when nothing was recorded."""
        if self.fleet.recorded():
            return self.fleet.run("resume")
        # The Lease of a process that is certainly gone, but left no record: nobody waits here until its time is over.
        held = [lease["spec"].get("holderIdentity") for lease in self.api.items(LEASES.format(self.fleet.namespace))]
        freed = ("--break-lock", held[0]) if held and held[0] else ()
        return self.fleet.run(*self.fleet.start("v2"), "--kubeconfig", self.access, *freed)

    def fault_of(self, said):
        """"" or how the end differs from that of a run that was left alone."""
        found = differences(self.expected, self.fleet.outcome())
        try:
            check_requests(self.fleet, self.proxy.records)
        except Broken as error:
            found += f"\n{error}"
        return f"{found}\n{said[-2000:]}" if found else ""

    def killed_at(self, number, moment):
        """Kills the command at that request and goes on; None if there was no such request, else the fault or ""."""
        self.saved.restore()
        hit = []

        def kill(record, when):
            if record.number == number and when == moment and not hit:
                hit.append(record)
                os.kill(child.pid, signal.SIGKILL)
            return not hit
        self.proxy.reset()
        with self.proxy.turn:  # no request before there is someone to kill
            self.proxy.hook = kill
            child = self.fleet.begin(*self.fleet.start("v2"), "--kubeconfig", self.access)
        said, _ = child.communicate(timeout=600)
        self.proxy.hook = None
        if not hit:
            self.assertEqual(child.returncode, 0, said)
            return None
        self.assertEqual(child.returncode, -signal.SIGKILL, said)
        said = self.go_on()
        return self.fault_of(said)

    def cases(self, moments, share):
        """(request, moment) for all requests, or every `share`-th of them, at alternating moments."""
        if FULL:
            return [(number, moment) for number in range(1, self.requests + 1) for moment in moments]
        return [(number, moments[i % len(moments)]) for i, number in enumerate(range(1, self.requests + 1, share))]

    def report(self, what, cases, missed, faults, begun):
        print(
            f"{what}, via {self.via}: {self.requests} requests in {self.took:.1f} s when left alone; {len(cases)} "
            f"runs ended at one"
            f" ({missed} of them had fewer requests) in {time.monotonic() - begun:.0f} s, {len(faults)} exceptions"
        )
        self.assertEqual([], faults)

    def test_killed_at_each_request(self):
        begun, missed, faults = time.monotonic(), 0, []
        cases = self.cases(("before", "after"), self.share)
        for number, moment in cases:
            fault = self.killed_at(number, moment)
            missed += fault is None
            if fault:
                faults.append(f"killed {moment} request {number}: {fault}")
        self.report("kmm-upgrade killed", cases, missed, faults, begun)

    def server_killed_at(self, number, moment):
        """Kills the API server at that request, and starts it again; the run must wait and end by itself."""
        self.saved.restore()
        hit = []

        def kill(record, when):
            if record.number == number and when == moment and not hit:
                hit.append(record)
                self.cluster.kill_apiserver()
                self.cluster.start_apiserver()
                return False
            return True
        self.proxy.reset(kill)
        said = self.fleet.run(*self.fleet.start("v2"), "--kubeconfig", self.access)
        self.proxy.hook = None
        if not hit:
            return None
        self.cluster.wait_ready()
        return self.fault_of(said)

    def test_the_api_server_killed_at_each_request(self):
        begun, missed, faults = time.monotonic(), 0, []
        cases = self.cases(("before", "after"), self.server_share)
        for number, moment in cases:
            fault = self.server_killed_at(number, moment)
            missed += fault is None
            if fault:
                faults.append(f"API server killed {moment} request {number}: {fault}")
        self.report("API server killed", cases, missed, faults, begun)


class KilledBySsh(Killer, ClusterCase):
    via, share, server_share = "ssh", 6, 33


class KilledByPods(Killer, ClusterCase):
    via, share, server_share = "self", 40, 120


class Scale(ClusterCase):
    """What a step costs does not depend on how many nodes there are, and hardly adds to what its Pods take."""

    def requests_per_node(self, others, via="ssh", name=None):
        """Requests, and seconds beyond those of the Pods, from the first write to one node to that of the next one."""
        name = name or f"scale-{via}-{others}"
        etcd.flood(
            self.cluster, [nodes.node(f"{name}-other-{i:03}", labels={"fleet": name}) for i in range(others - 3)]
        )
        self.addCleanup(etcd.drain, self.cluster, f"{name}-other-")
        fleet = Fleet(self, name, via=via)
        self.wait(
            "all nodes",
            lambda: sum(n["metadata"]["name"].startswith(name) for n in self.api.items("/api/v1/nodes")) == others,
        )
        only = [word for node in fleet.names for word in ("--node", node)]
        with Proxy(self.cluster) as proxy:
            begun = time.monotonic()
            fleet.run(*fleet.start("v1", *only), "--kubeconfig", fleet.access(proxy.port))
            took = time.monotonic() - begun
            check_requests(fleet, proxy.records)
            first = [
                next(i for i, r in enumerate(proxy.records) if r.changes and node_of(r) == node) for node in fleet.names
            ]
            steps = list(zip(first, first[1:]))
            requests = statistics.mean(later - earlier for earlier, later in steps)
            rests, pods = [], 0
            for earlier, later in steps:
                made = [r for r in proxy.records[earlier:later] if r.method == "POST" and r.resource.endswith("/pods")]
                lives = [fleet.pod_took(r.document()["metadata"]["name"], r.time) for r in made]
                rests.append(proxy.records[later].time - proxy.records[earlier].time - sum(lives))
                pods += len(lives)
            print(
                f"{others} nodes, via {via}: {requests:.1f} requests a node, {len(proxy.records)} in all, {took:.1f} "
                f"s; a node has "
                f"{pods / len(steps):.1f} Pods and takes {statistics.mean(rests):.2f} s besides"
            )
            return requests, max(rests)

    def plain_write(self, name):
        """Seconds that one write to the API server takes now, the median of many: other tests run beside this one."""
        took = []
        for number in range(40):
            begun = time.monotonic()
            self.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"plain": str(number)}}})
            took.append(time.monotonic() - begun)
        return statistics.median(took)

    def test_requests_per_node(self):
        few, many = self.requests_per_node(50)[0], self.requests_per_node(500)[0]
        self.assertLessEqual(many, few + 1)

    def test_what_a_step_adds_to_its_pods(self):
        """A second at most; on a machine that is busy otherwise, what six times as many plain writes take: each request
        of a step wakes five processes, one after the other. The best of three counts."""
        for attempt in range(3):
            name = f"scale-self-500-{attempt}"
            requests, rest = self.requests_per_node(500, "self", name)
            self.assertLessEqual(requests, 80)
            limit = max(1.0, 6 * requests * self.plain_write(f"{name}-a"))
            print(f"a step takes {rest:.2f} s besides its Pods, at most {limit:.2f} s")
            if rest <= limit:
                return
        self.fail(f"a step takes {rest:.2f} s besides its Pods, at the third attempt")
