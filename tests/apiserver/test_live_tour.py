# SPDX-License-Identifier: Apache-2.0
"""docs/live-tour.md says what is printed there. KMM_ACCEPT=1 writes what was printed into the page."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from testbed import binaries, fleet, manifests, nodes
from testbed.testing import ROOT, ClusterCase

BLOCK = re.compile(r"^```console live\n(.*?)^```$", re.S | re.M)
TIME = re.compile(r"\b\d\d:\d\d:\d\d\b")
NAMES, KERNEL = ("node-a", "node-b"), "6.1.0-56-amd64"


class Tour(ClusterCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="kmm-tour-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        manifests.install_definitions(self.api, ROOT)
        self.namespace("drivers")
        self.addCleanup(self.free, f"{fleet.KMM}/namespaces/drivers/modules/kmm-hello")
        for name in NAMES:
            self.addCleanup(self.api.delete, f"/api/v1/nodes/{name}")
            self.addCleanup(self.free, f"{fleet.KMM}/nodemodulesconfigs/{name}")
        fleet.play(self, self.root / "nodes", [nodes.node(name, KERNEL, {"role": "worker"}) for name in NAMES])
        shutil.copytree(ROOT / "manifests/examples/fleet", self.root / "fleet")
        kubectl = self.root / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {binaries.servers()} kubectl "$@"\n')
        kubectl.chmod(0o755)

    def printed(self, block):
        """The commands of the block, each with what it prints now."""
        environment = {"PATH": f"{self.root}:{self.bin}:/usr/bin:/bin", "HOME": str(self.root), "LC_ALL": "C.UTF-8",
                       "KUBECONFIG": str(self.cluster.kubeconfig), "XDG_STATE_HOME": str(self.root / "state"),
                       "KMM_STATE_DIR": str(self.root / "state")}
        text = ""
        for line in block.splitlines():
            if line.startswith("$ "):
                done = subprocess.run(
                    ["sh", "-c", line[2:]],
                    cwd=self.root,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    timeout=600,
                    check=False,
                )
                text += f"{line}\n{done.stdout}"
        return text

    def test_the_page_says_what_is_printed(self):
        page = ROOT / "docs/live-tour.md"
        old = page.read_text()
        blocks = BLOCK.findall(old)
        self.assertTrue(blocks)
        now = [self.printed(block) for block in blocks]
        if os.environ.get("KMM_ACCEPT") == "1":
            left = iter(now)
            page.write_text(BLOCK.sub(lambda _: f"```console live\n{next(left)}```", old))
            return
        self.assertEqual(
            [TIME.sub("HH:MM:SS", block) for block in blocks], [TIME.sub("HH:MM:SS", block) for block in now]
        )
