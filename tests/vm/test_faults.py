# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade is killed, cut off and doubled, nodes restart under it: the end is that of an undisturbed run."""
import json
import os
import random
import re
import signal
import subprocess
import time

from lab.common import say
from lab.upgrading import MODULE, UpgradeCase

START = ("start", "module", MODULE, "--to", "v2")
KILLS = int(os.environ.get("KMM_VM_KILLS", "30"))
KILLS_PER_RUN = 15


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], stdout=subprocess.PIPE, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


class Kills(UpgradeCase):
    def test_random_kills_end_like_an_undisturbed_run(self):
        seed = int(os.environ.get("KMM_VM_SEED", random.SystemRandom().randrange(10 ** 6)))
        dice = random.Random(seed)
        print(f"seed {seed} (KMM_VM_SEED repeats it)")
        self.edit("v2")
        begun = time.monotonic()
        self.upgrade(*START)
        undisturbed, duration = self.outcome(), time.monotonic() - begun
        self.all_on("v2")
        done = runs = 0
        while done < KILLS:
            runs += 1
            where = {"directory": self.work / f"fleet-{runs}", "state": self.work / f"state-{runs}"}
            self.reset_to_v1(where["directory"])
            self.edit("v2", directory=where["directory"])
            done += self.one_run(dice, where, min(KILLS_PER_RUN, KILLS - done), duration)
            self.assertEqual(self.outcome(where["directory"]), undisturbed, f"run {runs} of seed {seed}")
            self.assertEqual(self.most_in_flight(where["state"]), 1)
            self.assertLess(runs, KILLS, "runs end before they are killed")
        say(f"{done} kills in {runs} runs")

    def one_run(self, dice, where, kills, duration):
        """One upgrade with up to so many SIGKILLs; returns how many there were."""
        killed = 0
        # On average the kills of one run are spread over all of an undisturbed one: each loses the step that it cut
        # off.
        longest = 3 * duration / KILLS_PER_RUN
        while True:
            recorded = self.has_run(where)
            process = self.begin(*(("resume",) if recorded else START), **where)
            if killed < kills:
                try:
                    process.wait(dice.uniform(0.01, longest))
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    killed += 1
                    continue
            code = process.wait(1200)
            self.assertEqual(code, 0, self.output())
            return killed

    def has_run(self, where):
        shown = subprocess.run(self.command("show", "-o", "json", **where), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, env=self.environment(), check=True)
        return json.loads(shown.stdout)["state"] != "idle"


class Cut(UpgradeCase):
    def finish(self, process):
        """To the end: directly, or by way of a clear pause (exit 11) and resume."""
        code = process.wait(1200)
        if code == 11:
            self.assertIn("kmm-upgrade", self.output().strip().splitlines()[-1])
            shown = self.upgrade("show")
            is_failed = re.search("kmm-upgrade retry .*node-b", shown)
            self.upgrade(*(("retry", "node-b") if is_failed else ("resume",)), expect=None)
            self.upgrade("resume", expect=None)
        else:
            self.assertEqual(code, 0, self.output())
        self.assertIn("upgrade-complete", self.upgrade("show"))
        self.assert_live({"node-b": "v2"})
        self.assertEqual(self.most_in_flight(), 1)

    def test_a_node_that_restarts_in_mid_step(self):
        self.edit("v2")
        process = self.begin(*START)
        self.wait_event(process, "node-b", "unload")
        self.fleet.reset("node-b")
        self.fleet.disconnect("node-b")
        self.finish(process)
        self.all_on("v2")

    def test_a_connection_that_ends_in_mid_load(self):
        self.edit("v2")
        process = self.begin(*START, "--node", "node-b")
        self.wait_event(process, "node-b", "load")
        end = time.monotonic() + 600
        victims = []
        while not victims and process.poll() is None and time.monotonic() < end:
            victims = children(process.pid)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        self.fleet.disconnect("node-b")
        self.assertTrue(victims, "there was a connection to cut")
        self.finish(process)

    def test_a_network_that_is_away_for_some_seconds(self):
        self.edit("v2")
        process = self.begin(*START, "--node", "node-b")
        self.wait_event(process, "node-b", "load")
        self.fleet.link("node-b", False)
        try:
            time.sleep(5)
        finally:
            self.fleet.link("node-b", True)
        self.finish(process)


class Twice(UpgradeCase):
    def test_the_second_of_two_is_told_who_and_since_when(self):
        self.edit("v2")
        process = self.begin(*START)
        self.wait_event(process, "node-a", "check")
        text = self.upgrade(*START, expect=75)
        self.assertIn(str(process.pid), text)
        self.assertIn(os.uname().nodename, text)
        self.assertIn("since", text)
        self.assertIn("node-a", self.upgrade("show"))
        self.assertEqual(process.wait(1200), 0, self.output())
        self.all_on("v2")
