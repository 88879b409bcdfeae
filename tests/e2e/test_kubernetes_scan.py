# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade versions --scan proposes metadata from what lies on the nodes, and changes nothing."""
import json
import shutil

import case
from fleet import scratch
from kubernetes_fleet import FROM, TARGET, KubernetesFleet

import fake_kubeadm_node

OTHER = "v1.35.9"


class Scanned(case.CopyCase):
    @classmethod
    def setUpClass(cls):
        cls._where = scratch("template")
        cls._template = KubernetesFleet.build(case.TOOLS, cls._where / "w", 1, 2)

    def scan(self, *options, exit_code=0):
        done = self.fleet.run("versions", "--scan", *options)
        self.assertEqual(done.returncode, exit_code, done.stdout)
        self.assertEqual([self.fleet.log(node) for node in self.fleet.names()], [[], [], []])
        return done.stdout

    def proposed(self, exit_code=0):
        return self.scan("-o", "name", exit_code=exit_code).split()

    def directory(self, node, name=""):
        return self.fleet.nodes / node / "usr/local/kubernetes" / name

    def put(self, node, version, stages=""):
        fake_kubeadm_node.binaries(self.fleet.nodes / node, "/usr/local/kubernetes", version, stages)

    def test_the_proposal_is_metadata(self):
        for node in self.fleet.names():
            self.put(node, OTHER, "stages")
        file = self.work / "versions.yaml"
        file.write_text(self.scan("-o", "yaml"))
        self.assertIn(f"- version: {OTHER}\n  upgrade_from:\n  - {FROM}\n  - {TARGET}\n", file.read_text())
        done = self.fleet.run("versions", OTHER, "--versions", str(file))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"control planes {OTHER}, then kubelets {OTHER}", done.stdout)
        found = json.loads(self.scan("-o", "json"))
        self.assertEqual([each["version"] for each in found["proposal"]["versions"]], [FROM, TARGET, OTHER])

    def test_half_a_directory_is_named(self):
        for node in self.fleet.names():
            self.put(node, OTHER, "stages")
        (self.directory("w1", OTHER[1:]) / "stage2/usr/bin/kubelet").unlink()
        (self.directory("w2", TARGET[1:]) / "kubeadm").write_text(fake_kubeadm_node.program("kubeadm", FROM))
        self.assertEqual(self.proposed(), [FROM])
        said = self.scan()
        self.assertIn(f"{OTHER} lacks as binaries: w1 (expected kubelet {OTHER} in /usr/local/kubernetes", said)
        self.assertIn(
            f"{TARGET} lacks as binaries: w2 (/usr/local/kubernetes/{TARGET[1:]}/kubeadm: expected sha256", said
        )
        self.assertIn(f"# {OTHER} is not proposed\n", self.scan("-o", "yaml"))

    def test_a_name_that_is_not_a_version_is_named(self):
        self.directory("w1", "current").mkdir()
        self.directory("cp1", "1.35").mkdir()
        said = self.scan()
        self.assertIn("ignored: w1 current: its name is not MAJOR.MINOR.PATCH as v1.34.4\n", said)
        self.assertIn("ignored: cp1 1.35: ", said)

    def test_a_node_does_not_answer(self):
        self.fleet.fault("w2", "facts unreachable")
        said = self.scan(exit_code=69)
        self.assertIn("no answer: w2: ", said)
        self.assertIn("No route to host", said)
        self.fleet.fault("w2", "facts unreachable")
        self.assertEqual(self.proposed(exit_code=69), [FROM])

    def test_package_sources(self):
        for node in self.fleet.names():
            shutil.rmtree(self.directory(node))
            fake_kubeadm_node.put(
                self.fleet.nodes / node / "usr/bin/apt-cache", fake_kubeadm_node.program("apt-cache", "v1"), 0o755
            )
            self.fleet.behave(node, packages=["1.34.4", TARGET[1:], OTHER[1:]])
        self.assertEqual(self.proposed(), [FROM, TARGET, OTHER])
        self.fleet.behave("w1", packages=["1.34.4", TARGET[1:], f"kubeadm {OTHER[1:]}"])
        self.assertEqual(self.proposed(), [FROM, TARGET])
        self.assertIn(f"{OTHER} lacks as packages: w1 (no package kubelet of that version)", self.scan())

    def test_options(self):
        for words in (
            ("versions", TARGET, "--scan"),
            ("versions", "--from", "/x"),
            ("versions", "--scan", "--from", "x"),
        ):
            done = self.fleet.run(*words)
            self.assertEqual(done.returncode, 64, done.stdout)
        self.assertNotIn(TARGET, self.scan("--from", "/srv"))
