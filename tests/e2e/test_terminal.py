# SPDX-License-Identifier: Apache-2.0
"""What a person sees at a terminal, and commands of --on-event that are slow."""
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import case
from fleet import MODULE, Fleet, scratch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from screen import run_on_screen  # noqa: E402

START = ("start", "module", MODULE, "--to", "v1")


class Bare(unittest.TestCase):
    def fleet(self, count):
        work = scratch("terminal")
        self.addCleanup(shutil.rmtree, work, ignore_errors=True)
        fleet = Fleet.bare(case.TOOLS, work / "w", [f"node-{number:03}" for number in range(1, count + 1)])
        fleet.edit("v1")
        return fleet


class Live(Bare):
    """The live table on terminals of every size."""

    def walk(self, columns, rows, nodes):
        fleet = self.fleet(nodes)
        fleet.fault("node-004", "load refused")
        fleet.fault("node-007", "load slow 2500")
        seen = {"bars": 0, "flight": 0, "failed": 0}

        def look(screen, _):
            lines = screen.visible()
            table = [number for number, line in enumerate(lines) if line.startswith("NODE ")]
            bars = [line for line in lines if re.match(rf"(\[[#.]+\] )?\d+ of {nodes} nodes(?! done)", line)]
            if not table or not bars:
                return  # between two drawings, or the end
            self.assertEqual((len(table), bars), (1, lines[-1:]), lines)
            self.assertLessEqual(len(lines), rows, lines)
            seen["bars"] += 1
            body = lines[table[0] + 1:-1]
            seen["flight"] += any(re.match(r"node-007 .*loading", line) for line in body)
            seen["failed"] += any(re.match(r"node-004 .*-failed", line) for line in body)

        screen, code = run_on_screen(
            fleet.command(*START, "--max-unavailable", "2", "--failure-budget", "1"),
            columns,
            rows,
            look,
            fleet.environment(),
        )
        self.assertEqual(code, 12, screen.lines)
        self.assertFalse(screen.wrapped and columns >= 80, screen.lines)
        for what, number in seen.items():
            self.assertGreater(number, 0, f"never seen: {what}")
        text = "\n".join(screen.lines)
        self.assertNotRegex(text, r"\[[#.]+\] \d+ of", "the live table is gone at the end")
        self.assertIn("next", text)

    def test_all_sizes(self):
        for columns, rows, nodes in ((80, 24, 40), (40, 10, 15), (200, 50, 12)):
            with self.subTest(f"{columns}x{rows}"):
                self.walk(columns, rows, nodes)

    def test_watching(self):
        """show --watch fits the screen, ends with the run and does not advise itself."""
        fleet = self.fleet(30)
        for number in range(1, 8):
            fleet.fault(f"node-{number:03}", "load slow 700")
        process = fleet.begin(*START)
        self.addCleanup(process.kill)
        while not (fleet.state / "journal.ndjson").exists():
            time.sleep(0.05)
        seen = []

        def look(screen, _):
            lines = screen.visible()
            if any(line.startswith("running") for line in lines) and lines[-1].startswith("… "):
                seen.append(lines)

        screen, code = run_on_screen(fleet.command("show", "--watch"), 60, 14, look, fleet.environment())
        self.assertEqual((code, process.wait()), (0, 0), screen.lines)
        self.assertTrue(seen)
        for lines in seen:
            self.assertLessEqual(len(lines), 14)
            self.assertTrue(lines[0].startswith("module "), lines)
            self.assertNotIn("--watch", "\n".join(lines))


class OnEvent(Bare):
    """Commands of --on-event never hold nodes up."""

    def test_a_slow_command_delays_nothing_but_the_end(self):
        fleet = self.fleet(4)
        log = fleet.root / "events"
        process = fleet.begin(*START, "--max-unavailable", "4", "--on-event", f"sh -c 'sleep 0.4; cat >>{log}'")
        self.addCleanup(process.kill)
        while not any(event.get("to") == "upgrade-complete" for event in fleet.events()):
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        # A run that waited for its commands would have told nearly everything by now.
        self.assertLess(len(log.read_text().splitlines()) if log.exists() else 0, len(fleet.events()) - 5)
        self.assertEqual(process.wait(120), 0)
        told = [line for line in log.read_text().splitlines() if line]
        self.assertEqual(len(told), len(fleet.events()) - 1)  # the first entry is no event: it begins the record

    def test_a_hung_command_ends_with_the_run(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(how.name):
                fleet = self.fleet(4)
                fleet.fault("node-002", "load slow 2000")
                pids = fleet.root / "pids"
                process = fleet.begin(
                    *START,
                    "--max-unavailable",
                    "4",
                    "--on-event",
                    f"sh -c 'echo $$ >>{pids}; sleep 1000'",
                    stderr=subprocess.PIPE,
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                )
                self.addCleanup(process.kill)
                while fleet.live()["node-004"] is None:
                    self.assertIsNone(process.poll())
                    time.sleep(0.05)
                process.send_signal(how)
                began = time.monotonic()
                _, err = process.communicate(timeout=600)
                self.assertLess(time.monotonic() - began, 50)
                self.assertEqual(process.returncode, 130 if how == signal.SIGINT else 143)
                self.assertRegex(
                    err.decode(), r"warning: --on-event: sh did not get the last \d+ events: the upgrade was stopped"
                )
                for pid in pids.read_text().split():
                    command = pathlib.Path(f"/proc/{pid}/cmdline")
                    self.assertFalse(command.exists() and command.read_bytes(), "the command goes on")


if __name__ == "__main__":
    unittest.main()
