# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade start kubernetes on a kubeadm cluster of files, killed everywhere, cut off at every call, its nodes
rebooted: the end is that of an undisturbed run."""
import shutil
import subprocess
import time

import case
from fleet import scratch
from injection import every, inject, points
from kubernetes_case import CUTS, FULL, REBOOTS, Case, finish, outcome_of, sampled, wrong
from kubernetes_fleet import FROM, START, TARGET, KubernetesFleet


class Killing(Case):
    """What is killed at each call, and how it goes on."""

    def kill_everywhere(self, count, only=None, base=None, words=START, applies=1, go_on=None):
        """`go_on(world)` is what a person does then; the last process."""
        base = base or self.fleet
        go_on = go_on or (lambda world: finish(world, words))
        expected = self.undisturbed() if base is self.fleet and words == START else outcome_of(base,
            self.work / "undisturbed", words)
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


class Killed(Killing):
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


class Hopped(Killing):
    """Over several minors: one run follows the other."""
    size = (1, 1)
    versions = (FROM, "v1.35.1", TARGET)

    def test_between_runs(self):
        file = self.work / "versions.yaml"
        file.write_text(
            "versions:\n- version: v1.34.4\n- version: v1.35.1\n- {version: v1.35.4, upgrade_from: [v1.35.1]}\n"
        )
        self.kill_everywhere(4, only="journal", words=(*START, "--versions", str(file)), applies=2)


class Aborted(Killing):
    """The way back after the first control plane, within a minor."""
    size = (2, 1)
    versions = ("v1.35.3", TARGET)

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
                return wrong(world, expected, last if last.returncode == 0 else finish(world),
                             0 if "reboot" in point[1] else 1)
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
        cases = sampled([(node, way, renames) for node in ("cp1", "cp2")
                         for way in ("die_at", "all", "reboot_at", "late") for renames in range(9)
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
