# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade start kubernetes on a kubeadm cluster of files: what it does in which order; killed everywhere, cut off
at every call, its nodes
rebooted: the end is that of an undisturbed run."""
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

import case
from fleet import scratch
from injection import every, inject, points, usable
from kubernetes_fleet import COMPONENTS, FROM, HOW, START, TARGET, KubernetesFleet

OLD = {**{component: FROM for component in COMPONENTS}, "etcd": "3.6.5-0"}
NEW = {**{component: TARGET for component in COMPONENTS}, "etcd": "3.6.6-0"}
FULL = bool(os.environ.get("KMM_FULL"))
STATES = ["downloading-images", "downloaded-images", "upgrading-first-master", "upgraded-first-master", "upgrading-second-master",
          "upgraded-second-master", "upgrading-kubelets", "upgraded-kubelets", "upgrade-complete"]
CUTS = ("unreachable", "cut-before", "cut-in", "cut-after")
REBOOTS = ("reboot-before", "reboot-in", "reboot-after")


def sampled(cases, count):
    """At most `count` of the cases, spread evenly; with KMM_FULL=1 all."""
    return cases if FULL or len(cases) <= count else [cases[index * len(cases) // count] for index in range(count)]


class Case(unittest.TestCase):
    """Each test gets its own copy of a cluster of v1.34.4."""
    size = (2, 1)
    versions = (FROM, TARGET)
    needs_tracing = True
    _expected = None

    @classmethod
    def setUpClass(cls):
        if cls.needs_tracing and not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        cls._where = scratch("template")
        cls._template = KubernetesFleet.build(case.TOOLS, cls._where / "w", *cls.size, cls.versions)

    @classmethod
    def undisturbed(cls):
        """What an undisturbed run of the class's cluster ends with."""
        if cls._expected is None:
            cls._expected = outcome_of(cls._template, cls._where / "undisturbed")
        return cls._expected

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls._where, ignore_errors=True)

    def setUp(self):
        self.work = pathlib.Path(scratch("case"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.fleet = self._template.copy(self.work / "fleet")

    def must(self, *words, exit_code=0):
        done = self.fleet.run(*words)
        self.assertEqual(done.returncode, exit_code, f"{words}: {done.stdout}")
        return done.stdout

    def report(self, text):
        """A number for docs/promises.md."""
        print(f"{self.id()}: {text}", file=sys.stderr, flush=True)

    def run_states(self):
        return [event["to"] for event in self.fleet.events() if not event.get("node") and event.get("to")]

    def require_complete(self, fleet=None):
        fleet = fleet or self.fleet
        self.assertEqual(fleet.states(), {TARGET: "active"})
        self.assertEqual({node: fleet.control_plane(node) for node in fleet.names() if node.startswith("cp")},
                         {node: NEW for node in fleet.names() if node.startswith("cp")})
        self.assertEqual((fleet.configured(), fleet.addons()), (TARGET, ["v1.13.1", TARGET]))


def finish(world, words=START):
    """What a person does after a crash: go on, and begin again what has failed. The last process."""
    for _ in range(6):
        if not (world.state / "journal.ndjson").exists():
            last = world.run(*words)
        else:
            last = world.run("resume")
            if last.returncode == 11:
                world.run("retry")
        if last.returncode == 0:
            break
    return last


def outcome_of(template, where, words=START):
    """The outcome of a run that nobody disturbs."""
    world = template.copy(where)
    done = world.run(*words)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stdout}")
    outcome = world.outcome()
    shutil.rmtree(where)
    return outcome


def wrong(world, expected, last, applies=1):
    """"" or what is wrong with the end of `world`. `applies`: how often kubeadm upgrade apply has run then; 0: as often
    as it takes."""
    if last.returncode != 0:
        return f"going on: exit {last.returncode}: {last.stdout}"
    applied = len(world.applies())
    return case.differences(expected, world.outcome()) or ("" if applies in (0, applied) else f"kubeadm upgrade apply ran {applied} times")


class Walked(Case):
    size = (3, 3)
    needs_tracing = False

    def test_undisturbed(self):
        fleet = self.fleet
        before = fleet.object("nodes/w1")
        self.must(*START)
        self.require_complete()
        self.assertEqual([state for state in self.run_states() if state in STATES], STATES)
        calls = [call[1:3] for call in fleet.calls() if call[0] == "begin" and call[2] not in ("facts", "backup", "images")]
        self.assertEqual(calls, [[node, "control-plane"] for node in ("cp1", "cp2", "cp3")] + [[node, "kubelet"] for node in fleet.names()])
        self.assertEqual([line for line in fleet.log("cp1") if "upgrade" in line], [f"kubeadm upgrade apply {TARGET} --yes"])
        for node in fleet.names()[1:]:
            self.assertEqual([line for line in fleet.log(node) if "upgrade" in line], ["kubeadm upgrade node"])
        # Nothing else is left of it in the cluster.
        self.assertEqual(fleet.object("nodes/w1"), before.replace(FROM, TARGET))
        for verb in (("show",), ("nodes",), ("history",), ("history", "current"), ("report", "--html", str(fleet.root / "r.html"))):
            self.assertIn(TARGET, self.must(*verb) if verb[0] != "report" else (self.must(*verb), (fleet.root / "r.html").read_text())[1])
        self.assertIn("upgrade-complete", self.must("show"))
        self.must("delete")

    def test_every_stage_fails_and_is_retried(self):
        fleet = self.fleet
        stops = [("downloading-images", "cp2", {"fail": "kubeadm"}), ("upgrading-first-master", "cp1", {"preflight": ["CreateJob"]}),
                 ("upgrading-second-master", "cp3", {"preflight": ["ControlPlaneNodesReady"]}), ("upgrading-kubelets", "w2", {"fail": "systemctl"})]
        words = START
        for state, node, fault in stops:
            with self.subTest(state=state):
                fleet.behave(node, **fault)
                shown = self.must(*words, exit_code=11)
                self.assertIn(node, shown)
                self.assertEqual(self.run_states()[-1], f"{state}-failed", shown)
                self.assertIn(f"{state}-failed", self.must("show"))
                self.assertEqual("--ignore-preflight-errors NAMES" in shown, "preflight" in fault, shown)
                # Nothing has been repaired: it stops at the same place.
                self.must("retry", node, exit_code=11)
                fleet.behave(node)
                words = ("retry", node)
        self.must(*words)
        self.require_complete()
        self.assertEqual([state for state in self.run_states() if state in STATES and not state.endswith("ing") and state != "upgrading-images"][-1],
                         "upgrade-complete")

    def test_kubeadm_is_told_to_go_on(self):
        fleet = self.fleet
        for node in ("cp1", "cp3"):
            fleet.behave(node, preflight=["CreateJob"])
        shown = self.must(*START, exit_code=11)
        # What only takes long is tried once more by itself.
        self.assertIn("did not end in time: kubeadm is run once more", shown)
        self.assertEqual(sum("upgrade apply" in line for line in fleet.log("cp1")), 2)
        self.must("retry", "cp1", "--ignore-preflight-errors", "CreateJob")
        self.require_complete()
        for node in ("cp1", "cp3"):
            self.assertIn("--ignore-preflight-errors=CreateJob", " ".join(fleet.log(node)))

    def refused(self, exit_code, *codes, words=START):
        before = {path: path.read_bytes() for path in self.fleet.cluster.rglob("*.yaml") if "leases" not in path.parts}
        shown = self.must(*words, exit_code=exit_code)
        for code in codes:
            self.assertIn(code, shown)
        self.assertEqual(before, {path: path.read_bytes() for path in self.fleet.cluster.rglob("*.yaml") if "leases" not in path.parts})
        self.assertFalse((self.fleet.state / "journal.ndjson").exists())
        self.assertEqual([self.fleet.log(node) for node in self.fleet.names()], [[]] * len(self.fleet.names()))

    def test_checks_come_first(self):
        fleet = self.fleet
        node = fleet.cluster / "nodes/w3.yaml"
        text = node.read_text()
        node.write_text(text.replace('type: Ready\n      status: "True"', 'type: Ready\n      status: "False"'))
        (fleet.nodes / "cp3/etc/kubernetes/manifests/etcd.yaml").unlink()
        fleet.follow("cp3")
        fleet.fault("w2", "* unreachable")
        self.refused(10, "nodes-ready", "w3", "manifests-present", "cp3", "node-reach", "w2", "No route to host")

    def test_what_cannot_be_asked_for(self):
        self.refused(10, "v1.36.9", words=("start", "kubernetes", "v1.36.9", *HOW))
        self.refused(64, "bad-version", words=("start", "kubernetes", "latest", *HOW))
        self.refused(64, "--switch", words=("start", "kubernetes", TARGET))
        self.refused(64, "--until", words=(*START, "--until", "upgrading-kubelets"))


class Steered(Case):
    """What a person does with a run."""
    needs_tracing = False

    def test_it_stops_where_it_is_told(self):
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-first-master", exit_code=11)
        self.assertEqual((fleet.control_plane("cp1"), fleet.control_plane("cp2")), (NEW, OLD))
        self.assertEqual(fleet.states(), {FROM: "partial", TARGET: "partial"})
        self.must("resume")
        self.require_complete()

    def test_step_by_step(self):
        self.must(*START, "--manual", exit_code=11)
        seen = []
        for _ in range(60):
            done = self.fleet.run("step")
            self.assertIn(done.returncode, (0, 11), done.stdout)
            seen += self.run_states()[-1:]
            if seen[-1] == "upgrade-complete":
                break
        # A stage is done when the next step begins.
        self.assertEqual(list(dict.fromkeys(seen)), ["downloading-images", "upgrading-first-master", "upgrading-second-master", "upgrading-kubelets",
                                                     "upgrade-complete"])
        self.assertEqual([state for state in self.run_states() if state in STATES], STATES)
        self.require_complete()

    def test_older_data_of_etcd_needs_a_snapshot(self):
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-first-master", exit_code=11)
        before = self.run_states()
        shown = self.must("abort", "--rollback", "all", exit_code=10)
        self.assertIn("etcd-differs", shown)
        self.assertIn("cp1 runs etcd", shown)
        # As if nobody had asked: the way on is open.
        self.assertEqual((fleet.control_plane("cp1"), self.run_states()), (NEW, before))
        self.must("resume")
        self.require_complete()

    def test_a_way_back_that_could_not_be_asked_for_changes_nothing(self):
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-first-master", exit_code=11)
        # The node does not answer when it is asked whether there is a way back, and does afterwards.
        (fleet.nodes / "faults").write_text("cp1 facts unreachable\n")
        self.assertIn("etcd-differs", self.must("abort", "--rollback", "all", exit_code=11))
        self.assertEqual((fleet.control_plane("cp1"), fleet.kubelet("cp1"), self.run_states()[-1]), (NEW, FROM, "upgrade-aborting-failed"))

    def test_a_worker_that_cannot_be_reached(self):
        fleet = self.fleet
        self.must(*START, "--node-timeout", "2s", "--until", "upgraded-second-master", exit_code=11)
        (fleet.nodes / "faults").write_text("w1 facts unreachable\n" * 100)
        shown = self.must("resume", exit_code=11)
        self.assertIn("node-unreachable", shown)
        self.assertIn("No route to host", shown)
        self.assertEqual(fleet.kubelet("cp2"), TARGET)
        (fleet.nodes / "faults").unlink()
        self.must("skip", "w1", "--reason", "broken")
        self.must("resume", exit_code=12)
        self.assertEqual((fleet.kubelet("w1"), self.run_states()[-1]), (FROM, "upgrade-complete"))
        self.assertNotIn("unschedulable: true", fleet.object("nodes/w1"))
        # Started again it is about what is left, which a person has to know of.
        self.must("delete")
        self.assertIn("versions-uniform", self.must(*START, exit_code=10))
        self.must(*START, "--ignore-checks", "versions-uniform")
        self.require_complete()

    def test_a_worker_that_has_left(self):
        self.must(*START, "--until", "upgraded-second-master", exit_code=11)
        (self.fleet.cluster / "nodes/w1.yaml").unlink()
        shutil.move(self.fleet.nodes / "w1", self.work / "gone")
        self.must("resume", exit_code=12)
        self.require_complete()

    def test_a_node_that_lies(self):
        fleet = self.fleet.copy(self.work / "other")
        fleet.behave("cp2", lie=True)
        done = fleet.start()
        self.assertEqual(done.returncode, 11, done.stdout)
        self.assertIn("images-missing", done.stdout)
        fleet = self.fleet
        self.must(*START, "--until", "downloaded-images", exit_code=11)
        fleet.behave("cp1", lie=True)
        self.assertIn("not-upgraded", self.must("resume", exit_code=11))
        self.assertEqual(fleet.control_plane("cp1"), OLD)
        fleet.behave("cp1")
        fleet.behave("w1", stale=True)
        self.assertIn("kubelet-not-switched", self.must("retry", "cp1", exit_code=11))
        fleet.behave("w1")
        self.must("retry", "w1")
        self.require_complete()

    def test_nothing_to_do(self):
        self.must(*START)
        self.must("delete")
        log = [self.fleet.log(node) for node in self.fleet.names()]
        self.assertIn("nothing to do", self.must(*START))
        self.assertEqual(log, [self.fleet.log(node) for node in self.fleet.names()])


class Patched(Case):
    """From patch to patch of a minor, where etcd stays: there and back."""
    needs_tracing = False
    versions = ("v1.35.3", TARGET)

    def setUp(self):
        super().setUp()
        file = self.work / "versions.yaml"
        file.write_text("versions:\n- {version: v1.35.3}\n- {version: v1.35.4, downgrade_to: []}\n".replace("[]", "[v1.35.3]"))
        self.options = (*HOW, "--versions", str(file))

    def test_back_after_the_first_control_plane(self):
        fleet = self.fleet
        before = fleet.outcome()["objects"]
        self.must("start", "kubernetes", TARGET, *self.options, "--until", "upgraded-first-master", exit_code=11)
        self.assertEqual((fleet.control_plane("cp1")["kube-apiserver"], fleet.control_plane("cp2")["kube-apiserver"]), (TARGET, "v1.35.3"))
        self.must("abort", "--rollback", "all")
        self.assertEqual(self.run_states()[-1], "upgrade-aborted")
        changed = {path for path, text in fleet.outcome()["objects"].items() if text != before[path]}
        # kubeadm itself was put there.
        self.assertEqual(changed, {"cp1/usr/bin/kubeadm", "cp2/usr/bin/kubeadm"})
        self.assertIn("kubeadm-config names v1.35.3 again", self.must("show", "-o", "json"))

    def test_a_downgrade_begins_with_kubelets(self):
        fleet = self.fleet
        self.must("start", "kubernetes", TARGET, *self.options)
        self.must("delete")
        already = len(fleet.calls())
        self.must("start", "kubernetes", "v1.35.3", *self.options)
        calls = [call[1:3] for call in fleet.calls()[already:] if call[0] == "begin" and call[2] in ("control-plane", "kubelet")]
        self.assertEqual(calls, [["cp1", "kubelet"], ["cp2", "kubelet"], ["w1", "kubelet"], ["cp1", "control-plane"], ["cp2", "control-plane"]])
        self.assertEqual(({fleet.kubelet(node) for node in fleet.names()}, fleet.configured()), ({"v1.35.3"}, "v1.35.3"))
        self.assertEqual({fleet.control_plane(node)["kube-apiserver"] for node in ("cp1", "cp2")}, {"v1.35.3"})


class Killed(Case):
    def kill_everywhere(self, count, only=None, base=None, words=START, applies=1, go_on=None):
        """`go_on(world)` is what a person does then; the last process."""
        base = base or self.fleet
        go_on = go_on or (lambda world: finish(world, words))
        expected = self.undisturbed() if base is self.fleet and words == START else outcome_of(base, self.work / "undisturbed", words)
        found, done = points(base, words, only=only)
        self.assertEqual(done.returncode, 0, done.stdout)
        cases = sampled(found, count)

        def body(point):
            where = scratch("kill")
            try:
                world = base.copy(where / "w")
                world.run(*words, prefix=inject(point[0], f"signal=KILL:when={point[1]}"))
                shown = world.run("show")
                if shown.returncode not in (0, 66):
                    return f"show after the kill: exit {shown.returncode}: {shown.stdout}"
                return wrong(world, expected, go_on(world), applies)
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body)
        self.report(f"killed at {len(cases)} of {len(found)} system calls")
        self.assertEqual(faults[:3], [], f"{len(faults)} of {len(cases)} kills end otherwise")

    def test_at_system_calls(self):
        self.kill_everywhere(4)

    def test_at_every_write_of_the_journal(self):
        self.kill_everywhere(4, only="journal.ndjson")

    def test_the_resume_of_a_killed_run(self):
        base = self.fleet.copy(self.work / "base")
        base.fault("cp1", "control-plane cut-in")
        found, _ = points(base, START, only="journal.ndjson")
        writes = [point for point in found if point[0] == "write"]
        base.run(*START, prefix=inject("write", f"signal=KILL:when={writes[len(writes) // 3][1]}"))
        self.assertTrue((base.state / "journal.ndjson").exists())
        self.kill_everywhere(4, base=base, words=("resume",), only="journal.ndjson")

    def test_two_nodes_at_once(self):
        """The walk's threads write, so the kill comes by time instead of by call."""
        fleet = KubernetesFleet.build(case.TOOLS, self.work / "wide", 1, 3)
        words = (*START, "--max-unavailable", "2")
        fleet.run(*words, "--until", "upgraded-first-master")
        expected = outcome_of(fleet, self.work / "undisturbed", ("resume",))

        def body(seconds):
            where = scratch("kill")
            try:
                world = fleet.copy(where / "w")
                begun = world.begin("resume")
                try:
                    begun.wait(seconds)
                except subprocess.TimeoutExpired:
                    begun.kill()
                    begun.wait()
                return wrong(world, expected, finish(world))
            finally:
                shutil.rmtree(where, ignore_errors=True)

        world = fleet.copy(self.work / "measured")
        began = time.monotonic()
        world.run("resume")
        took = time.monotonic() - began
        count = 40 if FULL else 3
        faults = every([took * (number + 1) / count for number in range(count)], body)
        self.report(f"killed at {count} moments, two nodes in flight")
        self.assertEqual(faults[:3], [])


