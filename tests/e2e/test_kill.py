# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at system calls that change something, with KMM_FULL=1 at every one; then a person goes on. The end must be
that of an unkilled run."""
import shutil
import subprocess

from case import E2eCase
from fleet import MODULE, scratch
from injection import every, inject, points, tried

START = ("start", "module", MODULE, "--to", "v2")


class Killed(E2eCase):
    nodes = ("node-a", "node-b")

    def kill_everywhere(self, base, arguments, finish, expected, only=None):
        """`finish(world)` goes on after the kill and returns the last completed process."""
        found, done = points(base, arguments, only=only)
        self.assertNotIn(done.returncode, (70, -6, -11), done.stdout)
        self.assertGreater(len(found), 10)
        cases = found if only else tried(found)

        def body(point):
            where = scratch("kill")
            try:
                world = base.copy(where / "w")
                world.run(*arguments, prefix=inject(point[0], f"signal=KILL:when={point[1]}"))
                shown = world.run("show")
                if shown.returncode not in (0, 66):
                    return f"show after the kill: exit {shown.returncode}: {shown.stdout}"
                last = finish(world)
                return self.compare(world, expected, last)
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body)
        self.report(f"killed at {len(cases)} of {len(found)} system calls")
        self.assertEqual(faults[:3], [], f"{len(faults)} of {len(cases)} kills end otherwise")

    def test_start(self):
        expected = self.unkilled(self.fleet, lambda world: world.start())
        self.kill_everywhere(self.fleet, START, lambda world: world.go_on(), expected)

    def test_resume(self):
        """The first run was cut off while the load on node-a was on its way."""
        self.fleet.fault("node-a", "load cut-after")
        expected = self.unkilled(self.fleet, lambda world: world.start())
        base = self.fleet.copy(self.work / "base")
        found, _ = points(base, START, only="journal.ndjson")
        writes = [point for point in found if point[0] == "write"]
        base.run(*START, prefix=inject("write", f"signal=KILL:when={writes[len(writes) // 2][1]}"))
        self.assertTrue((base.state / "journal.ndjson").exists())
        self.kill_everywhere(base, ("resume",), lambda world: world.run("resume"), expected)

    def test_abort(self):
        """node-a is on v2, node-b is not begun; everything goes back."""
        base = self.fleet.copy(self.work / "base")
        self.assertEqual(base.start("--canary", "1").returncode, 11)
        abort = ("abort", "--rollback", "all")
        expected = self.unkilled(base, lambda world: world.run(*abort))

        def finish(world):
            if not any(event.get("to") == "upgrade-aborting" for event in world.events()):
                return world.run(*abort)  # the abort had not been recorded
            last = world.run("resume")
            again = world.run(*abort)
            return last if again.returncode == 0 else again

        self.kill_everywhere(base, abort, finish, expected)


class KilledAtJournal(Killed):
    """Three nodes, every write of the journal."""
    nodes = ("node-a", "node-b", "node-c")
    test_start = test_resume = test_abort = None

    def test_journal(self):
        expected = self.unkilled(self.fleet, lambda world: world.start())
        self.kill_everywhere(self.fleet, START, lambda world: world.go_on(), expected, only="journal.ndjson")

    def test_two_at_once(self):
        """Two nodes in flight; the walk's threads write, so the kill comes by time instead of by call."""
        for node in self.nodes:
            for verb in ("check", "unload", "load"):
                self.fleet.fault(node, f"{verb} slow 15")
        options = ("--max-unavailable", "2")
        expected = self.unkilled(self.fleet, lambda world: world.start(*options))

        def body(seconds):
            where = scratch("kill")
            try:
                world = self.fleet.copy(where / "w")
                started = world.begin("start", "module", MODULE, "--to", "v2", *options)
                try:
                    started.wait(seconds)
                except subprocess.TimeoutExpired:
                    started.kill()
                    started.wait()
                last = world.run("resume") if (world.state / "journal.ndjson").exists() else world.start(*options)
                if world.most_without() > 2:
                    return "more than two nodes without a module"
                return self.compare(world, expected, last)
            finally:
                shutil.rmtree(where, ignore_errors=True)

        moments = self.moments(self.fleet, lambda world: world.start(*options), 40)
        faults = every(moments, body)
        self.report(f"killed at {len(moments)} moments, two nodes in flight")
        self.assertEqual(faults[:3], [])
