# SPDX-License-Identifier: Apache-2.0
"""What KMM's worker promises, on a real kernel: what becomes of it there, with Debian's modprobe, and with kmm-worker.

Each test says so in its first lines, which docs/kmm-worker.md shows as a table (tests/lint/operator_page.py): the
promise, then what KMM's worker does with it, then kmm-worker.
"""
import unittest

from lab.operator import FIRMWARE_CLASS, Operator
from lab.testing import SingleCase

NODE = "node-a"
FIRMWARE = "/run/test-firmware"


class OperatorCase(SingleCase):
    def setUp(self):
        super().setUp()
        self.operator = Operator(self.fleet, NODE, self.lab.kernel)
        self.operator.clean()
        self.addCleanup(self.operator.clean)
        self.fleet.shell(NODE, f"rm -rf {FIRMWARE} /run/kmm-worker; printf '\\0' >{FIRMWARE_CLASS}")

    def take(self, image, expect=0, **options):
        return self.worker(NODE, "kmod load -", self.config(image, **options), expect)

    def between(self):
        """After KMM's turn: the node as before it."""
        self.fleet.clean()
        self.fleet.shell(NODE, f"rm -rf {FIRMWARE}; printf '\\0' >{FIRMWARE_CLASS}")

    def done(self, result, code=0):
        """What KMM's worker printed; its exit code must be that."""
        self.assertEqual(result[0], code, result[1])
        return result[1]

    def loaded(self, *modules):
        """Those of the modules that are live."""
        return [name for name in modules if self.live(NODE, name)]

    def search_path(self):
        return self.fleet.shell(NODE, f"cat {FIRMWARE_CLASS}").strip("\0\n")

    def firmware_config(self):
        return self.config(self.image("kmm-firmware", "v1"), module="kmm_odd") + "  firmwarePath: /opt/firmware\n"

    def on_node(self, path):
        return self.fleet.shell(NODE, f"cat {path} 2>/dev/null || true")


