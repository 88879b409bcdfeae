# SPDX-License-Identifier: Apache-2.0
"""kmm-worker on a real kernel: what it puts back, whom it names, and what it notices."""
import base64
import gzip
import unittest

from lab.testing import SingleCase

NODE = "node-a"


class Safety(SingleCase):
    def test_a_compressed_module_of_the_hosts_tree_and_rawargs(self):
        plain = self.modules["v2"]["kmm_hello"]
        tree = f"/lib/modules/{self.lab.kernel}/extra"
        packed = base64.encodebytes(gzip.compress(plain.read_bytes())).decode()
        self.fleet.shell(NODE, f"mkdir -p {tree} && base64 -d >{tree}/kmm_hello.ko.gz", packed)
        self.addCleanup(self.fleet.shell, NODE, f"rm -r {tree}")
        config = "modprobe:\n  rawArgs:\n    load: [kmm_hello, greeting=bonjour]\n    unload: [-r, kmm_hello]\n"
        result = self.worker(NODE, "load - --verify-after 100ms", config)
        self.assertEqual(result["outcome"], "loaded")
        self.assertEqual(self.live(NODE), self.file_identity("v2"))
        self.assertEqual(self.live_parameter(NODE, "greeting"), "bonjour")
        self.assertEqual(self.worker(NODE, "unload -", config)["outcome"], "unloaded")

    def test_who_has_the_device_open(self):
        image = self.image("kmm-misc", "v1")
        self.load(NODE, image, module="kmm_busy")
        pid = self.open_device(NODE, "/dev/kmm_busy")
        try:
            error = self.worker(NODE, "unload --module kmm_busy --wait 1s", expect=14)
            self.assertEqual(error["details"]["users"], f"process {pid} (sleep) has /dev/kmm_busy open")
            kept = self.worker(NODE, "unload --module kmm_busy --policy if-idle")
            self.assertEqual(kept["outcome"], "kept")
            self.assertIsNotNone(self.live(NODE, "kmm_busy"))
        finally:
            self.close_device(NODE, pid)
        self.assertEqual(self.worker(NODE, "unload --module kmm_busy --policy if-idle")["outcome"], "unloaded")

    def test_the_in_tree_module_comes_back(self):
        self.fleet.shell(NODE, "modprobe dummy numdummies=0")
        self.load(NODE, self.image("kmm-hello", "v1"), remove=["dummy"])
        self.assertEqual(self.fleet.ssh(NODE, "test -d /sys/module/dummy").returncode, 1)
        result = self.worker(NODE, "unload --module kmm_hello --restore-in-tree")
        self.assertIn(("dummy", "restored"), [(m["name"], m["action"]) for m in result["modules"]])
        self.assertEqual(self.fleet.ssh(NODE, "test -d /sys/module/dummy").returncode, 0)
        self.fleet.shell(NODE, "modprobe -r dummy")

    def test_a_virtual_interface_that_is_up(self):
        self.fleet.shell(NODE, "modprobe dummy numdummies=1 && ip link set dummy0 up")
        kept = self.worker(NODE, "unload --module dummy --policy if-idle")
        self.assertEqual(kept["outcome"], "kept")
        self.assertIn("drives a network interface that is up: dummy0", kept["warnings"][0])
        self.fleet.shell(NODE, "ip link set dummy0 down")
        self.assertEqual(self.worker(NODE, "unload --module dummy --policy if-idle")["outcome"], "unloaded")

    def test_status_expect(self):
        image = self.image("kmm-hello", "v1")
        self.load(NODE, image)
        done = self.fleet.ssh(NODE, f"kmm-worker status kmm_hello --insecure --expect {image} -o json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        other = self.image("kmm-hello", "v2")
        done = self.fleet.ssh(NODE, f"kmm-worker status kmm_hello --insecure --expect {other} -o json")
        self.assertEqual(done.returncode, 10, done.stdout + done.stderr)

    def test_modules_disabled_is_named(self):
        causes = self.worker(NODE, "explain EPERM")["causes"]
        self.assertEqual([c["applies"] for c in causes[:4]], ["no", "no", "no", "no"])

    def test_a_kvc_instance(self):
        image = self.image("kmm-misc", "v1")
        self.fleet.shell(
            NODE,
            f"mkdir -p /etc/kvc && printf 'KMOD_NAMES=\"kmm_dep kmm_user\"\\nKMOD_CONTAINER_IMAGE={image}\\n' "
            f">/etc/kvc/simple.conf",
        )
        self.addCleanup(self.fleet.shell, NODE, "rm -r /etc/kvc")
        result = self.worker(NODE, "run simple load --insecure")
        self.assertEqual(result["outcome"], "loaded")
        self.assertIsNotNone(self.live(NODE, "kmm_user"))
        self.assertEqual(self.worker(NODE, "run simple unload")["outcome"], "unloaded")
        self.assertIsNone(self.live(NODE, "kmm_dep"))


if __name__ == "__main__":
    unittest.main()