class Hopped(Killed):
    """Over several minors: one run follows the other."""
    size = (1, 1)
    versions = (FROM, "v1.35.1", TARGET)
    test_at_system_calls = test_at_every_write_of_the_journal = test_the_resume_of_a_killed_run = test_two_nodes_at_once = None

    def test_between_runs(self):
        file = self.work / "versions.yaml"
        file.write_text("versions:\n- version: v1.34.4\n- version: v1.35.1\n- {version: v1.35.4, upgrade_from: [v1.35.1]}\n")
        self.kill_everywhere(4, only="journal", words=(*START, "--versions", str(file)), applies=2)


class Aborted(Killed):
    """The way back after the first control plane, within a minor."""
    size = (2, 1)
    versions = ("v1.35.3", TARGET)
    test_at_system_calls = test_at_every_write_of_the_journal = test_the_resume_of_a_killed_run = test_two_nodes_at_once = None

    def test_the_way_back(self):
        file = self.work / "versions.yaml"
        file.write_text("versions:\n- version: v1.35.3\n- version: v1.35.4\n")
        base = self.fleet.copy(self.work / "base")
        base.start("--versions", str(file), "--until", "upgraded-first-master")
        abort = ("abort", "--rollback", "all")

        def go_on(world):
            if not any(event.get("to") == "upgrade-aborting" for event in world.events()):
                return world.run(*abort)  # the abort had not been recorded
            last = world.run("resume")
            again = world.run(*abort)
            return last if again.returncode == 0 else again

        self.kill_everywhere(4, base=base, words=abort, only="journal", go_on=go_on)


