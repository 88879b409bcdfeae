# SPDX-License-Identifier: Apache-2.0
"""Real clusters of kubeadm are upgraded by kmm-upgrade without ssh: by Pods of the worker's image on their kubelets."""
import json
import re
import unittest

from lab.common import say, wait_for
from test_kubeadm import NEW, OLD, SWITCH, LabCase


class PodsCase(LabCase):
    """Every command reaches the nodes by Pods, unless it says how."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = cls.lab.worker_image()

    def by_pods(self):
        return ("--via", "self", "--worker-image", self.image)

    def reach(self, verb):
        # What goes on goes on as it was started.
        return self.by_pods() if verb == "start" else ()

    def worker_pods(self):
        """Names of the worker Pods that there are; None while the API server does not answer."""
        told = self.lab.kubectl(
            "get", "pods", "-n", "kube-system", "-l", "app.kubernetes.io/component=worker", "-o", "json", check=False
        )
        return [pod["metadata"]["name"] for pod in json.loads(told)["items"]] if told else None

    def assert_nothing_left(self):
        wait_for("worker Pods to go", lambda: self.worker_pods() == [], 120)
        for node in self.lab.nodes.values():
            jobs = node.shell("cat /sys/fs/cgroup/kmm-node/cgroup.procs 2>/dev/null", check=False)
            self.assertEqual(jobs, "", f"jobs on {node.name}")
            self.assertEqual(node.shell("pgrep -x kmm-worker", check=False), "", node.name)


class Upgraded(PodsCase):
    """The way of a user without ssh, from the first question to the end."""
    NODES = ("cp1", "cp2", "w1")

    def test_1_asked(self):
        """What Pods see of the nodes is what a command by ssh sees there."""
        self.tool("health", *self.by_pods())
        by_pods = self.checks(via=self.by_pods())
        self.assertFalse({name: check for name, check in by_pods.items() if check[0] == "FAIL"})
        self.assertEqual(by_pods, self.checks(*self.by_ssh()))
        self.assert_nothing_left()

    def test_2_upgraded(self):
        self.tool("start", "kubernetes", NEW, *SWITCH)
        self.assert_runs(NEW)
        self.assert_nothing_left()


class Killed(PodsCase):
    """kmm-upgrade is killed at random moments, again and again: it finds its Pods and their jobs."""
    NODES = ("cp1", "w1")

    def test_upgraded(self):
        met = self.killed_until_done(("start", "kubernetes", NEW, *SWITCH), 20, (1, 20), 11)
        say(f"killed {met} times")
        self.assert_runs(NEW)
        self.assert_nothing_left()


class Disturbed(PodsCase):
    """What an upgrade without ssh needs goes away under it."""
    NODES = ("cp1", "w1")

    def test_1_pod_deleted(self):
        """A job on a node does not end with the Pod that has begun it."""
        first = self.lab.nodes["cp1"]
        with self.beside(
            "start", "kubernetes", NEW, *SWITCH, "--no-drain", "--until", "upgraded-first-master"
        ) as child:
            kubeadm = wait_for(
                "kubeadm to run", lambda: first.shell("pgrep -f '^kubeadm upgrade apply'", check=False), 300, 0.2
            )
            (pod,) = [name for name in self.worker_pods() if "control-plane" in name]
            self.lab.kubectl("delete", "pod", "-n", "kube-system", pod, "--grace-period=1", "--wait=false")
            # The job has a supervisor of the same name, which is the first in its group.
            group = "/sys/fs/cgroup/kmm-node/cgroup.procs"
            wait_for("the worker to end", lambda: not first.shell(f"pgrep -x kmm-worker | grep -vxFf {group}",
                                                                  check=False), 60)
            self.assertEqual(first.shell("pgrep -f '^kubeadm upgrade apply'"), kubeadm)
            told = child.communicate()[0]
        self.assertEqual(child.returncode, 11, told)
        self.assertIn("goes on there and is asked for again", told)
        self.assertIn("upgrading-first-master -> upgraded-first-master", told)
        self.assertEqual(first.shell("ls /etc/kubernetes/tmp | grep -c backup-manifests"), "1\n")

    def test_2_kubelet_gone(self):
        """A node without a kubelet is not reached by a Pod. Whoever does not want to wait for it goes on by ssh."""
        second, log = self.lab.nodes["w1"], self.dir / "resume.log"
        second.shell("systemctl stop kubelet")
        asked = re.compile("node w1 cannot be reached: .*; it is asked again")
        with open(log, "wb") as file, self.beside("resume", log=file) as child:
            wait_for("w1 to be asked again", lambda: asked.search(log.read_text()), 300, 1)
            child.terminate()
        self.assertEqual(child.returncode, 143, log.read_text())
        self.tool("resume", "--via", "ssh", *self.by_ssh())
        self.assert_runs(NEW)
        self.assert_nothing_left()


class RolledBack(PodsCase):
    """The way back after the first control plane."""
    NODES = ("cp1", "cp2", "w1")
    CLUSTER = {"etcd": {"local": {"imageTag": "3.6.6-0"}}}

    def test_back(self):
        self.tool("start", "kubernetes", NEW, *SWITCH, "--until", "upgraded-first-master", expect=11)
        self.assertIn(f"kubeadm-config names {OLD} again", self.tool("abort", "--rollback", "all"))
        self.assert_runs(OLD)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
