# SPDX-License-Identifier: Apache-2.0
"""What the tests of whole upgrades share: a fleet on v1, the command, its journal, the outcome to compare."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from . import cluster
from .common import NODES, LabError
from .testing import NodeCase

MODULE = "drivers/kmm-hello"
FINAL = ("done", "skipped", "rolled-back")


class CommandCase(NodeCase):
    """kmm-upgrade with a directory cluster and a state directory of each test's own."""

    def setUp(self):
        super().setUp()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="kmm-upgrade-test-"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.state = self.work / "state"
        self.directory = self.work / "fleet"

    def command(self, *arguments, directory=None, state=None):
        return [str(self.bin / "kmm-upgrade"), *arguments, "--cluster", str(directory or self.directory),
                "--state-dir", str(state or self.state), "--ssh-config", str(self.fleet.ssh_config)]

    def environment(self):
        return {**os.environ, "XDG_CONFIG_HOME": str(self.work / "config"), "LC_ALL": "C.UTF-8"}

    def upgrade(self, *arguments, expect=0, timeout=1200, **where):
        """Runs kmm-upgrade to its end; returns stdout and stderr together. `expect` None: any exit code will do."""
        done = subprocess.run(self.command(*arguments, **where), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout, env=self.environment(), check=False)
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"kmm-upgrade {' '.join(arguments)}: exit {done.returncode}\n"
                                                      f"{done.stdout}")
        return done.stdout

    def begin(self, *arguments, **where):
        """Starts kmm-upgrade and returns the process; its output goes to files."""
        log = open(self.work / "output", "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(self.command(*arguments, **where), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env=self.environment())
        self.addCleanup(lambda: (process.kill(), process.wait()))
        return process

    def output(self):
        return (self.work / "output").read_text()

    def events(self, state=None):
        """Events of the journal; a line that is being written is left out."""
        events = []
        try:
            lines = (state or self.state).joinpath("journal.ndjson").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return events
        for line in lines:
            try:
                payload = json.loads(line.strip("\0"))["payload"]
            except ValueError:
                continue
            if "event" in payload:
                events.append(payload)
        return events

    def wait_event(self, process, node, step, timeout=600):
        """Waits until the journal says that this step was begun on this node."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            for event in self.events():
                if (event["event"], event.get("node"), event.get("step")) == ("intent", node, step):
                    return
            if process.poll() is not None:
                self.fail(f"kmm-upgrade ended before {step} on {node}: {self.output()}")
            time.sleep(0.02)
        raise LabError(f"no {step} on {node} within {timeout} s: {self.output()}")

    def most_in_flight(self, state=None):
        """The largest number of nodes that were between pending and a final state at once."""
        active, most = set(), 0
        for event in self.events(state):
            node = event.get("node")
            if not node or not event.get("to"):
                continue
            if event["to"] in FINAL or event["to"] == "pending":
                active.discard(node)
            else:
                active.add(node)
            most = max(most, len(active))
        return most


class UpgradeCase(CommandCase):
    """Each test starts with a directory cluster of three nodes on v1 of kmm-hello, loaded on all of them."""
    _installed = None  # directory cluster after a first installation, and the boot ids it was made with

    def setUp(self):
        super().setUp()
        self.install_v1()

    def install_v1(self):
        if UpgradeCase._installed is None:
            boots = {name: self.fleet.boot_id(name) for name in NODES}
            cluster.write_nodes(self.directory, self.lab, boots)
            self.edit("v1")
            self.upgrade("start", "module", MODULE, "--to", "v1", "--max-unavailable", "3")
            self.upgrade("delete")
            keep = pathlib.Path(tempfile.mkdtemp(prefix="kmm-upgrade-v1-"))
            shutil.copytree(self.directory, keep / "fleet")
            UpgradeCase._installed = (keep / "fleet", boots)
            shutil.rmtree(self.state)
            return
        self.reset_to_v1(self.directory)

    def reset_to_v1(self, directory):
        """The state after install_v1, in another directory, with v1 loaded again."""
        boots = self.fleet.first_version()
        kept, before = UpgradeCase._installed
        shutil.copytree(kept, directory)
        for path in directory.rglob("*.yaml"):
            text = path.read_text()
            for name, boot in before.items():
                text = text.replace(boot, boots[name])
            path.write_text(text)

    @classmethod
    def tearDownClass(cls):
        if UpgradeCase._installed:
            shutil.rmtree(UpgradeCase._installed[0].parent, ignore_errors=True)
            UpgradeCase._installed = None

    def edit(self, version, tag=None, directory=None):
        """What an administrator does before an upgrade: the Module at another version and image."""
        cluster.write_module(directory or self.directory, self.image("kmm-hello", tag or version), version,
                             parameters=["greeting=hello"])

    def live_on(self, nodes, module="kmm_hello"):
        """{node: the identity of its live module, or None}"""
        found = self.fleet.each(f"cat /sys/module/{module}/srcversion 2>/dev/null || true", nodes)
        return {node: text.strip() or None for node, text in found.items()}

    def assert_live(self, expected):
        """expected: {node: variant or None}"""
        found = self.live_on(expected)
        wanted = {node: variant and self.file_identity(variant) for node, variant in expected.items()}
        self.assertEqual(found, wanted)

    def all_on(self, variant):
        self.assert_live({node: variant for node in NODES})

    def outcome(self, directory=None):
        """Everything an upgrade leaves: the text of all objects, and what is loaded where."""
        directory = directory or self.directory
        objects = {str(p.relative_to(directory)): p.read_text() for p in sorted(directory.rglob("*.yaml"))}
        return objects, self.live_on(NODES)
