# SPDX-License-Identifier: Apache-2.0
"""Real clusters of kubeadm are upgraded by kmm-upgrade, by ssh, undisturbed and disturbed; see testbed/kubeadm.py."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import time
import unittest

from lab.common import say, wait_for
from testbed import binaries
from testbed.kubeadm import REPOSITORY, KubeadmLab

OLD, NEW = (f"v{program.version}" for program in binaries.KUBEADM)
# Groups without controllers: what kubeadm misses in this lab, and nothing else.
IGNORED = ("--ignore-preflight-errors", "SystemVerification")
SWITCH = ("--switch", "binaries", *IGNORED)
UPGRADE_SECONDS = 1800


class LabCase(unittest.TestCase):
    """A cluster of its own for each class, which `NODES` names; the nodes have `PROGRAMS`."""
    NODES = ("cp1", "cp2", "w1", "w2")
    PROGRAMS = binaries.KUBEADM
    CLUSTER = None

    @classmethod
    def setUpClass(cls):
        cls.bin, build = pathlib.Path(os.environ["KMM_BIN_DIR"]), pathlib.Path(os.environ["KMM_LAB_BUILD"])
        cls.dir = pathlib.Path(os.environ["KMM_LAB_DIR"], cls.__name__).resolve()
        cls.lab = KubeadmLab(
            cls.dir,
            {f"v{program.version}": binaries.place(program) for program in cls.PROGRAMS},
            cls.bin / "kmm-worker",
            build / "machine-packages/unpacked",
            binaries.place(binaries.CRICTL),
            binaries.place(binaries.ETCDUTL),
            OLD,
        )
        cls.addClassCleanup(cls.lab.down)
        # What a run that was interrupted has left is of another cluster.
        shutil.rmtree(cls.dir / "state", ignore_errors=True)
        (cls.dir / "kills.log").unlink(missing_ok=True)
        begun = time.monotonic()
        cls.lab.up(cls.NODES)
        cls.lab.init(OLD, cluster=cls.CLUSTER)
        for name in cls.NODES[1:]:
            cls.lab.join(name, name.startswith("cp"))
        cls.lab.wait_ready()
        say(f"{len(cls.NODES)} nodes: {time.monotonic() - begun:.0f} s")

    def by_ssh(self):
        return ("--ssh-config", str(self.dir / "ssh_config"))

    def reach(self, verb):
        """How nodes are reached, for a verb that reaches them."""
        return () if verb in ("versions", "health", "require", "show") else self.by_ssh()

    def words(self, *words):
        return self.lab.words(self.bin / "kmm-upgrade", *words, *self.reach(words[0]))

    def environment(self):
        return dict(os.environ, KUBECONFIG=str(self.dir / "kubeconfig"), KMM_STATE_DIR=str(self.dir / "state"))

    def tool(self, *words, expect=0):
        begun = time.monotonic()
        done = self.ended(*words, expect=expect)
        say(f"kmm-upgrade {' '.join(words[:3])}: {time.monotonic() - begun:.1f} s")
        return done.stdout + done.stderr

    def checks(self, *words, via=("--via", "ssh"), ignored=IGNORED, expect=0):
        """{id: (outcome, detail)} of the checks for the new version."""
        done = self.ended(
            "check", "kubernetes", NEW, *via, "--switch", "binaries", *ignored, "-o", "json", *words, expect=expect
        )
        return {check["id"]: (check["outcome"], check["detail"]) for check in json.loads(done.stdout)["checks"]}

    def ended(self, *words, expect):
        """A command of kmm-upgrade that has ended as it should."""
        done = subprocess.run(
            self.words(*words),
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=UPGRADE_SECONDS,
        )
        self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout[-6000:]}{done.stderr[-6000:]}")
        return done

    @contextlib.contextmanager
    def beside(self, *words, log=subprocess.PIPE):
        """kmm-upgrade beside the test: it does not outlive a failure of it."""
        with subprocess.Popen(
            self.words(*words),
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        ) as child:
            try:
                yield child
            except BaseException:
                child.kill()
                raise

    def assert_runs(self, version, kubelets=None):
        """Nothing of kmm-upgrade is believed: what runs is asked of each kubelet's process and of each component."""
        nodes = json.loads(self.lab.kubectl("get", "nodes", "-o", "json"))["items"]
        self.assertEqual({node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes}, {kubelets or version})
        self.assertFalse([node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")])
        for node in self.lab.nodes.values():
            # One that was just killed is not started again yet.
            wait_for(
                f"the kubelet of {node.name}",
                lambda node=node: node.shell("pidof kubelet", check=False).strip(),
                120,
                1,
            )
            found = node.shell("/proc/$(pidof kubelet)/exe --version").split()[-1]
            self.assertEqual(found, kubelets or version, node.name)
            if not node.name.startswith("cp"):
                continue
            for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
                # The program in the container says its version itself, whatever its image is called.
                found = node.shell(f"/proc/$(pgrep -x {component[:15]})/exe --version")
                self.assertIn(version, found, f"{component} on {node.name}")
        config = json.loads(self.lab.kubectl("get", "configmap", "kubeadm-config", "-n", "kube-system", "-o", "json"))
        self.assertIn(f"kubernetesVersion: {version}\n", config["data"]["ClusterConfiguration"])
        self.lab.wait_ready()

    def killed_until_done(self, first, kills, after, seed):
        """Kills kmm-upgrade that many times, each after a random time, and resumes. Returns the number of kills that
        met it alive."""
        choice, words, met = random.Random(seed), first, 0
        while True:
            with open(self.dir / "kills.log", "ab") as log:
                log.write(f"=== {' '.join(words)}\n".encode())
                log.flush()
                with subprocess.Popen(
                    self.words(*words), env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                ) as child:
                    try:
                        code = child.wait(choice.uniform(*after) if met < kills else UPGRADE_SECONDS)
                    except subprocess.TimeoutExpired:
                        child.kill()
                        code = None
            log = (self.dir / "kills.log").read_text()
            if code is None:
                met, words = met + 1, ("resume",)
            elif code == 66 and " -> " not in log:
                words = first  # it was killed before its record
            else:
                self.assertEqual(code, 0, log[-6000:])
                return met


class Upgraded(LabCase):
    """The way of a user, from the first question to the end."""

    def test_1_healthy(self):
        self.assertIn(f"{OLD}   True    active", self.tool("versions"))
        self.tool("health")
        found = self.checks()
        self.assertFalse({name: check for name, check in found.items() if check[0] == "FAIL"})
        for name in (
            "manifest-drift",
            "config-drift",
            "etcd-members",
            "removed-kubelet-flags",
            "kubelet-healthz",
            "sandbox-image",
        ):
            self.assertEqual(found[name][0], "OK", found[name])
        # Of kubeadm's own preflight, which finds what the lab misses and creates nothing.
        self.assertEqual(found["kubeadm-preflight"][0], "WARN", found)
        outcome, detail = self.checks(ignored=(), expect=10)["kubeadm-preflight"]
        self.assertEqual(outcome, "FAIL")
        self.assertIn("cp1: SystemVerification: missing required cgroups", detail)
        self.assertEqual(self.lab.kubectl("get", "jobs", "-A", "-o", "name"), "")
        events = self.lab.kubectl("get", "events", "-A", "-o", "name")
        self.assertNotIn("upgrade-health-check", events)
        self.assertEqual(self.lab.nodes["cp1"].shell("ls /etc/kubernetes/tmp 2>/dev/null", check=False), "")

    def test_2_upgraded(self):
        self.tool("start", "kubernetes", NEW, *SWITCH)
        self.assert_runs(NEW)
        self.assertIn(f"{NEW}   True    active", self.tool("versions"))


class ThreePlanes(LabCase):
    """Three members of etcd: whichever leads is upgraded last, and leads until then."""
    NODES = ("cp1", "cp2", "cp3", "w1")

    def leader(self):
        """The node whose etcd says that it leads."""
        read = "import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:2381/metrics\").read().decode())"
        ask = f"/usr/bin/python3 -c '{read}' | grep -c '^etcd_server_is_leader 1'"
        found = [
            node.name for node in self.lab.nodes.values()
            if node.name.startswith("cp") and node.shell(ask, check=False) == "1\n"
        ]
        return found[0] if len(found) == 1 else None

    def test_upgraded(self):
        # As kubeadm joins them the first one leads: it is killed, and another one does.
        self.lab.nodes["cp1"].shell("pkill -9 -x etcd")
        wait_for("another member to lead", lambda: self.leader() not in (None, "cp1"), 120, 1)
        self.lab.wait_ready()
        leader = wait_for("one member to lead", self.leader, 120, 1)
        told = self.tool("start", "kubernetes", NEW, *SWITCH)
        self.assert_runs(NEW)
        done = re.findall(r" (cp\d) upgrading-control-plane -> control-plane-upgraded", told)
        self.assertEqual((sorted(done), done[-1]), (["cp1", "cp2", "cp3"], leader), told)


class Killed(LabCase):
    """kmm-upgrade is killed at random moments, again and again."""

    def test_upgraded(self):
        met = self.killed_until_done(("start", "kubernetes", NEW, *SWITCH), 20, (2, 32), 7)
        say(f"killed {met} times")
        self.assert_runs(NEW)


class Disturbed(LabCase):
    """What runs on the nodes is killed."""
    NODES = ("cp1", "w1", "w2")

    def test_1_kubeadm_killed(self):
        first = self.lab.nodes["cp1"]
        with self.beside("start", "kubernetes", NEW, *SWITCH) as child:
            # When it has swapped the manifest of the API server, which it then waits for.
            wait_for(
                "kubeadm to swap a manifest",
                lambda: first.shell(
                    "ls /etc/kubernetes/tmp/kubeadm-backup-manifests-*/kube-apiserver.yaml 2>/dev/null", check=False
                ),
                300,
                0.05,
            )
            first.shell("pkill -9 -x kubeadm")
            told = child.communicate()[0]
        self.assertEqual(child.returncode, 11, told)
        self.assertIn("signal 9", told)
        # Between its two renames the old manifest is in the backup, and the new one not yet in its place.
        first.shell(
            "mv /etc/kubernetes/manifests/kube-controller-manager.yaml /etc/kubernetes/tmp/kubeadm-backup-manifests-*/"
        )
        self.tool("retry", "cp1")
        self.assert_runs(NEW)

    def test_2_kubelets_killed(self):
        """Kubelets that are killed do not look like a fault of the cluster for longer than they need to start."""
        for node in self.lab.nodes.values():
            node.shell("pkill -9 -x kubelet")
        self.lab.wait_ready()
        self.tool("health")


class Silent(LabCase):
    """The kubelet of a node is off when its Pods are evicted: nobody ends them. Certificates are elsewhere than by
    default."""
    NODES = ("cp1", "w1")
    CLUSTER = {"certificatesDir": "/etc/kubernetes/keys"}

    def test_drained_when_it_is_back(self):
        self.lab.kubectl("create", "deployment", "web", f"--image={REPOSITORY}/pause:3.10.1")
        self.lab.kubectl("rollout", "status", "deployment/web", "--timeout=120s")
        self.tool("start", "kubernetes", NEW, *SWITCH, "--until", "upgraded-first-master", expect=11)
        saved = "cat /var/lib/kmm-node/backups/*/backup.json"
        self.assertIn('"/etc/kubernetes/keys/etcd/ca.key"', self.lab.nodes["cp1"].shell(saved))
        self.tool("abort")
        # The rest is a run of kubelets alone, which may wait for less.
        hooks, worker = self.dir / "hooks", self.lab.nodes["w1"]
        shutil.rmtree(hooks, ignore_errors=True)
        hooks.mkdir()
        hook = hooks / "pre-upgrading-kubelets.w1"
        hook.write_text(f"#!/bin/sh\ntest -e {hooks}/.off && exit 0\ntouch {hooks}/.off\n"
                        f"exec ssh -F {self.dir}/ssh_config w1 systemctl stop kubelet\n")
        hook.chmod(0o755)
        told = self.tool("start", "kubernetes", NEW, *SWITCH, "--ignore-checks", "versions-uniform", "--hook-dir",
                         str(hooks), "--node-timeout", "75s", expect=11)
        pod = r"default/web-\S+ \(Terminating since \d+s"
        self.assertRegex(told, rf"waits for \d Pods? to end: .*{pod}")
        self.assertRegex(told, rf"\d Pods? still there after 1m15s: .*{pod}\)")
        self.assertRegex(" ".join(told.split()), r"the kubelet of w1 does not end \S+: look at its log; if the node "
                                                 r"will not start again: kubectl delete pod -n \S+ \S+ --force")
        self.assertIn("draining-failed", self.tool("show"))
        # As long as it is off, another try ends as this one did.
        self.assertIn("the kubelet of w1 does not end", self.tool("resume", expect=11))
        worker.shell("systemctl start kubelet")
        self.tool("resume")
        self.assert_runs(NEW)


class RolledBack(LabCase):
    """The way back after the first control plane: with the same etcd; and forward again."""
    NODES = ("cp1", "cp2", "w1")
    CLUSTER = {"etcd": {"local": {"imageTag": "3.6.6-0"}}}

    def test_1_back(self):
        self.tool("start", "kubernetes", NEW, *SWITCH, "--until", "upgraded-first-master", expect=11)
        self.assertIn("kubeadm-config names v1.34.4 again", self.tool("abort", "--rollback", "all"))
        self.assert_runs(OLD)

    def test_2_forward_with_kubelets_killed(self):
        choice, nodes = random.Random(5), list(self.lab.nodes.values())
        with self.beside("start", "kubernetes", NEW, *SWITCH) as child:
            killed = 0
            # More often, and no kubelet has the time to start a static Pod: kubeadm gives up after five minutes.
            while child.poll() is None and killed < 8:
                time.sleep(choice.uniform(45, 75))
                choice.choice(nodes).shell("pkill -9 -x kubelet", check=False)
                killed += 1
            told = child.communicate()[0]
        self.assertEqual(child.returncode, 0, told)
        self.assert_runs(NEW)


class OtherEtcd(LabCase):
    """A way back that does not exist is refused, and the way forward is left."""
    NODES = ("cp1", "w1")

    def test_refused(self):
        self.tool("start", "kubernetes", NEW, *SWITCH, "--until", "upgraded-first-master", expect=11)
        self.assertIn("etcd-differs", self.tool("abort", "--rollback", "all", expect=10))
        self.tool("resume")
        self.assert_runs(NEW)


class Refused(LabCase):
    """Faults of the cluster are named before anything changes."""
    NODES = ("cp1", "w1")

    def refused(self, *names):
        """Waits until the checks name these, and only these; the start is refused then, and no node has been
        touched."""
        def failing():
            try:
                return {name for name, check in self.checks(expect=10).items() if check[0] == "FAIL"} == set(names)
            except AssertionError:
                return False  # an API server that is just starting
        wait_for(f"{names} to be named", failing, 240, 3)
        told = self.tool("start", "kubernetes", NEW, *SWITCH, expect=10)
        for name in names:
            self.assertIn(f"  {name}: ", told)
        for node in self.lab.nodes.values():
            self.assertEqual(node.shell("ls /var/lib/kmm-node/backups 2>/dev/null", check=False), "")

    def test_budget(self):
        self.lab.kubectl("create", "deployment", "web", f"--image={REPOSITORY}/pause:3.10.1")
        self.lab.kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
        self.addCleanup(self.lab.kubectl, "delete", "deployment/web", "pdb/web")
        self.refused("pdb-blocks-drain")

    def test_certificate(self):
        node, pki = self.lab.nodes["cp1"], "/etc/kubernetes/pki/front-proxy"
        node.shell(
            f"cp {pki}-client.crt /root/kept && openssl req -new -key {pki}-client.key -subj /CN=front-proxy-client "
            f"-out /root/req && "
            f"openssl x509 -req -in /root/req -CA {pki}-ca.crt -CAkey {pki}-ca.key -CAcreateserial -days -1 -out "
            f"{pki}-client.crt"
        )
        self.addCleanup(node.shell, f"cp /root/kept {pki}-client.crt")
        self.refused("cert-expiry")

    def test_disk(self):
        node = self.lab.nodes["w1"]
        node.shell(
            "mkdir /root/kept && cp -a /etc/kubernetes/. /root/kept && mount -t tmpfs -o size=8M small "
            "/etc/kubernetes && "
            "cp -a /root/kept/. /etc/kubernetes"
        )
        self.addCleanup(node.shell, "umount /etc/kubernetes")
        self.refused("disk-space")

    def test_gate(self):
        node, file = self.lab.nodes["cp1"], "/etc/kubernetes/manifests/kube-apiserver.yaml"
        node.shell(f"sed -i 's/    - --allow-privileged=true/&\\n    - --feature-gates=PodIndexLabel=true/' {file}")
        self.addCleanup(self.lab.wait_ready)
        self.addCleanup(node.shell, f"sed -i /PodIndexLabel/d {file}")
        self.refused("manifest-drift", "removed-flags")

    def test_dead_webhook(self):
        hook = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "gate"},
            "webhooks": [
                {
                    "name": "gate.example.com",
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"service": {"name": "gate", "namespace": "default"}},
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ],
                }
            ],
        }
        self.lab.kubectl("create", "-f", "-", input=json.dumps(hook))
        self.addCleanup(self.lab.kubectl, "delete", "validatingwebhookconfiguration", "gate")
        self.refused("webhook-deadlock")


if __name__ == "__main__":
    unittest.main()
