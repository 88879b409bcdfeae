# SPDX-License-Identifier: Apache-2.0
"""start kernel on played nodes: installs, reboots, drivers; nodes that come back otherwise or not at all; kills at
journal writes."""
import shutil
import unittest

import case
from case import differences
from fleet import KERNEL, MODULE, Fleet, scratch
from injection import every, inject, points, tried, usable

RELEASE = "6.1.0-60-amd64"
START = ("start", "kernel", "--to", RELEASE, "--install", "install-kernel $1")


class KernelFleet(Fleet):
    """Nodes with v1 of the Module loaded, at kernel 6.1.0-56-amd64."""

    @classmethod
    def create(cls, tools, root, names, unschedulable=()):
        fleet = cls.bare(tools, root, names, unschedulable)
        fleet.edit("v1")
        for arguments in (("start", "module", MODULE, "--to", "v1"), ("delete",)):
            done = fleet.run(*arguments)
            if done.returncode != 0:
                raise AssertionError(f"{arguments}: exit {done.returncode}\n{done.stdout}")
        shutil.rmtree(fleet.state)
        (fleet.nodes / "calls").unlink()
        return fleet

    def copy(self, root):
        shutil.copytree(self.root, root, symlinks=True)
        return type(self)(self.tools, root)

    def begin_update(self, *options, **more):
        return self.run(*START, *options, **more)

    def go_on(self):
        return self.run("resume") if (self.state / "journal.ndjson").exists() else self.begin_update()

    def kernel(self, node):
        return (self.nodes / node / "kernel").read_text().strip()

    def done(self, node):
        """What was carried out on the node: "install RELEASE" and "reboot BOOT"."""
        path = self.nodes / node / "done"
        return path.read_text().splitlines() if path.exists() else []

    def reboots(self, node):
        return [line for line in self.done(node) if line.startswith("reboot")]

    def verbs(self, node):
        """The verbs that were called on the node and change something, in order, doubles in a row once."""
        words = [
            call[2]
            for call in self.calls()
            if call[0] == "begin" and call[1] == node and call[2] not in ("status", "node-facts")
        ]
        return [word for index, word in enumerate(words) if index == 0 or words[index - 1] != word]

    def object(self, node):
        return (self.cluster / "nodes" / f"{node}.yaml").read_text()

    def is_cordoned(self, node):
        return "unschedulable: true" in self.object(node)


class KernelCase(case.CopyCase):
    nodes = ("node-a", "node-b", "node-c")

    @classmethod
    def setUpClass(cls):
        cls._where = scratch("kernel")
        cls._template = KernelFleet.create(case.TOOLS, cls._where / "w", cls.nodes)

    def require_updated(self, fleet, node):
        self.assertEqual(fleet.kernel(node), RELEASE)
        self.assertIn(RELEASE, fleet.object(node))
        self.assertEqual(fleet.loaded(node), ["kmm_hello"])
        self.assertEqual(len(fleet.reboots(node)), 1, fleet.done(node))
        self.assertFalse(fleet.is_cordoned(node))

    def require_untouched(self, fleet, node):
        self.assertEqual((fleet.kernel(node), fleet.done(node), fleet.verbs(node)), (KERNEL, [], []))


class Walked(KernelCase):
    def test_every_node_is_rebooted_once_and_has_its_driver(self):
        done = self.fleet.begin_update("--max-unavailable", "2")
        self.assertEqual(done.returncode, 0, done.stdout)
        for node in self.nodes:
            self.require_updated(self.fleet, node)
            self.assertEqual(self.fleet.verbs(node), ["node-install", "node-reboot", "load"])
        # A second run of the same release proves drivers and changes nothing.
        self.assertEqual(self.fleet.run("delete").returncode, 0)
        again = self.fleet.begin_update()
        self.assertEqual(again.returncode, 0, again.stdout)
        for node in self.nodes:
            self.require_updated(self.fleet, node)
        self.assertFalse(
            [event for event in self.fleet.events() if event.get("step") in ("cordon", "install", "reboot")]
        )

    def test_canary(self):
        done = self.fleet.begin_update("--canary", "1")
        self.assertEqual(done.returncode, 11, done.stdout)
        self.require_updated(self.fleet, "node-a")
        self.require_untouched(self.fleet, "node-b")
        self.assertEqual(self.fleet.run("resume").returncode, 0)
        self.require_updated(self.fleet, "node-c")

    def test_dry_run_changes_nothing(self):
        before = self.fleet.outcome()
        done = self.fleet.begin_update("--dry-run")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(differences(before, self.fleet.outcome()), "")
        self.assertEqual(self.fleet.calls(), [])

    def test_refused_without_a_mapping(self):
        path = self.fleet.cluster / "modules/kmm-hello.yaml"
        path.write_text(path.read_text().replace("'^.+$'", "'^6\\.1\\.0-56'"))
        done = self.fleet.begin_update()
        self.assertEqual(done.returncode, 10, done.stdout)
        self.assertIn("no-kernel-mapping", done.stdout)
        self.assertFalse((self.fleet.state / "journal.ndjson").exists())
        self.assertEqual(self.fleet.calls(), [])


