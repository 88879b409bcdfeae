# SPDX-License-Identifier: Apache-2.0
"""A small fleet: a directory cluster, nodes played by tests/support/fake_node.cpp, and the real kmm-upgrade."""
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import played_calls  # noqa: E402

KERNEL = "6.1.0-56-amd64"
MODULE = "drivers/kmm-hello"
IMAGE = "registry.example/kmm-hello:{}"

NODE = """# written by hand
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels:
    role: worker   # what the Module selects
spec:
  unschedulable: {unschedulable}
status:
  nodeInfo:
    kernelVersion: {kernel}
    bootID: boot-{name}
    architecture: amd64
"""
MODULE_TEXT = """apiVersion: kmm.sigs.x-k8s.io/v1beta1
kind: Module
metadata:
  name: kmm-hello
  namespace: drivers
spec:
  moduleLoader:
    container:
      version: {version}
      modprobe:
        moduleName: kmm_hello
      kernelMappings:
        - regexp: '^.+$'
          containerImage: {image}
  selector:
    role: worker
"""


@dataclasses.dataclass(frozen=True)
class Tools:
    bin: pathlib.Path   # kmm-upgrade
    fake: pathlib.Path  # directory of the program that is called ssh


def scratch(prefix, room=0):
    """A temporary directory, in memory if that has room for so many bytes: these tests kill processes, not machines."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    if memory and room and shutil.disk_usage(memory).free < room:
        memory = None
    return pathlib.Path(tempfile.mkdtemp(prefix=f"kmm-e2e-{prefix}-", dir=memory))


class Fleet:
    """Everything of one run below one directory, so that a copy of the directory is a copy of the world."""

    def __init__(self, tools, root):
        self.tools, self.root = tools, pathlib.Path(root)
        self.cluster, self.state, self.nodes = self.root / "cluster", self.root / "state", self.root / "nodes"

    @classmethod
    def bare(cls, tools, root, names, unschedulable=()):
        """Nodes with nothing loaded, and no Module."""
        fleet = cls(tools, root)
        (fleet.cluster / "nodes").mkdir(parents=True)
        (fleet.cluster / "modules").mkdir()
        for name in names:
            (fleet.cluster / "nodes" / f"{name}.yaml").write_text(
                NODE.format(name=name, kernel=KERNEL, unschedulable=str(name in unschedulable).lower()))
            (fleet.nodes / name).mkdir(parents=True)
            (fleet.nodes / name / "kernel").write_text(KERNEL + "\n")
            (fleet.nodes / name / "boot-id").write_text(f"boot-{name}\n")
        return fleet

    @classmethod
    def create(cls, tools, root, names, unschedulable=()):
        """Nodes with v1 installed the ordinary way; the Module then edited to v2."""
        fleet = cls.bare(tools, root, names, unschedulable)
        fleet.edit("v1")
        for arguments in (("start", "module", MODULE, "--to", "v1"), ("delete",)):
            done = fleet.run(*arguments)
            if done.returncode != 0:
                raise AssertionError(f"{arguments}: exit {done.returncode}\n{done.stdout}")
        shutil.rmtree(fleet.state)
        (fleet.nodes / "calls").unlink()
        fleet.edit("v2")
        return fleet

    def copy(self, root):
        shutil.copytree(self.root, root, symlinks=True)
        return Fleet(self.tools, root)

    def edit(self, version):
        (self.cluster / "modules" / "kmm-hello.yaml").write_text(
            MODULE_TEXT.format(version=version, image=IMAGE.format(version)))

    def write_module(self, name, tag, needs=""):
        """A Module without versions whose kernel module has its name; `needs` is the NAMESPACE/NAME of another one."""
        text = MODULE_TEXT.format(version="none", image=f"registry.example/{name}:{tag}")
        text = (
            text.replace("      version: none\n", "")
            .replace("name: kmm-hello", f"name: {name}")
            .replace("kmm_hello", name)
        )
        if needs:
            text = text.replace(
                "  namespace: drivers\n", f"  namespace: drivers\n  annotations: {{kmmtools.dev/needs: {needs}}}\n"
            )
        (self.cluster / "modules" / f"{name}.yaml").write_text(text)

    def fault(self, node, text):
        """One more line for the node's faults: VERB KIND [ARGUMENT]."""
        with open(self.nodes / node / "faults", "a", encoding="utf-8") as file:
            file.write(text + "\n")

    def command(self, *arguments, prefix=()):
        return [*map(str, prefix), str(self.tools.bin / "kmm-upgrade"), *arguments, "--cluster", str(self.cluster)]

    def environment(self, **more):
        return {**os.environ, "PATH": f"{self.tools.fake}:{os.environ['PATH']}", "KMM_FAKE_NODES": str(self.nodes),
                "KMM_STATE_DIR": str(self.state),  # an option would stand in each command that is advised
                "XDG_CONFIG_HOME": str(self.root / "config"), "LC_ALL": "C.UTF-8", **more}

    def run(self, *arguments, prefix=(), timeout=600, **more):
        """kmm-upgrade to its end; stdout and stderr together in .stdout."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "check": False,
                   "encoding": "utf-8", "errors": "replace", "timeout": timeout, "env": self.environment()}
        return subprocess.run(self.command(*arguments, prefix=prefix), **{**options, **more})

    def begin(self, *arguments, prefix=(), **more):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
                   "env": self.environment()}
        return subprocess.Popen(self.command(*arguments, prefix=prefix), **{**options, **more})

    def start(self, *options, **more):
        return self.run("start", "module", MODULE, "--to", "v2", *options, **more)

    def go_on(self):
        """What a person does after a crash: resume, or start again when nothing was recorded."""
        if (self.state / "journal.ndjson").exists():
            return self.run("resume")
        return self.start()

    def live(self):
        """{node: identity of the loaded module or None}"""
        found = {}
        for node in self.names():
            path = self.nodes / node / "live"
            found[node] = path.read_text().split()[1] if path.exists() else None
        return found

    def loaded(self, node):
        """The names of the node's modules."""
        path = self.nodes / node / "live"
        return sorted(line.split()[0] for line in path.read_text().splitlines()) if path.exists() else []

    def names(self):
        return sorted(path.name for path in self.nodes.iterdir() if path.is_dir())

    def outcome(self):
        """Everything that an upgrade leaves: the text of all objects, what is loaded, and where the run ended."""
        objects = {
            str(path.relative_to(self.cluster)): path.read_text() for path in sorted(self.cluster.rglob("*.yaml"))
        }
        events = self.events()
        final = {event["node"]: event["to"] for event in events if event.get("node") and event.get("to")}
        run = [event["to"] for event in events if not event.get("node") and event.get("to")]
        return {"objects": objects, "live": self.live(), "nodes": final, "run": run[-1:]}

    def events(self):
        path = self.state / "journal.ndjson"
        if not path.exists():
            return []
        payloads = [json.loads(line)["payload"] for line in path.read_text().splitlines()]
        return [payload for payload in payloads if "event" in payload]

    def calls(self):
        return played_calls.read(self.nodes / "calls")

    def most_without(self):
        return played_calls.most_without(self.calls())

    def cordons(self):
        """spec.unschedulable of every node, as written."""
        found = {}
        for node in self.names():
            text = (self.cluster / "nodes" / f"{node}.yaml").read_text()
            found[node] = [line.strip() for line in text.splitlines() if "unschedulable" in line]
        return found
