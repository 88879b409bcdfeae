# SPDX-License-Identifier: Apache-2.0
"""Virtual machines as nodes: start, ssh, reboot, pull the network plug, stop."""
import base64
import concurrent.futures
import io
import json
import socket
import subprocess
import tarfile
import tempfile

from . import guest
from .common import NODES, LabError, alive, free_port, need, spawn, stop_process, wait_for

# Without address space randomisation the emulator finds the code of a new process translated already.
COMMAND_LINE = ("console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr norandmaps random.trust_cpu=on "
                "lab.node={name}")
# The plainest processor: what others offer (AVX2, deeper page tables) costs more to emulate than it saves.
PROCESSOR = "qemu64"
CLEAN = (
    "for m in simple_procfs_kmod simple_kmod kmm_user kmm_soft kmm_dep kmm_busy kmm_odd kmm_hello dummy bridge stp "
    "llc; do "
    "[ ! -d /sys/module/$m ] || rmmod $m; done"
)
# The groups beside the three nodes: a single one for tests that need no more, and what tests start themselves. They are
# stopped with the lab.
GROUPS = ("single", "guarded", "kernels")
SSH_CONFIG = """Host {name}
  HostName 127.0.0.1
  Port {port}
"""
SSH_COMMON = """Host {names}
  User root
  IdentityFile {key}
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  ConnectTimeout 10
  ConnectionAttempts 2
  ServerAliveInterval 5
  ServerAliveCountMax 6
  ControlMaster auto
  ControlPersist 300
  ControlPath {sockets}/%n
"""


