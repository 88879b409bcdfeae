# SPDX-License-Identifier: Apache-2.0
"""start kernel on three machines that reboot from their disks: BIOS, GRUB, and the one of two Debian kernels that is
GRUB's default."""
import re
import signal

from lab import cluster
from lab.bootdisk import BOOTS, Kernels
from lab.common import NODES, LabError, run, say, wait_for
from lab.upgrading import MODULE, CommandCase

MEMORY = 320
PATIENCE = 900  # seconds, for what takes ten
INSTALL = "install-kernel $1"


class Rebooted(CommandCase):
    """Each test starts with three nodes that run the same kernel, whichever, with the Module loaded by kmm-upgrade, and
    goes to the other one."""
    GROUP = "kernels"

    @classmethod
    def open_fleet(cls):
        super().open_fleet()
        cls.kernels = Kernels(cls.lab)
        cls.image_of_both = cls.kernels.publish(cls.registry)
        cls.addClassCleanup(cls.fleet.down)
        cls.boot_all()

    @classmethod
    def boot_all(cls):
        cls.fleet.boot(cls.kernels.disks(NODES, cls.bin / "kmm-worker"), MEMORY)

    def setUp(self):
        if len(set(self.running().values())) > 1:  # an earlier test has failed
            self.boot_all()
            self.fleet.wait_ready()
        super().setUp()
        self.old = self.running()[NODES[0]]
        self.new = self.kernels.other(self.old)
        self.before = {name: self.fleet.boot_id(name) for name in NODES}
        self.boots_before = {name: len(self.boots(name)) for name in NODES}
        cluster.write_nodes(self.directory, self.kernels.labs[self.old], self.before)
        cluster.write_module(self.directory, self.image_of_both, "v1", parameters=["greeting=hello"])
        self.upgrade("start", "module", MODULE, "--to", "v1", "--max-unavailable", "3")
        self.upgrade("delete")
        for name in NODES:
            self.require(name, self.old)
        self.start = ("start", "kernel", "--to", self.new, "--install", INSTALL)

    def running(self):
        return {name: text.strip() for name, text in self.fleet.each("uname -r").items()}

    def boots(self, name):
        """The boot ids of a node since its power was switched on, in order, as it has printed them."""
        return re.findall(rf"lab: {name} is up, boot (\S+)", self.fleet.console(name))

    def grub(self, name):
        """The kernels that the boot loader has started on a node, in order."""
        return re.findall(rf"^{BOOTS} (\S+)", self.fleet.console(name), re.MULTILINE)

    def rebooted(self, name):
        """How often the node has rebooted in this test."""
        return len(self.boots(name)) - self.boots_before[name]

    def object(self, name):
        return (self.directory / "nodes" / f"{name}.yaml").read_text()

    def require(self, name, release):
        """The node runs that kernel with the module that was built for it, and its Node says so."""
        identity = run(["modinfo", "-F", "srcversion", self.kernels.module(release)]).stdout.strip()
        boot = self.fleet.boot_id(name)
        self.assertEqual((self.fleet.shell(name, "uname -r").strip(), self.live(name)), (release, identity), name)
        self.assertEqual((self.boots(name)[-1], self.grub(name)[-1]), (boot, release), name)
        self.assertRegex(self.object(name), rf'kernelVersion: "?{re.escape(release)}"?\n')
        self.assertRegex(self.object(name), rf'bootID: "?{boot}"?\n')
        self.assertNotIn("unschedulable: true", self.object(name))

    def require_updated(self, name, reboots=1):
        self.require(name, self.new)
        self.assertNotEqual(self.fleet.boot_id(name), self.before[name])
        self.assertEqual(self.rebooted(name), reboots, self.fleet.console(name))
        self.assertEqual(len(self.grub(name)), len(self.boots(name)))

    def require_untouched(self, name):
        self.require(name, self.old)
        self.assertEqual((self.fleet.boot_id(name), self.rebooted(name)), (self.before[name], 0))

    def test_each_node_boots_the_other_kernel_once(self):
        before = {name: self.object(name) for name in NODES}
        text = self.upgrade(*self.start, "--dry-run")
        self.assertIn(f"reboot, wait for a new boot of {self.new}", text)
        self.assertEqual({name: self.object(name) for name in NODES}, before)
        for name in NODES:
            self.require_untouched(name)
        self.upgrade(*self.start, "--max-unavailable", "3")
        for name in NODES:
            self.require_updated(name)
        self.assertEqual(self.most_in_flight(), 3)
        self.assertIn("upgrade-complete", self.upgrade("show"))
        self.upgrade("delete")
        # The same again finds all done, and reboots nothing.
        self.upgrade(*self.start)
        for name in NODES:
            self.require_updated(name)

    def test_a_node_that_comes_back_with_the_old_kernel_stops_the_run(self):
        self.fleet.shell("node-a", "cd /bin && mv install-kernel install-kernel.off && "
                                   "printf '#!/bin/sh\\necho installed\\n' >install-kernel && "
                                   "chmod +x install-kernel && sync")
        text = self.upgrade(*self.start, expect=11)
        self.fleet.shell("node-a", "mv /bin/install-kernel.off /bin/install-kernel; sync")
        self.assertIn("node-a: kernel-not-booted", text)
        self.assertIn(f"node node-a runs kernel {self.old} after its reboot, expected {self.new}", text)
        self.assertIn("unschedulable: true", self.object("node-a"))
        self.assertEqual((self.running()["node-a"], self.rebooted("node-a")), (self.old, 1))
        for name in ("node-b", "node-c"):
            self.require_untouched(name)
        # It has the old kernel already: its driver is loaded again, without another reboot.
        self.upgrade("abort", "--rollback", "current")
        self.require("node-a", self.old)
        self.assertEqual(self.rebooted("node-a"), 1)

    def test_killed_during_each_reboot_and_resumed(self):
        """When the reboot was just begun, while the boot loader is at work, and when the node is up again."""
        process = self.begin(*self.start)
        self.wait_event(process, "node-a", "reboot", PATIENCE)
        self.kill(process)
        process = self.begin("resume")
        before = len(self.grub("node-b"))
        self.wait_console(process, "node-b", lambda: len(self.grub("node-b")) > before)
        self.kill(process)
        process = self.begin("resume")
        self.wait_console(process, "node-c", lambda: self.rebooted("node-c") > 0)
        self.kill(process)
        self.upgrade("resume", timeout=2 * PATIENCE)
        for name in NODES:
            self.require_updated(name)
        self.assertEqual(self.most_in_flight(), 1)
        self.assertIn("upgrade-complete", self.upgrade("show"))

    def wait_console(self, process, name, seen):
        def look():
            has_ended = process.poll() is not None
            if seen():
                return True
            if has_ended:
                raise LabError(f"kmm-upgrade ended before the reboot of {name}: {self.output()}")
            return False
        wait_for(f"the reboot of {name}", look, PATIENCE, 0.02)

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        # Where the test waited for a processor, the last node may be done before.
        self.assertIn(process.wait(), (-signal.SIGKILL, 0), self.output())
        say(f"killed: {self.events()[-1].get('node')} {self.events()[-1].get('step')}")