class Troubles(KernelCase):
    def stopped(self, code, *options):
        """Starts; node-a must stop the run with this code, and the others are left alone."""
        done = self.fleet.begin_update(*options)
        self.assertEqual(done.returncode, 11, done.stdout)
        self.assertIn(f"node-a: {code}", done.stdout)
        for node in ("node-b", "node-c"):
            self.require_untouched(self.fleet, node)
        return done.stdout

    def retried(self):
        done = self.fleet.run("retry", "node-a")
        self.assertEqual(done.returncode, 0, done.stdout)
        for node in ("node-b", "node-c"):
            self.require_updated(self.fleet, node)

    def test_old_kernel(self):
        self.fleet.fault("node-a", "node-reboot old-kernel")
        text = self.stopped("kernel-not-booted")
        self.assertIn(f"node-a runs kernel {KERNEL}", text)
        self.assertTrue(self.fleet.is_cordoned("node-a"))
        self.retried()
        self.assertEqual(self.fleet.kernel("node-a"), RELEASE)
        self.assertEqual(len(self.fleet.reboots("node-a")), 2)
        self.assertFalse(self.fleet.is_cordoned("node-a"))

    def test_never_back_and_back_later(self):
        self.fleet.fault("node-a", "node-reboot never-back")
        self.stopped("node-not-back", "--node-timeout", "2s")
        self.assertTrue(self.fleet.is_cordoned("node-a"))
        (self.fleet.nodes / "node-a/down").unlink()
        self.retried()
        self.require_updated(self.fleet, "node-a")  # it was not rebooted again

    def test_does_not_go_down(self):
        for _ in range(3):
            self.fleet.fault("node-a", "node-reboot not-going")
        self.stopped("node-not-rebooted", "--node-timeout", "2s")
        (self.fleet.nodes / "node-a/faults").unlink()
        self.retried()
        self.require_updated(self.fleet, "node-a")

    def test_install_fails(self):
        self.fleet.fault("node-a", "node-install install-failed")
        text = self.stopped("install-failed")
        self.assertIn("Unable to locate package", text)
        self.assertEqual(self.fleet.reboots("node-a"), [])
        self.retried()
        self.require_updated(self.fleet, "node-a")

    def test_without_driver_then_rolled_back(self):
        self.fleet.fault("node-a", "load refused")
        self.stopped("module-refused")
        self.assertEqual(self.fleet.loaded("node-a"), [])
        self.assertTrue(self.fleet.is_cordoned("node-a"))
        done = self.fleet.run("abort", "--rollback", "current")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.fleet.kernel("node-a"), KERNEL)
        self.assertEqual(self.fleet.loaded("node-a"), ["kmm_hello"])
        self.assertFalse(self.fleet.is_cordoned("node-a"))
        self.assertEqual(
            [line.split()[0] for line in self.fleet.done("node-a")], ["install", "reboot", "install", "reboot"]
        )

    def test_rolled_back_after_it_was_done(self):
        """Its Pods have come back by then: it is emptied again before it is rebooted."""
        self.assertEqual(self.fleet.begin_update("--canary", "1").returncode, 11)
        done = self.fleet.run("abort", "--rollback", "all")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.fleet.kernel("node-a"), KERNEL)
        self.assertEqual(self.fleet.loaded("node-a"), ["kmm_hello"])
        self.assertFalse(self.fleet.is_cordoned("node-a"))
        begun = [
            event for event in self.fleet.events() if event["event"] == "intent" and event.get("step") == "rollback"
        ]
        self.assertEqual([event["facts"].get("cordon") for event in begun], ["ours"])
        self.require_untouched(self.fleet, "node-b")

    def test_connection_lost_while_installing_and_rebooting(self):
        self.fleet.fault("node-a", "node-install cut-after")
        self.fleet.fault("node-a", "node-reboot cut-after")
        self.fleet.fault("node-b", "load cut-after")
        done = self.fleet.begin_update()
        self.assertEqual(done.returncode, 0, done.stdout)
        for node in self.nodes:
            self.require_updated(self.fleet, node)

    def test_rebooted_by_somebody_else_while_validating(self):
        """The node loses its driver with that boot: it is loaded again."""
        self.fleet.fault("node-a", "load reboot-after")
        self.stopped("node-rebooted")
        self.retried()
        self.assertEqual(self.fleet.loaded("node-a"), ["kmm_hello"])
        self.assertEqual(len(self.fleet.reboots("node-a")), 1)

    def test_rolled_back_where_the_old_kernel_still_runs(self):
        """COMMAND has made the refused release the default of the boot loader: its next boot would run it."""
        self.fleet.fault("node-a", "node-reboot old-kernel")
        self.stopped("kernel-not-booted")
        self.assertEqual((self.fleet.nodes / "node-a/installed").read_text().strip(), RELEASE)
        done = self.fleet.run("abort", "--rollback", "current")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual((self.fleet.nodes / "node-a/installed").read_text().strip(), KERNEL)
        self.assertEqual(len(self.fleet.reboots("node-a")), 1, self.fleet.done("node-a"))
        self.assertFalse(self.fleet.is_cordoned("node-a"))

    def does_not_go_down(self):
        for _ in range(3):
            self.fleet.fault("node-a", "node-reboot not-going")
        self.stopped("node-not-rebooted", "--node-timeout", "2s")

    def test_a_reboot_that_is_due_is_waited_for_on_the_way_back(self):
        """It would take the drivers after the run has said that the node is back."""
        self.does_not_go_down()
        plain = self.fleet.copy(self.work / "plain")
        self.assertIn("node-a: node-not-rebooted", self.fleet.run("abort", "--rollback", "current").stdout)
        self.assertTrue(self.fleet.is_cordoned("node-a"))
        (self.fleet.nodes / "node-a/faults").unlink(missing_ok=True)
        done = self.fleet.run("resume")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.fleet.kernel("node-a"), KERNEL)
        self.assertEqual(len(self.fleet.reboots("node-a")), 1, self.fleet.done("node-a"))
        self.assertEqual(self.fleet.loaded("node-a"), ["kmm_hello"])
        self.assertFalse(self.fleet.is_cordoned("node-a"))
        (plain.nodes / "node-a/faults").unlink(missing_ok=True)
        done = plain.run("abort", "--rollback", "none")
        self.assertIn("it was asked to reboot, and may do so at any time", done.stdout)

    def test_given_up_where_the_old_kernel_still_runs(self):
        self.fleet.fault("node-a", "node-reboot old-kernel")
        self.stopped("kernel-not-booted")
        done = self.fleet.run("abort", "--rollback", "none")
        self.assertIn(f"boots {RELEASE} next", done.stdout)
        self.assertFalse(self.fleet.is_cordoned("node-a"))

    def test_given_up_where_nothing_may_be_installed(self):
        self.fleet.fault("node-a", "node-install install-failed")
        self.stopped("install-failed")
        done = self.fleet.run("abort", "--rollback", "none")
        self.assertIn(f"may boot {RELEASE} next", done.stdout)

    def job(self, calls):
        (self.fleet.nodes / "node-a/job").write_text(f"{calls}\n")

    def test_a_job_that_goes_on_is_said_and_waited_for_on_the_way_back(self):
        self.job(1000)
        text = self.stopped("step-timeout", "--node-timeout", "4s")
        self.assertIn("the job install it is still under way there, and goes on", text)
        self.assertIn("if it hangs, end everything below process 4711 on the node, pstree -p 4711 shows it", text)
        plain = self.fleet.copy(self.work / "plain").run("abort", "--rollback", "none")
        self.assertIn("the job install it is still under way there, and goes on", plain.stdout)
        self.job(2)
        done = self.fleet.run("abort", "--rollback", "current")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual((self.fleet.nodes / "node-a/installed").read_text().strip(), KERNEL)
        self.assertEqual(self.fleet.done("node-a"), [f"install {KERNEL}"])

    def test_gone_nodes_do_not_keep_others_from_going_back(self):
        self.assertEqual(self.fleet.begin_update("--canary", "2").returncode, 11)
        (self.fleet.cluster / "nodes/node-b.yaml").unlink()
        (self.fleet.nodes / "node-b/down").write_text("ever\n")
        done = self.fleet.run("abort", "--rollback", "all")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("there is no Node node-b and no answer from it: it stays as it is", done.stdout)
        self.assertEqual(self.fleet.kernel("node-a"), KERNEL)

    def test_a_node_that_left_the_cluster_is_not_waited_for(self):
        self.assertEqual(self.fleet.begin_update("--canary", "1").returncode, 11)
        (self.fleet.cluster / "nodes/node-b.yaml").unlink()
        (self.fleet.nodes / "node-b/down").write_text("ever\n")
        before = len(self.fleet.calls())
        done = self.fleet.run("resume")
        self.assertEqual(done.returncode, 12, done.stdout)
        self.assertIn("there is no Node node-b", self.fleet.run("show").stdout)
        asked = [call for call in self.fleet.calls()[before:] if call[:2] == ["begin", "node-b"]]
        self.assertLessEqual(len(asked), 3, asked)
        self.require_updated(self.fleet, "node-c")

    def test_a_host_without_its_node_is_brought_back(self):
        self.assertEqual(self.fleet.begin_update("--canary", "2").returncode, 11)
        (self.fleet.cluster / "nodes/node-b.yaml").unlink()
        done = self.fleet.run("abort", "--rollback", "all")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("there is no Node node-b: its drivers were not looked at", done.stdout)
        self.assertEqual((self.fleet.kernel("node-a"), self.fleet.kernel("node-b")), (KERNEL, KERNEL))

    def test_a_host_without_its_node_whose_connection_is_lost_on_the_way_back(self):
        """It has answered once: the silence ends, and nobody could leave it out of an abort."""
        for fault in ("node-facts cut-before", "node-install cut-after", "node-reboot cut-after"):
            world = self.fleet.copy(self.work / fault.split()[0])
            self.assertEqual(world.begin_update("--canary", "1").returncode, 11)
            (world.cluster / "nodes/node-a.yaml").unlink()
            if fault.startswith("node-facts"):
                world.fault("node-a", "node-facts -")  # of the first question, whether it is there at all
                world.fault("node-a", fault)
            world.fault("node-a", fault)
            done = world.run("abort", "--rollback", "all")
            self.assertEqual(done.returncode, 0, f"{fault}: {done.stdout}")
            self.assertEqual(world.kernel("node-a"), KERNEL)

    def test_a_reboot_while_it_is_watched(self):
        """No Module selects the node: only its boot id says that the new kernel has brought it down."""
        (self.fleet.cluster / "modules/kmm-hello.yaml").unlink()
        check = self.work / "goes-down"
        check.write_text(f"#!/bin/sh\necho node-facts reboot-before >>{self.fleet.nodes}/node-a/faults\n")
        check.chmod(0o755)
        text = self.stopped("node-rebooted", "--soak", "1s", "--check", str(check))
        self.assertIn("rebooted since it was updated", text)
        check.write_text("#!/bin/sh\n")
        done = self.fleet.run("retry", "node-a")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(len(self.fleet.reboots("node-a")), 1)

    def test_a_reboot_after_it_was_done_takes_its_drivers(self):
        self.assertEqual(self.fleet.begin_update("--canary", "1").returncode, 11)
        (self.fleet.nodes / "node-a/live").unlink()
        (self.fleet.nodes / "node-a/boot-id").write_text("boot-later\n")
        path = self.fleet.cluster / "nodes/node-a.yaml"
        path.write_text(path.read_text().replace("boot-node-a-r", "boot-later"))
        done = self.fleet.run("resume")
        self.assertEqual(done.returncode, 11, done.stdout)
        self.assertIn("node-a: node-rebooted", done.stdout)
        done = self.fleet.run("retry", "node-a")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.fleet.loaded("node-a"), ["kmm_hello"])


    def test_a_host_that_boots_otherwise_after_it_was_done(self):
        """No kubelet writes that into its Node: the host itself is asked before the run is complete."""
        self.assertEqual(self.fleet.begin_update("--canary", "1").returncode, 11)
        host = self.fleet.nodes / "node-a"
        (host / "live").unlink()
        (host / "boot-id").write_text("boot-later\n")
        (host / "kernel").write_text(f"{KERNEL}\n")
        done = self.fleet.run("resume")
        self.assertEqual(done.returncode, 11, done.stdout)
        self.assertIn(f"runs kernel {KERNEL}, not {RELEASE}, after it was done", done.stdout)
        self.assertEqual(self.fleet.run("retry", "node-a").returncode, 0)
        self.assertEqual((self.fleet.kernel("node-a"), self.fleet.loaded("node-a")), (RELEASE, ["kmm_hello"]))

    def test_a_driver_that_is_unloaded_after_it_was_done(self):
        self.assertEqual(self.fleet.begin_update("--canary", "1").returncode, 11)
        (self.fleet.nodes / "node-a/live").unlink()
        done = self.fleet.run("resume")
        self.assertEqual(done.returncode, 11, done.stdout)
        self.assertIn("node-a: driver-missing", done.stdout)
        self.assertIn("kmm_hello of Module drivers/kmm-hello is not live, after it was done", done.stdout)
        self.assertEqual(self.fleet.run("retry", "node-a").returncode, 0)
        self.assertEqual(self.fleet.loaded("node-a"), ["kmm_hello"])

    def test_a_host_that_gives_no_answer_after_it_was_done(self):
        self.assertEqual(self.fleet.begin_update("--canary", "1", "--node-timeout", "5s").returncode, 11)
        down = self.fleet.nodes / "node-a/down"
        down.write_text("ever\n")
        done = self.fleet.run("resume")
        self.assertEqual(done.returncode, 11, done.stdout)
        self.assertIn("node node-a gives no answer, after it was done", done.stdout)
        down.unlink()
        self.assertEqual(self.fleet.run("resume").returncode, 0)


