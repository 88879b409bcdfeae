# SPDX-License-Identifier: Apache-2.0
"""Upgrades of a kubeadm cluster of files, undisturbed and disturbed, and what their ends have in common."""
import os
import shutil
import sys
import unittest

import case
from fleet import scratch
from injection import usable
from kubernetes_fleet import COMPONENTS, FROM, START, TARGET, KubernetesFleet

OLD = {**{component: FROM for component in COMPONENTS}, "etcd": "3.6.5-0"}
NEW = {**{component: TARGET for component in COMPONENTS}, "etcd": "3.6.6-0"}
FULL = bool(os.environ.get("KMM_FULL"))
CUTS = ("unreachable", "cut-before", "cut-in", "cut-after")
REBOOTS = ("reboot-before", "reboot-in", "reboot-after")


def sampled(cases, count):
    """At most `count` of the cases, spread evenly; with KMM_FULL=1 all."""
    return cases if FULL or len(cases) <= count else [cases[index * len(cases) // count] for index in range(count)]


class Case(case.CopyCase):
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
    return case.differences(expected, world.outcome()) or ("" if applies in (0, applied)
                                                           else f"kubeadm upgrade apply ran {applied} times")
