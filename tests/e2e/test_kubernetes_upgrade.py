# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade start kubernetes on a kubeadm cluster of files: what it does in which order; killed everywhere, cut off at every call, its nodes
rebooted: the end is that of an undisturbed run."""
import json
import os
import pathlib
import re
import shutil
import sys
import unittest

import case
from fleet import scratch
from injection import every, inject, points, usable
from kubernetes_fleet import COMPONENTS, FROM, START, TARGET, KubernetesFleet

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

    @classmethod
    def setUpClass(cls):
        if cls.needs_tracing and not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        cls._where = scratch("template")
        cls._template = KubernetesFleet.build(case.TOOLS, cls._where / "w", *cls.size, cls.versions)

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


def finish(world):
    """What a person does after a crash: go on, and begin again what has failed. The last process."""
    for _ in range(6):
        if not (world.state / "journal.ndjson").exists():
            last = world.start()
        else:
            last = world.run("resume")
            if last.returncode == 11:
                world.run("retry")
        if last.returncode == 0:
            break
    return last


def undisturbed(template, where):
    world = template.copy(where)
    done = world.start()
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stdout}")
    outcome = world.outcome()
    shutil.rmtree(where)
    return outcome


def wrong(world, expected, last):
    """"" or what is wrong with the end of `world`."""
    if last.returncode != 0:
        return f"going on: exit {last.returncode}: {last.stdout}"
    # A reboot may come after kubeadm has done its work and before its job has said so.
    applied = len(world.applies())
    return case.differences(expected, world.outcome()) or ("" if applied == 1 else f"kubeadm upgrade apply ran {applied} times")


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
                # Nothing has been repaired: it stops at the same place.
                self.must("retry", node, exit_code=11)
                fleet.behave(node)
                words = ("retry", node)
        self.must(*words)
        self.require_complete()
        self.assertEqual([state for state in self.run_states() if state in STATES and not state.endswith("ing") and state != "upgrading-images"][-1],
                         "upgrade-complete")

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
        self.assertIn("etcd-differs", self.must("abort", "--rollback", "all", exit_code=11))
        self.assertEqual((fleet.control_plane("cp1"), self.run_states()[-1]), (NEW, "upgrade-aborting-failed"))

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
        self.refused(10, "v1.36.9", words=("start", "kubernetes", "v1.36.9", "--switch", "binaries"))
        self.refused(64, "bad-version", words=("start", "kubernetes", "latest", "--switch", "binaries"))
        self.refused(64, "--switch", words=("start", "kubernetes", TARGET))
        self.refused(64, "--until", words=(*START, "--until", "upgrading-kubelets"))

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
        self.options = ("--switch", "binaries", "--versions", str(file))

    def test_back_after_the_first_control_plane(self):
        fleet = self.fleet
        before = fleet.outcome()["objects"]
        self.must("start", "kubernetes", TARGET, *self.options, "--until", "upgraded-first-master", exit_code=11)
        self.assertEqual((fleet.control_plane("cp1")["kube-apiserver"], fleet.control_plane("cp2")["kube-apiserver"]), (TARGET, "v1.35.3"))
        self.must("abort", "--rollback", "all")
        self.assertEqual(self.run_states()[-1], "upgrade-aborted")
        changed = {path for path, text in fleet.outcome()["objects"].items() if text != before[path]}
        # kubeadm itself was put there, and kubeadm-config is kubeadm's business.
        self.assertEqual(changed, {"configmaps/kube-system/kubeadm-config.yaml", "cp1/usr/bin/kubeadm", "cp2/usr/bin/kubeadm"})

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
    def kill_everywhere(self, count, only=None):
        expected = undisturbed(self.fleet, self.work / "undisturbed")
        found, done = points(self.fleet, START, only=only)
        self.assertEqual(done.returncode, 0, done.stdout)
        cases = sampled(found, count)

        def body(point):
            where = scratch("kill")
            try:
                world = self.fleet.copy(where / "w")
                world.run(*START, prefix=inject(point[0], f"signal=KILL:when={point[1]}"))
                shown = world.run("show")
                if shown.returncode not in (0, 66):
                    return f"show after the kill: exit {shown.returncode}: {shown.stdout}"
                return wrong(world, expected, finish(world))
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body)
        self.report(f"killed at {len(cases)} of {len(found)} system calls")
        self.assertEqual(faults[:3], [], f"{len(faults)} of {len(cases)} kills end otherwise")

    def test_at_system_calls(self):
        self.kill_everywhere(10)

    def test_at_every_write_of_the_journal(self):
        self.kill_everywhere(10, only="journal.ndjson")


class Lost(Case):
    needs_tracing = False

    def disturb_everywhere(self, kinds, count):
        expected = undisturbed(self.fleet, self.work / "undisturbed")
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
                return wrong(world, expected, last if last.returncode == 0 else finish(world))
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body)
        self.report(f"{len(cases)} of {calls * len(kinds)}: {', '.join(kinds)} at {calls} calls")
        self.assertEqual(faults[:3], [], f"{len(faults)} of {len(cases)} end otherwise")

    def test_connections(self):
        self.disturb_everywhere(CUTS, 12)

    def test_reboots(self):
        self.disturb_everywhere(REBOOTS, 9)

    def test_between_two_renames(self):
        expected = undisturbed(self.fleet, self.work / "undisturbed")
        cases = sampled([(node, way, renames) for node in ("cp1", "cp2") for way in ("die_at", "all", "reboot_at", "late") for renames in range(9)
                         if way != "late" or renames == 0], 10)

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
