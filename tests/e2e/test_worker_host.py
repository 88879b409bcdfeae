# SPDX-License-Identifier: Apache-2.0
"""What kmm-worker finds in the module tree of a host that is whole, or half there, with the modules of a real
kernel."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import case

MODULES = pathlib.Path("/lib/modules")
PROC = {
    "osrelease": None,
    "tainted": "0",
    "modules_disabled": "0",
    "random/boot_id": "11111111-2222-3333-4444-555555555555",
}


def chain():
    """(release, module, one that it needs and that needs another, that other): of a kernel with modules on this
    machine."""
    for index in sorted(MODULES.glob("*/modules.dep")):
        needs = dict(line.split(":", 1) for line in index.read_text().splitlines())
        needs = {module: words.split() for module, words in needs.items()}
        for module, others in sorted(needs.items()):
            for between in others:
                if len(needs[between]) == 1:
                    return index.parent.name, module, between, needs[between][0]
    raise unittest.SkipTest("no kernel with modules here")


class Linked(unittest.TestCase):
    """The host tree is a copy made of links (cp -as): each leads to the file of this machine."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="kmm-host-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.release, self.module, self.between, self.needed = chain()
        host = self.root / "host"
        for name, text in PROC.items():
            path = host / "proc/sys/kernel" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((text or self.release) + "\n")
        for name in ("modules", "cmdline", "kallsyms"):
            (host / "proc" / name).write_text("")
        (host / "sys/module").mkdir(parents=True)
        self.tree = host / "lib/modules" / self.release
        self.tree.parent.mkdir(parents=True)
        subprocess.run(["cp", "-as", MODULES / self.release, self.tree], check=True)
        place = self.root / "image/opt/lib/modules" / self.release
        place.mkdir(parents=True)
        shutil.copy(MODULES / self.release / self.module, place)

    def check(self):
        name = pathlib.PurePath(self.module).name.split(".")[0]
        return subprocess.run(
            [
                f"{case.TOOLS.bin}/kmm-worker",
                "check",
                "--host-root",
                self.root / "host",
                "--image",
                f"dir:{self.root / 'image'}",
                "--module",
                name,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def test_whole(self):
        done = self.check()
        self.assertNotIn("dependency-missing", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_needed_file_is_gone(self):
        (self.tree / self.needed).unlink()
        done = self.check()
        self.assertEqual(done.returncode, 10, done.stderr)
        self.assertIn("dependency-missing", done.stderr)
        name = pathlib.PurePath(self.needed).name.split(".")[0].replace("-", "_")
        self.assertRegex(done.stderr, rf"error: module {name} ")
