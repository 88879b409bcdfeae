# SPDX-License-Identifier: Apache-2.0
"""Nodes lose their power while kubeadm works on them: every process of the node ends at once, its disk has what was
written, it boots with another boot id; see testbed/kubeadm.py."""
import subprocess
import time
import unittest

from lab.common import say, wait_for
from test_kubeadm import NEW, SWITCH, UPGRADE_SECONDS, LabCase

MANIFESTS = "/etc/kubernetes/manifests"
KEPT = "/etc/kubernetes/tmp/kubeadm-backup-manifests*"
# As a step runs it, not as a check does.
WORKS = "pgrep -xf 'kubeadm upgrade (apply v.*|node.*)' || :"
MOMENT_SECONDS = 600


class Cut(LabCase):
    """One upgrade, and a power cut at each of these moments."""
    NODES = ("cp1", "cp2", "w1")
    first = None

    def is_found(self):
        """Whether kubeadm works on the first control plane: the one whose etcd leads is the second."""
        self.first = next((name for name in ("cp1", "cp2") if self.works(name)), None)
        return self.first is not None

    def name_of(self, place):
        return {"first": self.first, "second": {"cp1": "cp2", "cp2": "cp1"}.get(self.first)}.get(place, place)

    def swapped(self, place, *components, but=()):
        """Whether kubeadm has put these aside, and not the others."""
        node = self.lab.nodes[self.name_of(place)]
        return all(node.sees(f"{KEPT}/{name}.yaml") for name in components) and not any(
            node.sees(f"{KEPT}/{name}.yaml") for name in but)

    def works(self, place):
        node = self.lab.nodes[self.name_of(place)]
        return bool(node.pid) and bool(node.shell(WORKS))

    def go_on(self, *words):
        """kmm-upgrade, beside the test."""
        self.log.write(f"=== {' '.join(words)}\n".encode())
        self.log.flush()
        return subprocess.Popen(self.words(*words), env=self.environment(), stdin=subprocess.DEVNULL, stdout=self.log,
                                stderr=self.log)

    def end_of(self, child):
        """Waits for a command that may only be through, or pause."""
        code = child.wait(UPGRADE_SECONDS)
        self.assertIn(code, (0, 11), (self.dir / "power.log").read_text()[-6000:])
        return code

    def test_upgraded(self):
        gap = f"mv {MANIFESTS[1:]}/kube-controller-manager.yaml $(ls -td {KEPT[1:]} | head -1)/"
        moments = (
            ("before the first manifest", "first", self.is_found, ""),
            ("while etcd's manifest is changed", "first",
             lambda: self.swapped("first", "etcd", but=["kube-apiserver"]), ""),
            # Between its two renames the old manifest is in the backup, and the new one not yet in its place.
            ("between two manifests, in the gap", "first",
             lambda: self.swapped("first", "kube-apiserver", but=["kube-controller-manager"]), gap),
            ("after the last manifest", "first", lambda: self.swapped("first", "kube-scheduler"), ""),
            ("while the second member of etcd is changed", "second",
             lambda: self.swapped("second", "etcd", but=["kube-apiserver"]), ""),
            ("while a kubelet is changed", "w1", lambda: self.works("w1"), ""),
        )
        with open(self.dir / "power.log", "wb") as self.log:
            child = self.go_on("start", "kubernetes", NEW, *SWITCH)
            for name, place, is_there, damage in moments:
                ends = 0

                def reached():
                    nonlocal child, ends
                    if child.poll() is not None:
                        self.assertEqual(self.end_of(child), 11, f"{name}: it is through")
                        ends += 1
                        self.assertLess(ends, 4, (self.dir / "power.log").read_text()[-6000:])
                        child = self.go_on("resume")
                    return is_there()
                begun = time.monotonic()
                wait_for(name, reached, MOMENT_SECONDS, 0.02)
                power = self.lab.nodes[self.name_of(place)]
                power.cut()
                if damage:
                    power.on_disk(damage)
                power.boot()
                say(f"{name}: {time.monotonic() - begun:.0f} s, {ends} resumed")
            tries = 0
            while self.end_of(child) != 0:
                tries += 1
                self.assertLess(tries, 6, (self.dir / "power.log").read_text()[-6000:])
                child = self.go_on("resume")
        self.assert_runs(NEW)
        # kubeadm is begun again when there is an API server.
        self.assertNotIn("kubeadm-failed", (self.dir / "power.log").read_text())


if __name__ == "__main__":
    unittest.main()
