# SPDX-License-Identifier: Apache-2.0
"""A cluster that kubeadm makes, of nodes that are namespaces of this host: own mounts, processes, network, groups, and
an own root, which is the host's with what they write over it. All of it is in namespaces of one process, and ends with
it; the host's own network, mounts and settings are not touched. Root is needed, and nothing of containers on the
host."""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from lab.common import LabError, alive, need, run, say, wait_for

from . import images

HERE = pathlib.Path(__file__).resolve().parent.parent
OWN = HERE / "kubeadm"
GATE = "10.77.0.1"
REPOSITORY = f"{GATE}:5000"
TOKEN = "abcdef.0123456789abcdef"
CERTIFICATE_KEY = "5c" * 32
GROUPS = pathlib.Path("/sys/fs/cgroup/unified")
PROGRAMS = ("kubeadm", "kubelet", "kubectl")
PR_SET_PDEATHSIG = 1
READY_SECONDS = 600


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def first_process(pid):
    """The descendant that is the first of its namespace of processes, innermost; None until it is there."""
    with contextlib.suppress(OSError):
        while True:
            inner = [
                line
                for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                if line.startswith("NSpid:")
            ]
            below = children(pid)
            if not below:
                return pid if inner and inner[0].split()[-1] == "1" and len(inner[0].split()) > 2 else None
            if inner and inner[0].split()[-1] == "1" and len(inner[0].split()) > 2:
                return pid
            pid = below[0]
    return None