class Firmware(OperatorCase):
    def setUp(self):
        super().setUp()
        self.operator.extract(self.image("kmm-firmware", "v1"), firmware="/opt/firmware")
        self.how = {"module": "kmm_odd", "firmware": "/opt/firmware", "firmware_path": FIRMWARE}

    def test_the_search_path(self):
        """`--firmware-path` becomes the kernel's search path
        it stays there until the node is rebooted
        the kernel's former path is back after the unload
        """
        self.done(self.operator.load(**self.how))
        self.done(self.operator.unload(**self.how))
        self.assertEqual(self.search_path(), FIRMWARE)
        self.between()
        self.worker(NODE, f"kmod load - --firmware-path {FIRMWARE}", self.firmware_config())
        self.assertEqual(self.search_path(), FIRMWARE)
        self.worker(NODE, f"kmod unload - --firmware-path {FIRMWARE}", self.firmware_config())
        self.assertEqual(self.search_path(), "")

    def test_a_path_that_the_kernel_does_not_take(self):
        """A search path that the kernel refuses ends the load
        exit 1, after the image has been copied
        refused before anything is changed, with the 255 bytes that the kernel has room for
        """
        how = {**self.how, "firmware_path": "/run/" + "x" * 300}
        self.done(self.operator.load(**how), 1)
        self.between()
        error = self.worker(
            NODE, f"kmod load - --firmware-path {how['firmware_path']}", self.firmware_config(), expect=64
        )
        self.assertIn("255", str(error))
        self.assertEqual((self.search_path(), self.loaded("kmm_odd")), ("", []))

    def test_files_are_copied(self):
        """Firmware of the image is copied below the path, over what is there
        a file of the host that has the same name is lost
        it is put aside, and put back by the unload
        """
        theirs = f"mkdir -p {FIRMWARE}/kmm && echo of the host >{FIRMWARE}/kmm/odd.bin"
        self.fleet.shell(NODE, theirs)
        self.done(self.operator.load(**self.how))
        self.assertEqual(self.on_node(f"{FIRMWARE}/kmm/odd.bin"), "the first firmware\n")
        self.done(self.operator.unload(**self.how))
        self.assertEqual(self.on_node(f"{FIRMWARE}/kmm/odd.bin"), "")
        self.between()
        self.fleet.shell(NODE, theirs)
        self.worker(NODE, f"kmod load - --firmware-path {FIRMWARE}", self.firmware_config())
        self.assertEqual(self.on_node(f"{FIRMWARE}/kmm/odd.bin"), "the first firmware\n")
        self.worker(NODE, f"kmod unload - --firmware-path {FIRMWARE}", self.firmware_config())
        self.assertEqual(self.on_node(f"{FIRMWARE}/kmm/odd.bin"), "of the host\n")

    def test_an_image_without_them(self):
        """Firmware that is not in the image ends the load
        exit 1 with the error of the copy
        exit 66, and nothing is loaded
        """
        how = {**self.how, "firmware": "/opt/elsewhere"}
        self.assertIn("No such file", self.done(self.operator.load(**how), 1))
        self.assertEqual(self.loaded("kmm_odd"), [])
        self.between()
        config = self.firmware_config().replace("/opt/firmware", "/opt/elsewhere")
        error = self.worker(NODE, f"kmod load - --firmware-path {FIRMWARE}", config, expect=66)
        self.assertIn("/opt/elsewhere", str(error))
        self.assertEqual(self.loaded("kmm_odd"), [])

    def test_files_are_removed(self):
        """The unload removes the firmware
        every file that has a name of the image's, whoever made it; directories stay
        what it copied itself, and nobody has changed since; the directories that it made go with them
        """
        self.done(self.operator.load(**self.how))
        self.fleet.shell(NODE, f"echo of another >{FIRMWARE}/kmm/odd.bin; echo more >{FIRMWARE}/kmm/more.bin")
        self.done(self.operator.unload(**self.how))
        self.assertEqual(self.on_node(f"{FIRMWARE}/kmm/odd.bin"), "")
        self.between()
        self.worker(NODE, f"kmod load - --firmware-path {FIRMWARE}", self.firmware_config())
        self.fleet.shell(NODE, f"echo of another >{FIRMWARE}/kmm/odd.bin")
        self.worker(NODE, f"kmod unload - --firmware-path {FIRMWARE}", self.firmware_config())
        self.assertEqual(self.on_node(f"{FIRMWARE}/kmm/odd.bin"), "of another\n")
        self.between()
        self.worker(NODE, f"kmod load - --firmware-path {FIRMWARE}", self.firmware_config())
        self.worker(NODE, f"kmod unload - --firmware-path {FIRMWARE}", self.firmware_config())
        self.fleet.shell(NODE, f"test ! -e {FIRMWARE}")

    def test_a_failed_unload(self):
        """An unload that fails does not touch the firmware
        so it is
        so it is, and who holds the module is named
        """
        self.done(self.operator.load(**self.how))
        pid = self.open_device(NODE, "/dev/kmm_odd")
        try:
            self.assertIn("in use", self.done(self.operator.unload(**self.how), 1))
            self.assertEqual(self.on_node(f"{FIRMWARE}/kmm/odd.bin"), "the first firmware\n")
        finally:
            self.close_device(NODE, pid)
        self.between()
        self.worker(NODE, f"kmod load - --firmware-path {FIRMWARE}", self.firmware_config())
        pid = self.open_device(NODE, "/dev/kmm_odd")
        try:
            error = self.worker(
                NODE, f"kmod unload - --firmware-path {FIRMWARE} --wait 0s", self.firmware_config(), expect=14
            )
            self.assertIn(f"process {pid}", str(error))
            self.assertEqual(self.on_node(f"{FIRMWARE}/kmm/odd.bin"), "the first firmware\n")
        finally:
            self.close_device(NODE, pid)


