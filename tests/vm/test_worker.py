# SPDX-License-Identifier: Apache-2.0
"""kmm-worker on a real kernel: what it loads, in which order, what it says when the kernel refuses."""
import unittest

from lab.testing import SingleCase

NODE = "node-a"


class Facts(SingleCase):
    def test_facts_are_the_kernels_own(self):
        document = self.worker(NODE, "facts")
        self.assertEqual(document["kind"], "Node")
        self.assertEqual(document["metadata"]["name"], NODE)
        info = document["status"]["nodeInfo"]
        self.assertEqual(info["kernelVersion"], self.lab.kernel)
        self.assertEqual(info["bootID"], self.fleet.boot_id(NODE))
        self.assertEqual(info["architecture"], "amd64")
        self.assertEqual(info["machineID"], self.fleet.shell(NODE, "cat /etc/machine-id").strip())
        self.assertTrue(document["facts"]["capSysModule"])
        self.assertFalse(document["facts"]["modulesDisabled"])

    def test_status_of_an_absent_module(self):
        document = self.worker(NODE, "status kmm_hello")
        self.assertEqual(document["kind"], "ModuleStatus")
        self.assertEqual([(m["name"], m["state"]) for m in document["modules"]], [("kmm_hello", "absent")])


class Loading(SingleCase):
    def test_load_status_unload(self):
        config = self.config(self.image("kmm-hello", "v1"), parameters=["greeting=bonjour"])
        result = self.worker(NODE, "load - --verify-after 2s", config)
        self.assertEqual(result["outcome"], "loaded")
        self.assertEqual(result["image"]["digest"], self.digests["kmm-hello:v1"])
        main = [m for m in result["modules"] if m.get("main")]
        self.assertEqual([m["name"] for m in main], ["kmm_hello"])
        self.assertEqual(main[0]["srcversion"], self.file_identity("v1"))
        self.assertEqual(self.live(NODE), self.file_identity("v1"))
        self.assertEqual(self.live_parameter(NODE, "greeting"), "bonjour")
        status = self.worker(NODE, "status kmm-hello")["modules"][0]
        self.assertEqual((status["name"], status["state"], status["srcversion"], status["version"]),
                         ("kmm_hello", "live", self.file_identity("v1"), "1"))
        self.assertEqual(status["parameters"]["greeting"], "bonjour")
        result = self.worker(NODE, "unload -", self.config(self.image("kmm-hello", "v1")))
        self.assertEqual(result["outcome"], "unloaded")
        self.assertIsNone(self.live(NODE))
        result = self.worker(NODE, "unload -", self.config(self.image("kmm-hello", "v1")))
        self.assertEqual(result["outcome"], "not-loaded")

    def test_a_second_load_is_already_loaded(self):
        self.load(NODE, self.image("kmm-hello", "v1"))
        result = self.load(NODE, self.image("kmm-hello", "v1"))
        self.assertEqual(result["outcome"], "already-loaded")

    def test_another_build_of_the_same_name_is_an_error(self):
        self.load(NODE, self.image("kmm-hello", "v1"))
        error = self.load(NODE, self.image("kmm-hello", "v2"), expect=13)
        self.assertEqual(error["code"], "module-differs")
        details = error["details"]
        self.assertTrue(details["loaded"].startswith("sha256 ") and details["wanted"].startswith("sha256 "), details)
        self.assertNotEqual(details["loaded"], details["wanted"])
        self.assertEqual(self.live(NODE), self.file_identity("v1"))

    def test_dependencies_come_first_and_go_last(self):
        image = self.image("kmm-misc", "v1")
        result = self.load(NODE, image, module="kmm_user")
        self.assertEqual([m["name"] for m in result["modules"]], ["kmm_dep", "kmm_user"])
        log = self.fleet.shell(NODE, "dmesg | grep -E 'kmm_(dep|user):' | tail -2")
        self.assertRegex(log, r"(?s)kmm_dep: ready.*kmm_user: the answer is 42")
        self.worker(NODE, "unload -", self.config(image, module="kmm_user"))
        self.assertIsNone(self.live(NODE, "kmm_user"))
        self.assertIsNone(self.live(NODE, "kmm_dep"))

    def test_the_in_tree_module_is_removed_first(self):
        self.fleet.shell(NODE, "modprobe dummy numdummies=0")
        result = self.load(NODE, self.image("kmm-hello", "v1"), remove=["dummy"])
        self.assertEqual(result["outcome"], "loaded")
        self.assertIn(("dummy", "removed-in-tree"), [(m["name"], m["action"]) for m in result["modules"]])
        self.assertEqual(self.fleet.ssh(NODE, "test -d /sys/module/dummy").returncode, 1)
        self.assertEqual(self.live(NODE), self.file_identity("v1"))

    def test_an_image_of_several_platforms(self):
        result = self.load(NODE, self.image("kmm-multi", "v2"))
        self.assertEqual(self.live(NODE), self.file_identity("v2"))
        self.assertEqual(result["outcome"], "loaded")