class NodeSpace:
    """A node: its address, commands on it, and its disk, which is in the namespaces of all and outlives a power cut."""

    def __init__(self, lab, name, number):
        self.lab, self.name, self.number = lab, name, number
        self.address, self.pid, self.process = f"10.77.0.{10 + number}", None, None
        self.dir, self.pods = lab.dir / "nodes" / name, f"10.88.{number}.0/24"

    def words(self, *command):
        return ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-C", "--", "env", "-i",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", *map(str, command)]

    def run(self, *command, check=True, **options):
        done = subprocess.run(
            self.words(*command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            **options,
        )
        if check and done.returncode:
            raise LabError(
                f"{self.name}: {' '.join(map(str, command))}: exit "
                f"{done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
            )
        return done

    def shell(self, script, check=True):
        return self.run("sh", "-c", script, check=check).stdout

    def write(self, path, text, mode=0o644):
        subprocess.run(
            self.words("sh", "-c", f"mkdir -p $(dirname {path}) && cat >{path} && chmod {mode:o} {path}"),
            input=text,
            text=True,
            check=True,
            cwd="/",
        )

    def seed(self):
        """What lies over the root of the host on this node only."""
        tree = self.dir / "seed"
        for path, text, mode in (
            ("etc/hostname", f"{self.name}\n", 0o644),
            (
                "etc/hosts",
                "127.0.0.1 localhost\n" + "".join(f"{node.address} {node.name}\n" for node in self.lab.nodes.values()),
                0o644,
            ),
            ("etc/resolv.conf", f"nameserver {GATE}\n", 0o644),
            ("etc/machine-id", f"{self.number:032x}\n", 0o444),
            ("etc/cni/net.d/10-pods.conflist", json.dumps(self.pod_network()), 0o644),
        ):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
            (tree / path).chmod(mode)
        return tree

    def pod_network(self):
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{
            "type": "bridge", "bridge": "cni0", "isDefaultGateway": True,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": self.pods}]]}}]}

    def route(self, other, how=None):
        """How this node reaches the Pods of another one: through it, or as `how` says, as "blackhole"."""
        self.run("ip", "route", "del", other.pods, check=False)
        self.run("ip", "route", "add", *([how, other.pods] if how else [other.pods, "via", other.address]))

    def start(self):
        """Makes its disk anew, and boots it."""
        shutil.rmtree(self.dir, ignore_errors=True)
        seed, tree = self.seed(), self.dir / "tree"
        run(self.lab.words(
            "sh", "-ec",
            f"mkdir -p {tree} && mount -t tmpfs -o mode=755 upper {tree} && mkdir {tree}/upper {tree}/work && "
            f"cp -a {self.lab.dir}/common/. {seed}/. {tree}/upper/", spaces="mnp"))
        self.boot()

    def cut(self):
        """Takes its power away: every process ends at once, those that it has for others, too, and nobody who is
        connected hears of it. What was written is on its disk."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()
        group = self.lab.group / self.name
        wait_for(f"{self.name} to be off",
                 lambda: not [path for path in group.rglob("cgroup.procs") if path.read_text()], 30, 0.05)
        for directory, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)
        run(self.lab.words("sh", "-c", f"ip link del lab-{self.name} 2>/dev/null || :"))
        self.pid = None

    def on_disk(self, script):
        """Runs a script in the root of its disk while it is off, where only what was written is."""
        return run(self.lab.words("sh", "-ec", f"cd {self.dir}/tree/upper && {script}", spaces="mnp")).stdout

    def sees(self, path):
        """Whether it has a file, which may be a pattern: quick enough to wait for a moment."""
        return bool(self.pid) and any(True for _ in pathlib.Path(f"/proc/{self.pid}/root").glob(path.lstrip("/")))

    def boot(self):
        group = self.lab.group / self.name
        group.mkdir(parents=True, exist_ok=True)
        inner = ["unshare", "-m", "-n", "-p", "-u", "-i", "-C", "-f", "--kill-child", "--propagation", "private",
                 "sh", OWN / "node/enter.sh", self.lab.dir, self.name]
        script = f"echo $$ >{group}/cgroup.procs && exec \"$@\""
        words = self.lab.words("sh", "-c", script, "sh", *inner, spaces="mnp")
        with open(self.dir / "log", "ab") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                            preexec_fn=die_with_parent)
        self.pid = wait_for(f"the first process of {self.name}", lambda: self.entered(), 300, 0.05)
        link = f"lab-{self.name}"
        # It keeps its hardware's address.
        peer = ("name", "eth0", "address", f"02:00:0a:4d:00:{10 + self.number:02x}", "netns", str(self.pid))
        self.lab.ip("link", "add", link, "type", "veth", "peer", *peer)
        self.lab.ip("link", "set", link, "master", "lab", "up")
        self.lab.nodes_changed()
        wait_for(
            f"{self.name} to be entered",
            lambda: self.run("test", "-S", "/run/lab-init", check=False).returncode == 0,
            30,
            0.05,
        )
        for line in (f"address add {self.address}/24 dev eth0", "link set eth0 up", f"route add default via {GATE}"):
            self.run("ip", *line.split())
        for other in self.lab.nodes.values():
            if other is not self:
                self.route(other)
        self.lab.ip("route", "replace", self.pods, "via", self.address)
        # Its socket is there before it serves the kubelet.
        ready = ("crictl", "info") if self.lab.crictl else ("test", "-S", "/run/containerd/containerd.sock")
        wait_for(
            f"containerd on {self.name}", lambda: self.run(*ready, check=False).returncode == 0, READY_SECONDS, 0.2
        )

    def entered(self):
        if self.process.poll() is not None:
            raise LabError(f"{self.name} has ended\n{(self.dir / 'log').read_text()}")
        return first_process(self.process.pid)


class KubeadmLab:
    """The lab below a directory. `programs` are the files that are all of Kubernetes, by version, with "v"; nodes begin
    with `first`, else the lowest."""

    def __init__(self, directory, programs, worker, packages, crictl=None, etcdutl=None, first=None):
        self.first = first or min(programs)
        self.etcdutl = etcdutl
        self.dir, self.programs, self.worker, self.packages, self.crictl = (
            pathlib.Path(directory).resolve(),
            programs,
            worker,
            packages,
            crictl,
        )
        self.group = GROUPS / f"kmm-lab-{os.getpid()}"
        self.nodes, self.world, self.pid, self.store = {}, None, None, None
        self.ca_path = ""

    def words(self, *command, spaces="n"):
        """A command in namespaces of the lab: n is what an administrator beside the nodes has."""
        return ["nsenter", "-t", str(self.pid), *(f"-{space}" for space in spaces), "--", *map(str, command)]

    def ip(self, *words):
        run(self.words("ip", *words))

    def nodes_changed(self):
        (self.dir / "lab.json").write_text(json.dumps({"world": self.pid, "nodes": {
            node.name: {"pid": node.pid, "address": node.address} for node in self.nodes.values() if node.pid}}))

    # What the nodes share.

    def common(self):
        tree = self.dir / "common"
        shutil.rmtree(tree, ignore_errors=True)

        def put(source, target, mode=0o755):
            (tree / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, tree / target)
            (tree / target).chmod(mode)

        for name in ("containerd", "containerd-shim-runc-v2"):
            put(self.packages / "usr/bin" / name, f"usr/bin/{name}")
        put(self.packages / "usr/bin/crun", "opt/lab/crun")
        for name in ("loopback", "bridge", "host-local"):
            put(self.packages / "usr/lib/cni" / name, f"opt/cni/bin/{name}")
        put(OWN / "node/crun", "opt/lab/crun-without-limits")
        put(OWN / "node/first.py", "opt/lab/first.py")
        put(OWN / "node/systemctl", "usr/bin/systemctl")
        put(self.worker, "usr/bin/kmm-worker")
        if self.crictl:
            put(self.crictl, "usr/bin/crictl")
        for version, program in self.programs.items():
            place = self.dir / "kubernetes" / version
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            shutil.copyfile(program, place / PROGRAMS[0])
            (place / PROGRAMS[0]).chmod(0o755)
            for name in PROGRAMS[1:]:
                os.link(place / PROGRAMS[0], place / name)
        for name in PROGRAMS:
            (tree / "usr/bin" / name).symlink_to(f"/usr/local/kubernetes/{self.first}/{name}")
        text = (OWN / "node/containerd.toml").read_text().replace("@REGISTRY@", REPOSITORY)
        for path, data in (
            ("etc/containerd/config.toml", text),
            (
                f"etc/containerd/certs.d/{REPOSITORY}/hosts.toml",
                f'server = "http://{REPOSITORY}"\n[host."http://{REPOSITORY}"]\n  capabilities = ["pull", "resolve"]\n',
            ),
            ("etc/crictl.yaml", "runtime-endpoint: unix:///run/containerd/containerd.sock\n"),
        ):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(data)
        keys = self.dir / "keys"
        shutil.rmtree(keys, ignore_errors=True)
        keys.mkdir(mode=0o700)
        run([need("dropbearkey"), "-t", "ed25519", "-f", keys / "host"])
        run([need("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", keys / "id"])
        put(keys / "host", "etc/dropbear/host", 0o600)
        (tree / "root/.ssh").mkdir(parents=True)
        (tree / "root").chmod(0o700)
        (tree / "root/.ssh").chmod(0o700)
        put(keys / "id.pub", "root/.ssh/authorized_keys", 0o600)
        (self.dir / "ssh_config").write_text(
            "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in self.nodes.values()) +
            f"Host *\n  User root\n  IdentityFile {keys}/id\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"
            f"  UserKnownHostsFile {keys}/known\n  LogLevel ERROR\n")

    def make_images(self):
        shutil.rmtree(self.dir / "images", ignore_errors=True)
        self.store = store = images.Images(self.dir / "images")
        stand = self.dir / "stand"
        run([need("gcc"), "-Os", "-static", "-s", "-o", stand, OWN / "node/stand.c"])
        layer = store.layer(
            stand, "usr/local/bin/stand", [f"usr/local/bin/{name}" for name in ("pause", "coredns", "kube-proxy")]
        )
        beside = [store.layer(self.etcdutl, "usr/local/bin/etcdutl", ())] if self.etcdutl else []
        for version, program in self.programs.items():
            told = run(
                [
                    self.dir / "kubernetes" / version / "kubeadm",
                    "config",
                    "images",
                    "list",
                    "--kubernetes-version",
                    version,
                    "--image-repository",
                    REPOSITORY,
                ]
            ).stdout
            store.of_version(program, [line.removeprefix(f"{REPOSITORY}/") for line in told.split()], layer, beside)

    def busybox_image(self):
        """An image with a shell and some commands of the host's busybox: its reference."""
        names = ("sh", "nc", "nslookup", "grep", "sleep")
        layer = self.store.layer(pathlib.Path(need("busybox")), "bin/busybox", [f"bin/{name}" for name in names])
        self.store.tag("busybox:1", layer)
        return f"{REPOSITORY}/busybox:1"

    def worker_image(self):
        """The image of kmm-worker that an administrator would build, at the registry of the lab: its reference."""
        archive = self.dir / "worker.tar"
        run(["bash", HERE.parent.parent / "manifests/worker-image/build.sh", archive, self.worker])
        return f"{REPOSITORY}/{self.store.archive('kmm-worker', archive)}"

    def up(self, names):
        """Starts the nodes afresh, with containerd and without a cluster."""
        self.sweep()
        self.dir.mkdir(parents=True, exist_ok=True)
        (self.dir / "world.ready").unlink(missing_ok=True)
        self.nodes = {name: NodeSpace(self, name, number + 1) for number, name in enumerate(names)}
        self.common()
        self.make_images()
        gates = [node.address for node in self.nodes.values() if node.name.startswith("cp")]
        with open(self.dir / "world.log", "wb") as log:
            self.world = subprocess.Popen(
                [
                    "unshare",
                    "-m",
                    "-n",
                    "-p",
                    "-u",
                    "-i",
                    "-f",
                    "--kill-child",
                    "--mount-proc",
                    sys.executable,
                    OWN / "world.py",
                    self.dir,
                    GATE,
                    *gates,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                preexec_fn=die_with_parent,
            )
        wait_for("the lab's first process", (self.dir / "world.ready").exists, 300, 0.05)
        self.pid = first_process(self.world.pid)
        for node in self.nodes.values():
            node.start()

    def down(self):
        """Ends every process of the lab; with them go namespaces and mounts."""
        if self.world:
            self.world.kill()
            self.world.wait()
            for node in self.nodes.values():
                if node.process:
                    node.process.wait()
            wait_for(
                "the lab's processes to end",
                lambda: not [path for path in self.group.rglob("cgroup.procs") if path.read_text()],
                30,
            )
            self.world = None
        self.sweep()

    @staticmethod
    def sweep():
        """Removes groups of labs that have ended."""
        for top in GROUPS.glob("kmm-lab-*"):
            owner = int(top.name.rpartition("-")[2])
            if owner != os.getpid() and alive(owner):
                continue
            for directory, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)

    # kubeadm.

    def init(self, version, first="cp1", kubelet=None, cluster=None):
        node = self.nodes[first]
        # Else workers have it where their kubelets do not look.
        self.ca_path = f"{cluster['certificatesDir']}/ca.crt" if "certificatesDir" in (cluster or {}) else ""
        documents = [
            self.registration(
                node,
                {
                    "kind": "InitConfiguration",
                    "bootstrapTokens": [{"token": TOKEN, "ttl": "24h0m0s"}],
                    "certificateKey": CERTIFICATE_KEY,
                    "localAPIEndpoint": {"advertiseAddress": node.address, "bindPort": 6443},
                },
            ),
            {
                "apiVersion": "kubeadm.k8s.io/v1beta4",
                "kind": "ClusterConfiguration",
                "kubernetesVersion": version,
                "controlPlaneEndpoint": f"{GATE}:6443",
                "imageRepository": REPOSITORY,
                "encryptionAlgorithm": "ECDSA-P256",
                **(cluster or {}),
            },
            {
                "apiVersion": "kubelet.config.k8s.io/v1beta1",
                "kind": "KubeletConfiguration",
                "cgroupDriver": "cgroupfs",
                "failSwapOn": False,
                "cgroupsPerQOS": False,
                "enforceNodeAllocatable": ["none"],
                "localStorageCapacityIsolation": False,
                "evictionHard": {"memory.available": "10Mi"},
                "imageGCHighThresholdPercent": 100,
                "resolvConf": "/etc/resolv.conf",
                "makeIPTablesUtilChains": False,
                **(kubelet or {}),
            },
        ]
        node.write("/root/init.yaml", "---\n".join(json.dumps(document) + "\n" for document in documents))
        node.run("kubeadm", "init", "--config", "/root/init.yaml", "--upload-certs")
        (self.dir / "kubeconfig").write_text(node.shell("cat /etc/kubernetes/admin.conf"))

    @staticmethod
    def registration(node, document):
        return {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            **document,
            "nodeRegistration": {
                "name": node.name,
                "criSocket": "unix:///run/containerd/containerd.sock",
                "ignorePreflightErrors": ["all"],
                "kubeletExtraArgs": [{"name": "node-ip", "value": node.address}],
            },
        }

    def join(self, name, control_plane=False):
        node = self.nodes[name]
        document = {"kind": "JoinConfiguration", "discovery": {"bootstrapToken": {
            "token": TOKEN, "apiServerEndpoint": f"{GATE}:6443", "unsafeSkipCAVerification": True}}}
        if control_plane:
            document["controlPlane"] = {"certificateKey": CERTIFICATE_KEY,
                                        "localAPIEndpoint": {"advertiseAddress": node.address, "bindPort": 6443}}
        elif self.ca_path:
            document["caCertPath"] = self.ca_path
        node.write("/root/join.yaml", json.dumps(self.registration(node, document)))
        node.run("kubeadm", "join", "--config", "/root/join.yaml")

    def kubectl(self, *words, check=True, **options):
        program = self.dir / "kubernetes" / self.first / "kubectl"
        done = subprocess.run(
            self.words(program, "--kubeconfig", self.dir / "kubeconfig", *words),
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
        if check and done.returncode:
            raise LabError(f"kubectl {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def wait_ready(self):
        """Waits until every node is Ready and every Pod of kube-system, too."""
        def is_ready():
            nodes = json.loads(self.kubectl("get", "nodes", "-o", "json", check=False) or '{"items": []}')["items"]
            pods = json.loads(
                self.kubectl("get", "pods", "-n", "kube-system", "-o", "json", check=False) or '{"items": []}'
            )["items"]
            things = nodes + [pod for pod in pods if pod["status"].get("phase") != "Succeeded"]
            return (
                nodes
                and pods
                and all(
                    any(c["type"] == "Ready" and c["status"] == "True" for c in thing["status"].get("conditions", []))
                    for thing in things
                )
            )
        begun = time.monotonic()
        wait_for("the cluster to be ready", is_ready, READY_SECONDS, 1)
        say(f"ready after {time.monotonic() - begun:.0f} s")