class Fleet:
    """Nodes of one lab that are started together: the three of an upgrade, or another group."""

    def __init__(self, lab, group="nodes"):
        self.lab, self.group = lab, group

    @property
    def ssh_config(self):
        return self.lab.dir / ("ssh_config" if self.group == "nodes" else f"ssh_config-{self.group}")

    @property
    def sockets(self):
        return self.lab.state()[f"{self.group}-sockets"]

    def node(self, name):
        try:
            return self.lab.state()[self.group][name]
        except KeyError:
            raise LabError(f"node {name} is not up") from None

    def names(self):
        return sorted(self.lab.state().get(self.group, {}))

    def up(self, names=NODES, worker=None, ca_file=None, memory=512):
        """Makes the guest and starts the named nodes afresh (running ones are stopped first)."""
        self.down()
        self.start(names, guest.build_initrd(self.lab, worker, ca_file), memory=memory)

    def start(self, names, image=None, words="", memory=512, devices=()):
        """Starts nodes with the guest that is there, and more words on the kernel's command line and of QEMU's if
        wished; writes the ssh configuration."""
        image = image or self.lab.dir / "initrd.img"
        kernel = guest.kernel(self.lab)
        self._start({name: ["-kernel", kernel, "-initrd", image, "-append",
                            f"{COMMAND_LINE.format(name=name)} {words}".strip(), *devices] for name in names}, memory)

    def boot(self, disks, memory):
        """Starts nodes of which each boots from a disk of its own: {name: path}."""
        self._start({name: ["-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"]
                     for name, disk in disks.items()}, memory)

    def _start(self, machines, memory):
        """{name: how QEMU boots it}"""
        self.down()
        sockets = tempfile.mkdtemp(prefix="kmm-lab-")
        nodes = {}
        for name, boots_by in machines.items():
            port = free_port()
            console = self.lab.path(self.group, f"{name}.console")
            console.write_bytes(b"")
            # Before whatever else runs, where that is allowed: a node that waits for a processor is up longer, and
            # takes a part of one also while nothing is asked of it.
            pid = spawn(
                [
                    "nice",
                    "-n",
                    "-5",
                    need("qemu-system-x86_64"),
                    "-nodefaults",
                    "-no-user-config",
                    "-display",
                    "none",
                    "-machine",
                    "q35",
                    "-accel",
                    "tcg,thread=multi,tb-size=256",
                    "-cpu",
                    PROCESSOR,
                    "-smp",
                    "1",
                    "-m",
                    str(memory),
                    *boots_by,
                    "-netdev",
                    f"user,id=n0,restrict=off,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22",
                    "-device",
                    "virtio-net-pci,netdev=n0,romfile=",
                    "-qmp",
                    f"unix:{sockets}/{name}.qmp,server=on,wait=off",
                    "-serial",
                    f"file:{console}",
                ],
                self.lab.path(self.group, f"{name}.qemu"),
            )
            nodes[name] = {"pid": pid, "port": port}
        self.lab.remember(**{self.group: nodes, f"{self.group}-sockets": sockets})
        config = "".join(SSH_CONFIG.format(name=n, port=v["port"]) for n, v in nodes.items())
        config += SSH_COMMON.format(names=" ".join(nodes), key=guest.keys(self.lab) / "id", sockets=sockets)
        self.ssh_config.write_text(config)

    def down(self):
        """Stops all nodes of this lab and its ssh connections."""
        state = self.lab.state()
        for name in state.get(self.group, {}):
            self.disconnect(name)
        for known in state.get(self.group, {}).values():
            stop_process(known["pid"], 2)
        if state.get(f"{self.group}-sockets"):
            subprocess.run(["rm", "-rf", state[f"{self.group}-sockets"]], check=False)
        self.lab.remember(**{self.group: {}, f"{self.group}-sockets": None})

    def running(self):
        nodes = self.lab.state().get(self.group, {})
        return bool(nodes) and all(alive(known["pid"]) for known in nodes.values())

    def disconnect(self, name):
        """Ends the shared ssh connection of a node, if there is one."""
        if self.ssh_config.exists():
            subprocess.run(["ssh", "-F", self.ssh_config, "-O", "exit", name], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def ssh(self, name, command, stdin=None, timeout=600):
        """Runs a command on a node; returns the completed process whatever its exit code."""
        return subprocess.run(["ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", name, command],
                              input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, check=False)

    def put(self, name, path, directory):
        """Copies a file or a directory of this host into a directory of a node."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(path, arcname=path.name)
        text = base64.encodebytes(packed.getvalue()).decode()
        self.shell(name, f"mkdir -p {directory} && base64 -d | tar -xf - -C {directory}", text)

    def shell(self, name, command, stdin=None):
        """Runs a command that must succeed; returns its output."""
        done = self.ssh(name, command, stdin)
        if done.returncode != 0:
            raise LabError(f"{name}: {command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def each(self, command, names=None):
        """Runs a command on several nodes at once, which must succeed; returns {name: output}."""
        names = list(names or self.names())
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            return dict(zip(names, pool.map(lambda name: self.shell(name, command), names)))

    def boot_id(self, name):
        return self.shell(name, "cat /proc/sys/kernel/random/boot_id").strip()

    def _answers(self, name):
        if not alive(self.node(name)["pid"]):
            raise LabError(f"{name}: qemu has ended\n{self.console(name)}")
        try:
            with socket.create_connection(("127.0.0.1", self.node(name)["port"]), timeout=2) as probe:
                probe.settimeout(2)
                return probe.recv(4) == b"SSH-"
        except OSError:
            return False

    def wait_ready(self, names=None, timeout=600):
        """Waits until every node answers on ssh and runs a command."""
        for name in names or self.names():
            try:
                wait_for(f"ssh of {name}", lambda n=name: self._answers(n), timeout, 0.3)
                wait_for(f"a command on {name}", lambda n=name: self.ssh(n, "true").returncode == 0, timeout, 0.5)
            except LabError as error:
                raise LabError(f"{error}\n{self.console(name)[-2000:]}") from None

    def console(self, name):
        return self.lab.path(self.group, f"{name}.console").read_text(errors="replace")

    def qmp(self, name, command, arguments=None):
        """One QEMU monitor command."""
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(10)
            wire.connect(f"{self.sockets}/{name}.qmp")
            stream = wire.makefile("rw")
            stream.readline()
            for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments or {}}):
                stream.write(json.dumps(request) + "\n")
                stream.flush()
                while True:
                    answer = json.loads(stream.readline())
                    if "error" in answer:
                        raise LabError(f"{name}: {command}: {answer['error']}")
                    if "return" in answer:
                        break

    def reset(self, name):
        """The power switch: the node restarts at once, without warning, with another boot id."""
        self.qmp(name, "system_reset")

    def reboot(self, name, timeout=600):
        """Restarts a node and waits until it answers with a new boot id, which is returned."""
        before = self.boot_id(name)
        self.reset(name)
        self.disconnect(name)

        def rebooted():
            if not self._answers(name):
                return None
            done = self.ssh(name, "cat /proc/sys/kernel/random/boot_id", timeout=30)
            return done.stdout.strip() if done.returncode == 0 and done.stdout.strip() != before else None
        return wait_for(f"{name} to come back", rebooted, timeout, 0.5)

    def link(self, name, connected):
        """Plugs the network cable of a node in or out."""
        self.qmp(name, "set_link", {"name": "n0", "up": connected})

    def clean(self):
        """Brings all nodes back to no test module loaded."""
        self.each(CLEAN)

    def first_version(self):
        """Brings all nodes to nothing but v1 of kmm_hello; returns their boot ids."""
        return {name: text.strip() for name, text in self.each(
            f"{CLEAN}; insmod {guest.FIRST_VERSION} greeting=hello && cat /proc/sys/kernel/random/boot_id").items()}