class InTree(OperatorCase):
    def setUp(self):
        super().setUp()
        self.operator.extract(self.image("kmm-hello", "v1"))

    def test_it_gives_way(self):
        """inTreeModulesToRemove: they are unloaded before the module is loaded
        so it is; they stay away after the unload
        so it is; `unload --restore-in-tree` brings them back
        """
        image = self.image("kmm-hello", "v1")
        self.fleet.shell(NODE, "modprobe dummy numdummies=0")
        self.done(self.operator.load(remove=["dummy"]))
        self.assertEqual(self.loaded("kmm_hello", "dummy"), ["kmm_hello"])
        self.done(self.operator.unload())
        self.assertEqual(self.loaded("dummy"), [])
        self.between()
        self.fleet.shell(NODE, "modprobe dummy numdummies=0")
        self.take( image, remove=["dummy"])
        self.assertEqual(self.loaded("kmm_hello", "dummy"), ["kmm_hello"])
        self.worker(NODE, "kmod unload - --restore-in-tree", self.config(image, remove=["dummy"]))
        self.assertEqual(self.fleet.ssh(NODE, "test -d /sys/module/dummy").returncode, 0)

    def test_the_former_field(self):
        """inTreeModuleToRemove, the former field, counts where the list is not given
        so it is
        so it is
        """
        self.fleet.shell(NODE, "modprobe dummy numdummies=0")
        self.done(self.operator.load(remove=["dummy"]))  # as the list of one that KMM's worker makes of it
        self.assertEqual(self.loaded("kmm_hello", "dummy"), ["kmm_hello"])
        self.between()
        self.fleet.shell(NODE, "modprobe dummy numdummies=0")
        self.worker(NODE, "kmod load -", "inTreeModuleToRemove: dummy\n" + self.config(self.image("kmm-hello", "v1")))
        self.assertEqual(self.loaded("kmm_hello", "dummy"), ["kmm_hello"])

    def test_one_without_a_file(self):
        """inTreeModulesToRemove: one that is live and has no file in the host's tree
        it is looked for by the names of files: passed over, and both are loaded
        it is looked for in the kernel: unloaded, but one that kmm-worker has loaded stays, and the load is refused
        """
        self.worker(NODE, "kmod load -", self.config(self.image("kmm-misc", "v1"), module="kmm_busy"))
        self.done(self.operator.load(remove=["kmm_busy"]))
        self.assertEqual(self.loaded("kmm_hello", "kmm_busy"), ["kmm_hello", "kmm_busy"])
        self.fleet.shell(NODE, "rmmod kmm_hello")
        self.take(self.image("kmm-hello", "v1"), 13, remove=["kmm_busy"])
        self.assertEqual(self.loaded("kmm_hello", "kmm_busy"), ["kmm_busy"])
        self.fleet.shell(
            NODE,
            f"kmm-worker unload --module kmm_busy -q && "
            f"kmm-worker pull {self.image('kmm-misc', 'v1')} --insecure --out /run/misc -q -o name && "
            f"insmod /run/misc/opt/lib/modules/*/kmm_busy.ko; rm -r /run/misc",
        )
        self.take(self.image("kmm-hello", "v1"), remove=["kmm_busy"])
        self.assertEqual(self.loaded("kmm_hello", "kmm_busy"), ["kmm_hello"])

    def test_one_with_a_dash(self):
        """inTreeModulesToRemove: one whose file is spelt with the other of - and _
        passed over, and both are loaded
        unloaded: the kernel knows no difference
        """
        tree = f"/lib/modules/{self.lab.kernel}/extra"
        self.fleet.shell(
            NODE,
            f"mkdir -p {tree} && kmm-worker pull {self.image('kmm-misc', 'v1')} --insecure --out /run/misc -q -o name "
            f"&& "
            f"mv /run/misc/opt/lib/modules/*/kmm_busy.ko {tree} && insmod {tree}/kmm_busy.ko; rm -r /run/misc",
        )
        self.addCleanup(self.fleet.shell, NODE, f"rm -r {tree}")
        self.done(self.operator.load(remove=["kmm-busy"]))
        self.assertEqual(self.loaded("kmm_hello", "kmm_busy"), ["kmm_hello", "kmm_busy"])
        self.fleet.shell(NODE, "rmmod kmm_hello")
        self.take( self.image("kmm-hello", "v1"), remove=["kmm-busy"])
        self.assertEqual(self.loaded("kmm_hello", "kmm_busy"), ["kmm_hello"])

    def test_one_in_use(self):
        """inTreeModulesToRemove: one that cannot be unloaded ends the load
        exit 1: "is in use"
        exit 14, with who needs it
        """
        self.fleet.shell(NODE, "modprobe bridge")
        self.assertIn("in use", self.done(self.operator.load(remove=["stp"]), 1))
        self.assertEqual(self.loaded("kmm_hello"), [])
        error = self.take( self.image("kmm-hello", "v1"), expect=14, remove=["stp"])
        self.assertIn("bridge", str(error))
        self.assertEqual(self.loaded("kmm_hello"), [])