class Killed(KernelCase):
    """One node. The boot id counts the reboots, so that a node that is rebooted twice ends otherwise."""
    nodes = ("node-a",)

    def test_journal(self):
        if not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        world = self.fleet.copy(self.work / "unkilled")
        done = world.begin_update()
        self.assertEqual(done.returncode, 0, done.stdout)
        expected = world.outcome()
        found, done = points(self.fleet, START, only="journal.ndjson")
        self.assertEqual(done.returncode, 0, done.stdout)
        writes = [point for point in found if point[0] == "write"]
        self.assertGreater(len(writes), 15)

        def body(point):
            where = scratch("kill")
            try:
                world = self.fleet.copy(where / "w")
                world.run(*START, prefix=inject(point[0], f"signal=KILL:when={point[1]}"))
                last = world.go_on()
                if last.returncode != 0:
                    return f"going on: exit {last.returncode}: {last.stdout}"
                return differences(expected, world.outcome())
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(tried(writes), body)
        self.assertEqual(faults[:3], [], f"{len(faults)} kills end otherwise")

    def left_installed(self, *command):
        """A copy in which node-a was killed between its installation and its reboot."""
        if not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        found, done = points(self.fleet, command, only="journal.ndjson")
        self.assertEqual(done.returncode, 0, done.stdout)
        for number, point in enumerate(point for point in found if point[0] == "write"):
            world = self.fleet.copy(self.work / f"killed-{number}")
            world.run(*command, prefix=inject(point[0], f"signal=KILL:when={point[1]}"))
            if (world.state / "journal.ndjson").exists() and world.events()[-1].get("to") == "installed":
                return world
        return self.fail("no kill leaves the node installed")

    def test_uncordoned_by_someone_else_before_its_reboot(self):
        """Pods may have come back since the node was drained: they leave again before it is rebooted."""
        world = self.left_installed(*START)
        path = world.cluster / "nodes/node-a.yaml"
        path.write_text(path.read_text().replace("unschedulable: true", "unschedulable: false"))
        done = world.go_on()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("uncordoned by someone else since it was drained: cordoned and drained again", done.stdout)
        self.require_updated(world, "node-a")

    def test_a_cordon_of_someone_else_that_is_lifted_before_the_reboot(self):
        """A person, or another run, had cordoned the node: once that is lifted, this run keeps Pods away."""
        path = self.fleet.cluster / "nodes/node-a.yaml"
        path.write_text(path.read_text().replace("unschedulable: false", "unschedulable: true"))
        world = self.left_installed(*START, "--node", "node-a")
        path = world.cluster / "nodes/node-a.yaml"
        self.assertIn("unschedulable: true", path.read_text())
        path.write_text(path.read_text().replace("unschedulable: true", "unschedulable: false"))
        done = world.go_on()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("uncordoned by someone else since it was drained: cordoned and drained again", done.stdout)
        self.require_updated(world, "node-a")
        self.assertFalse(world.is_cordoned("node-a"))

    def test_a_cordon_of_someone_else_that_is_lifted_before_the_way_back(self):
        path = self.fleet.cluster / "nodes/node-a.yaml"
        path.write_text(path.read_text().replace("unschedulable: false", "unschedulable: true"))
        self.fleet.fault("node-a", "load refused")
        self.assertEqual(self.fleet.begin_update("--node", "node-a").returncode, 11)
        path.write_text(path.read_text().replace("unschedulable: true", "unschedulable: false"))
        done = self.fleet.run("abort", "--rollback", "all")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("uncordoned by someone else since it was drained: cordoned and drained again", done.stdout)
        self.assertEqual(self.fleet.kernel("node-a"), KERNEL)
        self.assertFalse(self.fleet.is_cordoned("node-a"))
