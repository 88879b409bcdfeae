# SPDX-License-Identifier: Apache-2.0
"""Kernels that refuse: signatures enforced, lockdown, a module list on the command line, loading switched off. Each is
seen by the check before anything is tried; where the check is blindfolded, the kernel's own answer is told."""
from lab.testing import NodeCase

NODE = "node-x"
DUMMY = "modprobe:\n  rawArgs:\n    load: [dummy]\n    unload: [-r, dummy]\n"


class GuardedCase(NodeCase):
    """A node of its own, booted with WORDS on the kernel's command line."""
    GROUP = "guarded"
    WORDS = ""

    @classmethod
    def open_fleet(cls):
        super().open_fleet()
        cls.addClassCleanup(cls.fleet.down)
        cls.fleet.start([NODE], words=cls.WORDS)

    def hidden(self, path, text=""):
        """Lets a file of the kernel say something else until the test ends."""
        mask = f"/run/{path.rpartition('/')[2]}"
        self.fleet.shell(NODE, f"cat >{mask} && mount --bind {mask} {path}", text)
        self.addCleanup(self.fleet.shell, NODE, f"umount {path}")

    def foreseen(self, config, *words):
        """`check` and `load` find it beforehand."""
        for verb in ("check", "load"):
            error = self.worker(NODE, f"{verb} -", config, expect=10)
            self.assertEqual(error["code"], "check-failed")
            for word in words:
                self.assertIn(word, str(error))

    def refused(self, config, errno, *words):
        """The kernel refuses."""
        error = self.worker(NODE, "load -", config, expect=13)
        self.assertEqual(error["code"], "module-refused")
        for word in (errno, *words):
            self.assertIn(word, str(error))
        return error

    def told(self, number, cause):
        """`explain` finds the cause on this node."""
        causes = self.worker(NODE, f"explain {number}")["causes"]
        self.assertIn(cause, [c["cause"] for c in causes if c["applies"] == "yes"], causes)


class Enforced(GuardedCase):
    WORDS = "module.sig_enforce=1 module_blacklist=floppy,dummy"

    def test_a_module_without_a_signature(self):
        config = self.config(self.image("kmm-hello", "v1"))
        self.foreseen(config, "module kmm_hello is not signed", "sig_enforce on")
        self.hidden("/sys/module/module/parameters/sig_enforce", "N\n")
        self.refused(config, "EKEYREJECTED", "the module is not signed")
        self.assertIsNone(self.live(NODE))

    def test_a_signature_by_a_key_that_this_kernel_does_not_know(self):
        config = self.config(self.image("kmm-hello", "v2-foreign-key"))
        self.foreseen(
            config, "no key of this kernel's keyrings fits the signature of module kmm_hello", "Somebody's own key"
        )
        self.hidden("/proc/keys")
        self.refused(config, "EKEYREJECTED", "Somebody's own key")
        self.assertIsNone(self.live(NODE))

    def test_a_module_that_the_command_line_excludes(self):
        self.foreseen(DUMMY, "module dummy is in module_blacklist= of the kernel command line")
        self.hidden("/proc/cmdline")
        self.refused(DUMMY, "EPERM")
        self.assertIsNone(self.live(NODE, "dummy"))

    def test_switched_off_until_the_next_boot(self):
        """The last one: its name comes after the others', and loading stays off."""
        self.worker(NODE, "load -", DUMMY.replace("dummy", "bridge"))
        self.fleet.shell(NODE, "echo 1 >/proc/sys/kernel/modules_disabled")
        config = self.config(self.image("kmm-hello", "v1"))
        self.foreseen(config, "modules_disabled is 1", "reboot")
        self.told("EPERM", "loading of modules is switched off until the next boot")
        error = self.worker(NODE, "unload --module bridge", expect=13)
        self.assertIn("EPERM", str(error))
        self.assertTrue(self.worker(NODE, "facts")["facts"]["modulesDisabled"])
        self.hidden("/proc/sys/kernel/modules_disabled", "0\n")
        self.hidden("/sys/module/module/parameters/sig_enforce", "N\n")
        self.refused(config, "EPERM")


class Lockdown(GuardedCase):
    WORDS = "lockdown=integrity"

    def test_a_module_without_a_signature(self):
        config = self.config(self.image("kmm-hello", "v1"))
        self.refused(config, "EPERM")  # securityfs is not mounted: nothing tells of it but the kernel
        self.fleet.shell(NODE, "mount -t securityfs securityfs /sys/kernel/security")
        self.foreseen(config, "module kmm_hello is not signed", "lockdown integrity")
        self.told("EPERM", "lockdown refuses modules without a valid signature")
        self.assertIsNone(self.live(NODE))