class Modprobe(OperatorCase):
    def test_parameters(self):
        """parameters are given to the module
        so it is; the kernel loads a module with a misspelt one, and nobody is told
        so it is, and the live values are compared; a misspelt one is refused
        """
        image = self.image("kmm-hello", "v1")
        self.operator.extract(image)
        self.done(self.operator.load(parameters=["greeting=bonjour"]))
        self.assertEqual(self.live_parameter(NODE, "greeting"), "bonjour")
        self.done(self.operator.unload())
        self.done(self.operator.load(parameters=["greting=bonjour"]))
        self.between()
        self.take( image, parameters=["greeting=bonjour"])
        self.assertEqual(self.live_parameter(NODE, "greeting"), "bonjour")
        self.worker(NODE, "kmod unload -", self.config(image))
        self.take( image, expect=10, parameters=["greting=bonjour"])
        self.assertEqual(self.loaded("kmm_hello"), [])

    def test_raw_arguments(self):
        """rawArgs are modprobe's whole command line
        so it is, and the image is not looked at
        so it is, from the host's tree; what is live is proven as ever
        """
        tree = f"/lib/modules/{self.lab.kernel}/extra"
        self.fleet.shell(NODE, f"mkdir -p {tree} && cp /opt/lab/kmm_hello-v1.ko {tree}/kmm_hello.ko && /opt/lab/depmod")
        self.addCleanup(self.fleet.shell, NODE, f"rm -r {tree}; /opt/lab/depmod")
        raw = {"load": ["-v", "kmm_hello", "greeting=bonjour"], "unload": ["-r", "kmm_hello"]}
        self.done(self.operator.load(raw=raw["load"]))
        self.assertEqual(self.live_parameter(NODE, "greeting"), "bonjour")
        self.done(self.operator.unload(raw=raw["unload"]))
        self.assertEqual(self.loaded("kmm_hello"), [])
        config = "modprobe:\n  rawArgs:\n    load: [-v, kmm_hello, greeting=bonjour]\n    unload: [-r, kmm_hello]\n"
        result = self.worker(NODE, "kmod load -", config)
        self.assertEqual((result["outcome"], self.live_parameter(NODE, "greeting")), ("loaded", "bonjour"))
        self.worker(NODE, "kmod unload -", config)
        self.assertEqual(self.loaded("kmm_hello"), [])

    def test_a_blacklist(self):
        """args are modprobe's options: `-b` asks for the host's blacklist
        exit 0, and nothing is loaded
        an error that names the line
        """
        conf = "/run/modprobe.d/blacklist.conf"
        self.fleet.shell(NODE, f"echo blacklist kmm_hello >{conf}")
        self.addCleanup(self.fleet.shell, NODE, f"rm -f {conf}")
        image = self.image("kmm-hello", "v1")
        self.operator.extract(image)
        self.done(self.operator.load(args=["-b"]))
        self.assertEqual(self.loaded("kmm_hello"), [])
        config = self.config(image) + "  args:\n    load: [-b]\n"
        error = self.worker(NODE, "kmod load -", config, expect=10)
        self.assertIn(conf, str(error))
        self.assertEqual(self.loaded("kmm_hello"), [])

    def test_another_build_is_live(self):
        """A module that is live already is no error
        whichever build it is: exit 0 with the old one live
        only if it is the image's build; another is an error that has both
        """
        self.fleet.shell(NODE, "insmod /opt/lab/kmm_hello-v1.ko")
        self.operator.extract(self.image("kmm-hello", "v2"))
        self.done(self.operator.load())
        self.assertEqual(self.live(NODE), self.file_identity("v1"))
        error = self.take( self.image("kmm-hello", "v2"), expect=13)
        self.assertIn(self.file_identity("v2"), str(error))
        self.assertEqual(self.take( self.image("kmm-hello", "v1"))["outcome"], "already-loaded")

    def test_an_image_without_an_index(self):
        """The module is found in the image
        by modules.dep, which depmod must have made when the image was built
        by the files themselves, its dependencies by their symbols
        """
        image = self.image("kmm-misc", "v1")
        self.operator.extract(image, index=False)
        self.assertIn("not found", self.done(self.operator.load(module="kmm_user"), 1))
        self.take( image, module="kmm_user")
        self.assertEqual(self.loaded("kmm_dep", "kmm_user"), ["kmm_dep", "kmm_user"])

    def test_unload_without_the_image(self):
        """The unload takes the module out of the kernel
        only with the image that it came from: "not found" with another
        by its name: no image is needed
        """
        self.fleet.shell(NODE, "insmod /opt/lab/kmm_hello-v1.ko")
        self.operator.extract(self.image("kmm-misc", "v1"))
        self.assertIn("not found", self.done(self.operator.unload(), 1))
        self.assertEqual(self.loaded("kmm_hello"), ["kmm_hello"])
        self.worker(NODE, "unload --module kmm_hello")
        self.assertEqual(self.loaded("kmm_hello"), [])

    def test_unload_of_what_is_not_loaded(self):
        """A module that is not loaded is no error for the unload
        exit 0
        exit 0 with the outcome not-loaded
        """
        image = self.image("kmm-hello", "v1")
        self.operator.extract(image)
        self.done(self.operator.unload())
        self.assertEqual(self.worker(NODE, "kmod unload -", self.config(image))["outcome"], "not-loaded")


