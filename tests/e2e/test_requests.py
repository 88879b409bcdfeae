# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade --via self on an API server, killed at its requests."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import case
from fleet import scratch
from injection import every

API = pathlib.Path(__file__).resolve().parent.parent / "support" / "fake_api.py"
STEP = 9  # each moment takes two seconds
MODULE = {
    "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
    "kind": "Module",
    "metadata": {"name": "kmm-hello", "namespace": "drivers"},
    "spec": {
        "selector": {},
        "devicePlugin": {"container": {"image": "registry.example/plugin:v1"}},
        "moduleLoader": {
            "container": {
                "version": "v1",
                "modprobe": {"moduleName": "kmm_hello"},
                "kernelMappings": [{"regexp": ".", "containerImage": "registry.example/kmm-hello:v1"}],
            }
        },
    },
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}, "status": {"nodeInfo": {
    "architecture": "amd64", "bootID": "boot-1", "kernelVersion": "6.1.0-56-amd64"}}}
SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "the-cluster"}}
WALK = """
start() { kmm-upgrade start module drivers/kmm-hello --to VERSION -q; }
sh -c 'echo $$ >pid; exec kmm-upgrade start module drivers/kmm-hello --to VERSION -q' && exit
while :; do
  if kmm-upgrade show | grep -q ^module; then kmm-upgrade resume -q; else start; fi && exit
  [ -e again ] && exit 1
  touch again
done
"""


class World:
    """One node, its API server's objects and the record below one directory."""

    def __init__(self, root):
        self.root = root

    @classmethod
    def create(cls, root):
        (root / "api").mkdir(parents=True)
        (root / "nodes" / "node-a").mkdir(parents=True)
        (root / "nodes" / "node-a" / "kernel").write_text("6.1.0-56-amd64\n")
        (root / "nodes" / "node-a" / "boot-id").write_text("boot-1\n")
        for name, document in (("module", MODULE), ("node", NODE), ("system", SYSTEM)):
            (root / "api" / f"{name}.json").write_text(json.dumps(document))
        return cls(root)

    def run(self, version, *options):
        environment = {
            "PATH": f"{case.TOOLS.fake}:{case.TOOLS.bin}:{os.environ['PATH']}",
            "HOME": str(self.root),
            "LC_ALL": "C.UTF-8",
            "KMM_FAKE_NODES": str(self.root / "nodes"),
            "KMM_STATE_DIR": str(self.root / "state"),
            "RELATED_IMAGE_WORKER": "registry.example/kmm-worker:v1",
        }
        return subprocess.run(
            [
                sys.executable,
                str(API),
                "--kubelet",
                "--log",
                "requests",
                "--dump",
                "dump.json",
                *options,
                "main=api",
                "--",
                "sh",
                "-c",
                WALK.replace("VERSION", version),
            ],
            cwd=self.root,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=600,
            check=False,
        )

    def outcome(self):
        """Every object but what is different each time, and what is live."""
        objects = json.loads((self.root / "dump.json").read_text())["main"]
        for item in objects:
            for key in ("resourceVersion", "uid", "managedFields", "ownerReferences"):
                item["metadata"].pop(key, None)
        return json.dumps(objects, indent=1, sort_keys=True) + (self.root / "nodes" / "node-a" / "live").read_text()

    def upgraded_module(self):
        """The state after the last run, with the Module at v2 and no record."""
        objects = json.loads((self.root / "dump.json").read_text())["main"]
        for item in objects:
            if item["kind"] == "Module":
                container = item["spec"]["moduleLoader"]["container"]
                container["version"] = "v2"
                container["kernelMappings"][0]["containerImage"] = "registry.example/kmm-hello:v2"
        shutil.rmtree(self.root / "api")
        shutil.rmtree(self.root / "state")
        (self.root / "api").mkdir()
        (self.root / "api" / "all.json").write_text(json.dumps({"kind": "List", "items": objects}))
        for name in ("requests", "pid", "dump.json"):
            (self.root / name).unlink()


class Requests(unittest.TestCase):
    def test_a_kill_at_any_request_changes_nothing_of_the_outcome(self):
        work = scratch("requests")
        self.addCleanup(shutil.rmtree, work, ignore_errors=True)
        template = World.create(work / "template")
        done = template.run("v1")
        self.assertEqual(done.returncode, 0, done.stdout)
        template.upgraded_module()

        def copy(name):
            return World(shutil.copytree(template.root, work / name))

        unkilled = copy("unkilled")
        done = unkilled.run("v2")
        self.assertEqual(done.returncode, 0, done.stdout)
        expected = unkilled.outcome()
        self.assertNotIn("Lease", expected)
        self.assertNotIn("kmm-upgrade-", expected)
        count = len((unkilled.root / "requests").read_text().splitlines())
        first = next(
            i for i, line in enumerate((unkilled.root / "requests").read_text().splitlines(), 1) if "/leases" in line
        )

        def body(moment):
            number, when = moment
            world = copy(f"{number}-{when}")
            done = world.run("v2", "--kill", f"{number}:{when}:pid")
            if done.returncode != 0:
                return done.stdout
            found = world.outcome()
            shutil.rmtree(world.root)
            return "" if found == expected else found

        moments = [(number, when) for number in range(first, count, STEP) for when in ("before", "after")]
        self.assertGreater(len(moments), 10)
        print(f"requests: {count}, killed at {len(moments)} moments", file=sys.stderr)
        faults = every(moments, body)
        self.assertEqual([], faults)