class Lost(Case):
    needs_tracing = False

    def disturb_everywhere(self, kinds, count):
        expected = self.undisturbed()
        world = self.fleet.copy(self.work / "counted")
        world.start()
        calls = sum(call[0] == "begin" for call in world.calls())
        cases = sampled([(number + 1, kind) for number in range(calls) for kind in kinds], count)

        def body(point):
            where = scratch("lost")
            try:
                world = self.fleet.copy(where / "w")
                world.fault("*", f"#{point[0]} {point[1]}")
                last = world.start()
                if (world.nodes / "faults").read_text():
                    return "the fault did not occur"
                # A reboot may come after kubeadm has done its work and before its job has said so.
                return wrong(world, expected, last if last.returncode == 0 else finish(world), 0 if "reboot" in point[1] else 1)
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body)
        self.report(f"{len(cases)} of {calls * len(kinds)}: {', '.join(kinds)} at {calls} calls")
        self.assertEqual(faults[:3], [], f"{len(faults)} of {len(cases)} end otherwise")

    def test_connections(self):
        self.disturb_everywhere(CUTS, 6)

    def test_reboots(self):
        self.disturb_everywhere(REBOOTS, 4)

    def test_between_two_renames(self):
        expected = self.undisturbed()
        cases = sampled([(node, way, renames) for node in ("cp1", "cp2") for way in ("die_at", "all", "reboot_at", "late") for renames in range(9)
                         if way != "late" or renames == 0], 6)

        def body(point):
            node, way, renames = point
            where = scratch("gap")
            try:
                world = self.fleet.copy(where / "w")
                if way == "late":
                    world.behave(node, late=True)
                else:
                    world.behave(node, **({"die_at": renames, "all": True} if way == "all" else {way: renames}))
                first = world.start()
                if first.returncode == 0 and way in ("die_at", "late"):
                    return "kubeadm was killed at each call and the upgrade is complete"
                world.behave(node)
                last = first if first.returncode == 0 else finish(world)
                if last.returncode != 0:
                    return f"{first.stdout}\ngoing on: exit {last.returncode}: {last.stdout}"
                return case.differences(expected, world.outcome())
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body)
        self.report(f"kubeadm killed at {len(cases)} moments")
        self.assertEqual(faults[:3], [], f"{len(faults)} of {len(cases)} end otherwise")