class Order(OperatorCase):
    def setUp(self):
        super().setUp()
        self.misc = self.image("kmm-misc", "v1")
        self.operator.extract(self.misc)

    def ordered(self, module, *order):
        return (
            self.config(self.misc, module=module)
            + "  modulesLoadingOrder:\n"
            + "".join(f"    - {name}\n" for name in order)
        )

    def log(self):
        """The order in which the kernel took the modules since the last call."""
        return self.fleet.shell(NODE, "cat /proc/modules | cut -d' ' -f1 | grep ^kmm_ || true").split()[::-1]

    def test_order(self):
        """modulesLoadingOrder is loaded from its end and unloaded from its beginning
        so it is
        so it is
        """
        order = ("kmm_busy", "kmm_odd", "kmm_dep")
        self.done(self.operator.load(module="kmm_busy", order=order))
        self.assertEqual(self.log(), ["kmm_dep", "kmm_odd", "kmm_busy"])
        self.done(self.operator.unload(module="kmm_busy", order=order))
        self.assertEqual(self.log(), [])
        self.worker(NODE, "kmod load -", self.ordered("kmm_busy", *order))
        self.assertEqual(self.log(), ["kmm_dep", "kmm_odd", "kmm_busy"])
        self.worker(NODE, "kmod unload -", self.ordered("kmm_busy", *order))
        self.assertEqual(self.log(), [])

    def test_one_that_is_missing(self):
        """modulesLoadingOrder: all of them are loaded
        one that is missing is passed over, with exit 0
        one that is missing is an error, and nothing is loaded
        """
        order = ("kmm_busy", "kmm_nowhere")
        self.done(self.operator.load(module="kmm_busy", order=order))
        self.assertEqual(self.loaded("kmm_busy"), ["kmm_busy"])
        self.between()
        error = self.worker(NODE, "kmod load -", self.ordered("kmm_busy", *order), expect=10)
        self.assertIn("kmm_nowhere", str(error))
        self.assertEqual(self.loaded("kmm_busy"), [])

    def test_with_a_softdep_of_the_module(self):
        """modulesLoadingOrder, beside what the module itself asks for by softdep
        only one of the two lines counts
        both
        """
        order = ("kmm_soft", "kmm_busy")
        self.done(self.operator.load(module="kmm_soft", order=order))
        first = self.loaded("kmm_dep", "kmm_busy", "kmm_soft")
        self.assertEqual((len(first), first[-1]), (2, "kmm_soft"), first)
        self.between()
        self.worker(NODE, "kmod load -", self.ordered("kmm_soft", *order))
        self.assertEqual(self.loaded("kmm_dep", "kmm_busy", "kmm_soft"), ["kmm_dep", "kmm_busy", "kmm_soft"])


if __name__ == "__main__":
    unittest.main()
