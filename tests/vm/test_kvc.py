# SPDX-License-Identifier: Apache-2.0
"""kmm-worker run: an instance of kmods-via-containers from its configuration to its tool, on a real kernel."""
import pathlib
import tempfile

from lab.testing import SingleCase

NODE = "node-a"
MODULES = ("simple_kmod", "simple_procfs_kmod")
# What a container runtime does, as far as it matters here: an image is a directory with the modules, made of the
# context.
RUNTIME = r"""#!/bin/sh
echo "$@" >>/run/kvc/calls
store() { echo "/run/kvc/images/$(echo "$1" | tr /: __)"; }
case "$1 $2" in
"image inspect") test -d "$(store "$3")" ;;
"build -t")
	for context in "$@"; do :; done
	mkdir -p /run/kvc/images && cp -r "$context" "$(store "$3")" ;;
"run --rm") shift 4; image=$(store "$1"); shift; test "$1" = modprobe && insmod "$image/$2.ko" ;;
"run -i") shift 5; image=$(store "$1"); shift; tool=$1; shift; exec sh "$image/$tool" "$@" ;;
*) echo "no such command: $*" >&2; exit 1 ;;
esac
"""
TOOL = r"""for word in "$@"; do echo "$word: $(cat /proc/simple-procfs-kmod)"; done
"""
CONFIG = """# as kmods-via-containers reads it
KMOD_CONTAINER_BUILD_CONTEXT=/run/kvc/context
KMOD_CONTAINER_BUILD_FILE=Dockerfile.rhel
KMOD_SOFTWARE_VERSION=dd1a7d4
KMOD_NAMES="simple-kmod simple-procfs-kmod"
"""


class Run(SingleCase):
    def setUp(self):
        super().setUp()
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "context"
        place.mkdir()
        for name in MODULES:
            (place / f"{name}.ko").write_bytes(self.modules["simple"][name].read_bytes())
        (place / "spkut").write_text(TOOL)
        self.addCleanup(self.fleet.shell, NODE, "rm -rf /run/kvc /etc/kvc")
        self.fleet.put(NODE, place, "/run/kvc")
        self.fleet.shell(NODE, "mkdir -p /etc/kvc; cat >/run/kvc/runtime; chmod +x /run/kvc/runtime", RUNTIME)
        self.fleet.shell(
            NODE,
            "cat >/etc/kvc/simple-kmod.conf; "
            "echo KVC_CONTAINER_RUNTIME=/run/kvc/runtime >/etc/kvc/kmods-via-containers.conf",
            CONFIG,
        )

    def live_ones(self):
        return [name for name in MODULES if self.live(NODE, name)]

    def test_build_load_wrapper_unload(self):
        image = f"simple-kmod-dd1a7d4:{self.lab.kernel}"
        self.assertEqual(self.worker(NODE, "run simple-kmod build")["outcome"], "built")
        self.assertEqual(self.worker(NODE, "run simple-kmod build")["outcome"], "present")
        result = self.worker(NODE, "run simple-kmod load")
        self.assertEqual((result["outcome"], [m["name"] for m in result["modules"]]), ("loaded", list(MODULES)))
        self.assertEqual(result["modules"][0]["srcversion"], self.file_identity("simple", "simple_kmod"))
        self.assertEqual(self.live_ones(), list(MODULES))
        self.assertEqual(self.worker(NODE, "run simple-kmod load")["outcome"], "already-loaded")
        said = self.fleet.shell(NODE, "kmm-worker run simple-kmod wrapper -- spkut once 'and once more' '$HOME'")
        self.assertEqual(said, "once: read 1\nand once more: read 2\n$HOME: read 3\n")
        result = self.worker(NODE, "run simple-kmod unload")
        self.assertEqual(
            (result["outcome"], [m["name"] for m in result["modules"]]), ("unloaded", list(reversed(MODULES)))
        )
        self.assertEqual(self.live_ones(), [])
        calls = self.fleet.shell(NODE, "cat /run/kvc/calls").splitlines()
        self.assertIn(f"build -t {image} --label name=simple-kmod --build-arg KVER={self.lab.kernel} "
                      "--build-arg KMODVER=dd1a7d4 -f Dockerfile.rhel /run/kvc/context", calls)
        self.assertIn(f"run --rm --pull=never --privileged {image} modprobe simple_kmod", calls)

    def test_a_load_that_the_runtime_cannot_do(self):
        error = self.worker(NODE, "run simple-kmod load", expect=1)
        self.assertEqual(error["code"], "command-failed")
        self.assertIn("simple_kmod", error["message"])
        self.assertEqual(self.live_ones(), [])
