# SPDX-License-Identifier: Apache-2.0
"""What all end-to-end tests share."""
import difflib
import pathlib
import shutil
import sys
import time
import unittest

from fleet import Fleet, scratch
from injection import usable

TOOLS = None  # set by run_tests.py


def differences(expected, found):
    """"" or the lines in which two outcomes differ."""
    def lines(outcome):
        text = [f"{key} {node}: {outcome[key][node]}" for key in ("live", "nodes") for node in sorted(outcome[key])]
        text.append(f"run: {outcome['run']}")
        for path, content in outcome["objects"].items():
            text += [f"{path}: {line}" for line in content.splitlines()]
        return text
    return "\n".join(
        line for line in difflib.unified_diff(lines(expected), lines(found), "expected", "found", "", "", 0, "")
    )


class CopyCase(unittest.TestCase):
    """Each test gets its own copy of the fleet that setUpClass makes in _where, as _template."""
    _where = _template = None

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls._where, ignore_errors=True)

    def setUp(self):
        self.work = pathlib.Path(scratch("case"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.fleet = self._template.copy(self.work / "fleet")


class E2eCase(CopyCase):
    """Each test gets its own copy of a fleet that is on v1, with the Module edited to v2."""
    nodes = ("node-a", "node-b", "node-c")
    unschedulable = ()
    needs_tracing = True
    _template = None

    @classmethod
    def setUpClass(cls):
        if cls.needs_tracing and not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        cls._where = scratch("template")
        cls._template = Fleet.create(TOOLS, cls._where / "w", cls.nodes, cls.unschedulable)

    def unkilled(self, base, body):
        """The outcome of body(copy of base), which must succeed."""
        world = base.copy(self.work / "unkilled")
        done = body(world)
        self.assertEqual(done.returncode, 0, done.stdout)
        outcome = world.outcome()
        shutil.rmtree(world.root)
        return outcome

    def moments(self, base, body, count):
        """`count` moments in seconds, spread over the time that body(copy of base) takes, and a bit more."""
        world = base.copy(self.work / "measured")
        began = time.monotonic()
        body(world)
        took = time.monotonic() - began
        shutil.rmtree(world.root)
        return [took * 1.1 * (number + 1) / count for number in range(count)]

    def compare(self, world, expected, last):
        """"" or what is wrong with the end of `world`."""
        if last.returncode != 0:
            return f"going on: exit {last.returncode}: {last.stdout}"
        return differences(expected, world.outcome())

    def report(self, text):
        """A number for docs/promises.md."""
        print(f"{self.id()}: {text}", file=sys.stderr, flush=True)
