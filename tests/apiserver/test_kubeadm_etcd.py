# SPDX-License-Identifier: Apache-2.0
"""The data of a real etcd goes back with kmm-upgrade abort --restore-etcd; see testbed/kubeadm.py."""
import json
import random
import re
import subprocess
import time
import unittest

from lab.common import say, wait_for
from test_kubeadm import NEW, OLD, SWITCH, UPGRADE_SECONDS, LabCase

ABORT = ("abort", "--rollback", "all", "--restore-etcd")


class Restored(LabCase):
    """Two members, of which the first has been upgraded: both go back to the snapshot, and what was written since is
    gone. kmm-upgrade is killed on the way."""
    NODES = ("cp1", "cp2")

    def config_maps(self):
        found = self.lab.kubectl("get", "configmaps", "-n", "default", "-o", "json")
        return {item["metadata"]["name"] for item in json.loads(found)["items"]} - {"kube-root-ca.crt"}

    def test_restored(self):
        self.lab.kubectl("create", "configmap", "before", "--from-literal=written=before")
        self.tool("start", "kubernetes", NEW, *SWITCH, "--until", "upgraded-first-master", expect=11)
        self.lab.kubectl("create", "configmap", "after", "--from-literal=written=after")
        self.assertEqual(self.config_maps(), {"before", "after"})
        self.assertIn("--restore-etcd", self.tool("abort", "--rollback", "all", expect=10))
        told = self.tool(*ABORT, expect=10)
        self.assertRegex(told, r"up to [1-9]\d* revisions are lost")
        words = re.search(r"--confirm '(.+?)'", told)[1]
        begun, choice, killed = time.monotonic(), random.Random(3), 0
        command, log = (*ABORT, "--confirm", words), []
        while time.monotonic() - begun < UPGRADE_SECONDS:
            with subprocess.Popen(self.words(*command), env=self.environment(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
                try:
                    log.append(child.communicate(timeout=choice.uniform(8, 25) if killed < 4 else None)[0])
                except subprocess.TimeoutExpired:
                    child.kill()
                    log.append(child.communicate()[0])
                    killed += 1
            if child.returncode != -9:
                break
            if "all members stop" in log[-1]:
                command = ("resume",)
        say("".join(log)[-6000:])
        self.assertEqual(child.returncode, 0, log)
        say(f"killed {killed} times, back after {time.monotonic() - begun:.0f} s")
        self.assertEqual(self.config_maps(), {"before"})
        self.assert_runs(OLD)
        for node in self.lab.nodes.values():
            # What etcd had is kept, and the restored members are of one cluster.
            self.assertTrue(node.shell("ls -d /var/lib/etcd/before-restore-*/member/snap/db"))
            self.assertEqual(node.shell("ls /etc/kubernetes/manifests").split(),
                             ["etcd.yaml", "kube-apiserver.yaml", "kube-controller-manager.yaml",
                              "kube-scheduler.yaml"])
        # What is written now reaches both: each member is asked by its own API server.
        self.lab.kubectl("create", "configmap", "later", "--from-literal=written=later")
        for node in self.lab.nodes.values():
            wait_for(
                f"{node.name} to have it",
                lambda node=node: "later" in node.shell(
                    f"kubectl --kubeconfig /etc/kubernetes/admin.conf --server https://{node.address}:6443 "
                    "get configmap later -o name", check=False),
                60,
                1,
            )

    def test_upgraded_again(self):
        """Nothing of the way back is in the way."""
        self.tool("delete")
        self.tool("start", "kubernetes", NEW, *SWITCH)
        self.assert_runs(NEW)


if __name__ == "__main__":
    unittest.main()