class Busy(SingleCase):
    def test_a_module_that_another_needs_is_named_with_its_holder(self):
        image = self.image("kmm-misc", "v1")
        self.load(NODE, image, module="kmm_user")
        error = self.worker(NODE, "unload - --wait 500ms", self.config(image, module="kmm_dep"), expect=14)
        self.assertEqual(error["code"], "module-in-use")
        self.assertIn("kmm_user", str(error))
        self.assertIsNotNone(self.live(NODE, "kmm_dep"))

    def test_an_open_device_keeps_its_module(self):
        image = self.image("kmm-misc", "v1")
        self.load(NODE, image, module="kmm_busy")
        holder = self.open_device(NODE, "/dev/kmm_busy")
        try:
            error = self.worker(NODE, "unload - --wait 500ms", self.config(image, module="kmm_busy"), expect=14)
            self.assertEqual(error["code"], "module-in-use")
            self.assertIn("refcount 1", str(error).replace("'", "").replace(": ", " "))
            self.assertIsNotNone(self.live(NODE, "kmm_busy"))
        finally:
            self.close_device(NODE, holder)
        self.worker(NODE, "unload -", self.config(image, module="kmm_busy"))
        self.assertIsNone(self.live(NODE, "kmm_busy"))


class Refused(SingleCase):
    def test_a_failing_init_is_quoted_with_the_kernels_line(self):
        error = self.load(NODE, self.image("kmm-hello", "v2-failinit"), expect=13)
        self.assertEqual(error["code"], "module-refused")
        self.assertIn("ENODEV", str(error))
        self.assertIn("kmm_hello: no device found", str(error))
        self.assertIsNone(self.live(NODE))

    def check(self, tag):
        return self.worker(NODE, "check -", self.config(self.image("kmm-hello", tag)), expect=10)

    def test_check_finds_another_kernels_vermagic(self):
        error = self.check("v2-badmagic")
        self.assertEqual(error["code"], "check-failed")
        self.assertIn("9" + self.lab.kernel[1:], str(error))
        self.assertIsNone(self.live(NODE))

    def test_check_finds_an_unknown_symbol(self):
        error = self.check("v2-unknown")
        self.assertEqual(error["code"], "check-failed")
        self.assertIn("kmm_symbol_nobody_exports", str(error))

    def test_check_passes_and_foretells_the_identity(self):
        result = self.worker(NODE, "check -", self.config(self.image("kmm-hello", "v2")))
        self.assertEqual(result["outcome"], "passed")
        main = next(m for m in result["modules"] if m.get("main"))
        self.assertEqual(main["srcversion"], self.file_identity("v2"))
        self.assertIsNone(self.live(NODE))

    def test_check_leaves_a_loaded_module_alone(self):
        self.load(NODE, self.image("kmm-hello", "v1"))
        self.worker(NODE, "check -", self.config(self.image("kmm-hello", "v2")))
        self.assertEqual(self.live(NODE), self.file_identity("v1"))

    def test_an_unknown_parameter_is_found_before_loading(self):
        config = self.config(self.image("kmm-hello", "v2"), parameters=["greting=hi"])
        error = self.worker(NODE, "check -", config, expect=10)
        self.assertIn("greting", str(error))

    def test_an_image_without_this_kernel(self):
        error = self.load(NODE, self.image("kmm-hello", "other-kernel"), expect=66)
        self.assertEqual(error["code"], "kernel-not-in-image")

    def test_an_image_that_is_not_there(self):
        error = self.load(NODE, self.image("kmm-hello", "v99"), expect=66)
        self.assertEqual(error["code"], "image-not-found")


if __name__ == "__main__":
    unittest.main()
