# SPDX-License-Identifier: Apache-2.0
"""The crash harness over a procedure that is not about modules: two steps of the run, two walks between which nodes
rest, a rollback."""
import pathlib
import shutil
import subprocess
import unittest

import case
import test_errors
import test_kill
from fleet import NODE, KERNEL, Fleet, Tools, scratch
from injection import every, usable

START = ("start", "parcel", "--to", "v2")


class Parcels(Fleet):
    """The cluster directory has the nodes; what they run is beside them, in parcels/."""

    @classmethod
    def create(cls, tools, root, names, unschedulable=()):
        fleet = cls(Tools(tools.bin.parent / "neutral", tools.fake), root)
        (fleet.cluster / "nodes").mkdir(parents=True)
        (fleet.parcels / "depot").mkdir(parents=True)
        (fleet.parcels / "depot" / "v2").write_text("the parcel\n")
        for name in names:
            (fleet.cluster / "nodes" / f"{name}.yaml").write_text(
                NODE.format(name=name, kernel=KERNEL, unschedulable="false")
            )
            (fleet.parcels / "nodes" / name).mkdir(parents=True)
            (fleet.parcels / "nodes" / name / "running").write_text("v1\n")
        return fleet

    @property
    def parcels(self):
        return self.cluster / "parcels"

    def copy(self, root):
        shutil.copytree(self.root, root, symlinks=True)
        return type(self)(self.tools, root)

    def fault(self, node, text):
        with open((self.parcels / "nodes" / node if node else self.parcels) / "faults", "a", encoding="utf-8") as file:
            file.write(text + "\n")

    def mend(self, node=""):
        ((self.parcels / "nodes" / node if node else self.parcels) / "faults").unlink()

    def start(self, *options, **more):
        """To the end: the first walk ends with a stop."""
        return self.finish(self.run(*START, *options, **more))

    def finish(self, done):
        return self.run("resume") if done.returncode == 11 and self.run_state() == "walked-first" else done

    def go_on(self):
        if not (self.state / "journal.ndjson").exists():
            return self.start()
        return self.finish(self.run("resume"))

    def run_state(self):
        events = [event for event in self.events() if event.get("to") and not event.get("node")]
        return events[-1]["to"] if events else ""

    def outcome(self):
        files = {str(path.relative_to(self.parcels)): path.read_text() for path in sorted(self.parcels.rglob("*"))
                 if path.is_file() and path.name != "faults" and not path.name.endswith(".part")}
        return {"live": {}, "nodes": {}, "run": self.run_state(), "objects": files}


class Case(case.E2eCase):
    nodes = ("node-a", "node-b")

    @classmethod
    def setUpClass(cls):
        if cls.needs_tracing and not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        cls._where = scratch("template")
        cls._template = Parcels.create(case.TOOLS, cls._where / "w", cls.nodes)


class Killed(Case):
    kill_everywhere = test_kill.Killed.kill_everywhere

    def test_start(self):
        expected = self.unkilled(self.fleet, lambda world: world.start())
        self.kill_everywhere(self.fleet, START, lambda world: world.go_on(), expected)

    def test_second_walk(self):
        base = self.fleet.copy(self.work / "base")
        self.assertEqual(base.run(*START).returncode, 11)
        expected = self.unkilled(base, lambda world: world.run("resume"))
        self.kill_everywhere(base, ("resume",), lambda world: world.go_on(), expected)

    def test_abort(self):
        base = self.fleet.copy(self.work / "base")
        base.fault("node-b", "prove fail")
        self.assertEqual(base.start().returncode, 11)
        abort = ("abort", "--rollback", "all")
        expected = self.unkilled(base, lambda world: world.run(*abort))
        self.kill_everywhere(base, abort, lambda world: world.run(*abort), expected)

    def test_every_write_of_the_journal(self):
        expected = self.unkilled(self.fleet, lambda world: world.start())
        self.kill_everywhere(self.fleet, START, lambda world: world.go_on(), expected, only="journal.ndjson")

    def test_two_at_once(self):
        options = ("--max-unavailable", "2")
        expected = self.unkilled(self.fleet, lambda world: world.start(*options))

        def body(seconds):
            where = scratch("kill")
            try:
                world = self.fleet.copy(where / "w")
                started = world.begin(*START, *options)
                try:
                    started.wait(seconds)
                except subprocess.TimeoutExpired:
                    started.kill()
                    started.wait()
                return self.compare(world, expected, world.go_on())
            finally:
                shutil.rmtree(where, ignore_errors=True)

        moments = self.moments(self.fleet, lambda world: world.run(*START, *options), 20)
        faults = every(moments, body)
        self.report(f"killed at {len(moments)} moments, two nodes in flight")
        self.assertEqual(faults[:3], [])


class Errors(Case):
    command = START
    fail_everywhere = test_errors.DiskErrors.fail_everywhere

    def test_full_disk(self):
        self.fail_everywhere("ENOSPC", once=False)

    def test_one_bad_write(self):
        self.fail_everywhere("EIO", once=True)


class Verbs(Case):
    needs_tracing = False

    def shown(self, world):
        return world.run("show", "-o", "json").stdout

    def test_every_verb_goes_with_it(self):
        world = self.fleet
        world.fault("", "fetch fail")
        done = world.run(*START)
        self.assertEqual(done.returncode, 11, done.stdout)
        self.assertIn("step-failed", done.stdout)
        self.assertIn("fetch: refused", done.stdout)
        for verb in (
            ("show",),
            ("nodes",),
            ("history",),
            ("history", "current"),
            ("report", "--html", str(world.root / "r.html")),
        ):
            shown = world.run(*verb)
            self.assertEqual(shown.returncode, 0, f"{verb}: {shown.stdout}")
        self.assertIn("parcel     fakes/box", world.run("show").stdout)
        self.assertIn('"parcel": "box"', self.shown(world))
        world.mend()
        retried = world.run("retry")
        self.assertEqual(retried.returncode, 11, retried.stdout)
        self.assertEqual(world.run_state(), "walked-first")
        self.assertEqual(world.run("step", "second").returncode, 11)
        stepped = world.run("step", "switch")
        self.assertEqual(stepped.returncode, 0, stepped.stdout)
        self.assertEqual(world.run_state(), "switched")
        self.assertEqual(world.run("step").returncode, 0)
        self.assertEqual(world.run("step", "second").returncode, 0)
        self.assertEqual(world.run_state(), "upgrade-complete")
        self.assertEqual(world.run("delete").returncode, 0)

    def test_a_node_is_skipped_and_retried(self):
        world = self.fleet
        world.fault("node-a", "copy fail")
        self.assertEqual(world.start().returncode, 11)
        again = world.run("retry", "node-a")
        self.assertEqual(again.returncode, 11, again.stdout)
        self.assertEqual(world.run("skip", "node-a", "--reason", "broken").returncode, 0)
        done = world.go_on()
        self.assertEqual(done.returncode, 12, done.stdout)
        refused = world.run("retry")
        self.assertEqual(refused.returncode, 11, refused.stdout)

    def test_the_product_knows_that_it_is_of_another_program(self):
        world = self.fleet
        self.assertEqual(world.run(*START).returncode, 11)
        product = Fleet(case.TOOLS, world.root)
        shown = product.run("show")
        self.assertEqual(shown.returncode, 78, shown.stdout)
        self.assertIn("state-newer", shown.stdout)
        self.assertTrue(pathlib.Path(world.state / "journal.ndjson").exists())
