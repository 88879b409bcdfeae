# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade start kubernetes on nodes that have an etcd: no change without a snapshot that is whole."""
import base64
import hashlib
import http.server
import json
import os
import shutil
import threading
import time

from kubernetes_fleet import FROM, HOW, START, TARGET
from kubernetes_case import OLD, Case

OLD_PATCH = "v1.35.3"


class Gateway(http.server.BaseHTTPRequestHandler):
    """etcd's gateway. It serves what `server.snapshot` is, in messages; every node has a member of its own, by the path
    of its URL."""

    def do_POST(self):
        member, self.path = self.path.split("/v3/", 1)
        member = {"/cp1": "11", "/cp2": "12"}[member]
        self.server.asked.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "maintenance/snapshot":
            return self.send_snapshot()
        members = [{"ID": ident, "name": f"cp{ident[1]}", "clientURLs": []} for ident in self.server.members]
        answer = {
            "maintenance/status": {
                "header": {"member_id": member},
                "leader": self.server.leader,
                "version": "3.6.5",
                "dbSize": "4128",
                "dbSizeInUse": "4096",
            },
            "cluster/member/list": {"members": members},
            "maintenance/alarm": {"alarms": self.server.alarms},
        }[self.path]
        self.send(json.dumps(answer).encode())

    def send_snapshot(self):
        data = self.server.snapshot
        lines = []
        for at in range(0, len(data), 1000):
            part = data[at:at + 1000]
            lines.append(
                json.dumps(
                    {
                        "result": {
                            "remaining_bytes": str(len(data) - at - len(part)),
                            "blob": base64.b64encode(part).decode(),
                        }
                    }
                )
            )
        self.send(("\n".join(lines) + "\n").encode())

    def send(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Backed(Case):
    """Every control plane has a snapshot of its etcd before anything changes."""
    needs_tracing = False

    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
        self.server.asked, self.server.leader, self.server.alarms, self.server.members = [], "12", [], ("11", "12")
        pages = bytes(16) + bytes.fromhex("edda0ced") + bytes(4076)
        self.server.snapshot = pages + hashlib.sha256(pages).digest()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        for node in ("cp1", "cp2"):
            manifest = self.fleet.nodes / node / "etc/kubernetes/manifests/etcd.yaml"
            url = f"http://127.0.0.1:{self.server.server_port}/{node}"
            manifest.write_text(
                manifest.read_text().replace("[etcd]", f'[etcd, "--listen-client-urls=http://10.0.0.1:2379,{url}"]')
            )
            self.fleet.follow(node)

    def snapshots(self):
        return sorted(
            path.relative_to(self.fleet.nodes).parts[0]
            for path in self.fleet.nodes.glob("*/var/lib/kmm-node/backups/*/etcd.db")
            if path.read_bytes() == self.server.snapshot
        )

    def test_snapshots(self):
        words = ("start", "kubernetes", TARGET, "--switch", "binaries")
        whole = self.server.snapshot
        self.server.snapshot = whole[:2000] + b"x" + whole[2001:]
        self.assertIn("snapshot-damaged", self.must(*words, exit_code=11))
        self.assertEqual((self.fleet.control_plane("cp1"), self.fleet.applies()), (OLD, []))
        self.server.snapshot = whole
        self.must("retry", "cp1")
        self.require_complete()
        self.assertEqual(self.snapshots(), ["cp1", "cp2"])
        self.assertIn("maintenance/snapshot", self.server.asked)

    def test_the_leader_is_the_last(self):
        self.server.leader = "11"
        self.must("start", "kubernetes", TARGET, "--switch", "binaries")
        self.require_complete()
        self.assertEqual(len(self.fleet.applies()), 1)
        self.assertEqual(
            [line for line in self.fleet.log("cp2") if line.startswith("kubeadm upgrade")][0].split()[2], "apply"
        )

    def test_faults_are_named_before_anything_changes(self):
        self.server.alarms, self.server.members = [{"memberID": "12", "alarm": "NOSPACE"}], ("11", "12", "13")
        said = self.must("start", "kubernetes", TARGET, "--switch", "binaries", exit_code=10)
        self.assertRegex(said, r"etcd-members: +cp1: member cp3 \(13\) is on no control plane, cp2: member cp3")
        self.assertRegex(said, r"etcd-alarms: +cp1: NOSPACE of 12")
        self.server.alarms, self.server.members, self.server.leader = [], ("11", "12"), "0"
        self.assertRegex(
            self.must("start", "kubernetes", TARGET, "--switch", "binaries", exit_code=10),
            r"etcd-quorum: +cp1: it has no leader",
        )
        self.assertEqual((self.fleet.control_plane("cp1"), self.fleet.applies()), (OLD, []))

    def test_none_to_be_had(self):
        self.server.shutdown()
        self.server.server_close()
        said = self.must("start", "kubernetes", TARGET, "--switch", "binaries", exit_code=10)
        self.assertRegex(said, r"1 of \d+ checks fails[\s\S]*etcd-members: not heard: cp1 \(etcd does not answer at ")
        self.assertEqual((self.fleet.control_plane("cp1"), self.fleet.applies()), (OLD, []))


class Led(Backed):
    """Over several minors: etcd has another leader when the second run begins."""
    versions = (FROM, "v1.35.1", TARGET)
    test_snapshots = test_the_leader_is_the_last = test_faults_are_named_before_anything_changes = (
        test_none_to_be_had
    ) = None

    def test_each_run_asks_for_the_leader(self):
        file = self.work / "versions.yaml"
        file.write_text(
            f"versions:\n- version: {FROM}\n- version: v1.35.1\n- {{version: {TARGET}, upgrade_from: [v1.35.1]}}\n"
        )
        self.must(
            "start",
            "kubernetes",
            TARGET,
            "--switch",
            "binaries",
            "--versions",
            str(file),
            "--until",
            "upgraded-second-master",
            exit_code=11,
        )
        self.server.leader = "11"
        self.must("resume")
        self.require_complete()
        applied = {
            node: [line.split()[3] for line in self.fleet.log(node) if line.startswith("kubeadm upgrade apply")]
            for node in ("cp1", "cp2")
        }
        self.assertEqual(applied, {"cp1": ["v1.35.1"], "cp2": [TARGET]})


class Pruned(Case):
    """Backups of earlier upgrades do not pile up."""
    needs_tracing = False
    versions = (FROM, "v1.35.1", TARGET)
    OLDER = ("before-v1.32.1-00000001", "before-v1.33.1-00000002", "mine")

    def setUp(self):
        super().setUp()
        for node in self.fleet.names():
            for days, name in zip((90, 60, 60), self.OLDER):
                done = self.fleet.ssh(node, "backup", "--name", name)
                self.assertEqual(done.returncode, 0, done.stderr)
                then = time.time() - days * 86400
                os.utime(self.backups(node) / name, (then, then))

    def backups(self, node):
        return self.fleet.nodes / node / "var/lib/kmm-node/backups"

    def kept(self, node):
        return sorted(path.name.rsplit("-", 1)[0] for path in self.backups(node).iterdir())

    def test_at_the_end(self):
        self.assertIn("backups: the newest 2 of upgrades stay on each node", self.must(*START, "--dry-run"))
        said = self.must(*START)
        for node in self.fleet.names():
            self.assertEqual(self.kept(node), ["before-v1.33.1", f"before-{TARGET}", "mine"], node)
            self.assertRegex(said, rf"{node} .*kubelet {TARGET}; removed 1 old backup")
        self.require_complete()

    def test_as_many_as_are_wanted(self):
        self.assertIn("--keep-backups", self.must(*START, "--keep-backups", "0", exit_code=64))
        self.assertIn("backups: only that of this upgrade stays", self.must(*START, "--keep-backups", "1", "--dry-run"))
        self.must(*START, "--keep-backups", "1", "--until", "upgraded-second-master", exit_code=11)
        self.assertEqual(self.kept("cp1"), ["before-v1.32.1", "before-v1.33.1", f"before-{TARGET}", "mine"])
        self.must("resume")
        self.assertEqual({tuple(self.kept(node)) for node in self.fleet.names()}, {(f"before-{TARGET}", "mine")})

    def test_what_is_not_removed_fails_nothing(self):
        self.fleet.fault("w1", "prune unreachable")
        self.assertRegex(self.must(*START), r"w1 .*not-pruned: ")
        self.require_complete()
        self.assertEqual(len(self.kept("w1")), 4)

    def test_control_planes_alone(self):
        """kubelets follow in a later run: what kubeadm keeps goes after each one."""
        file = self.work / "versions.yaml"
        file.write_text(
            f"versions:\n- version: {FROM}\n- version: v1.35.1\n- {{version: {TARGET}, upgrade_from: [v1.35.1]}}\n"
        )
        old = self.fleet.nodes / "cp1/etc/kubernetes/tmp/kubeadm-backup-etcd-2026-01-01-00-00-00"
        (old / "etcd").mkdir(parents=True)
        shutil.copytree(old, old.with_name("kubeadm-backup-etcd-2026-01-02-00-00-00"))
        os.utime(old, (1, 1))
        said = self.must(*START, "--versions", str(file))
        self.assertFalse(old.exists())
        self.assertRegex(said, r"cp1 .*control plane v1.35.1; removed 1 old backup, 1 old copy of kubeadm in ")


class Relied(Case):
    """A backup is looked at before a step that relies on it: backup-valid."""
    needs_tracing = False
    versions = (OLD_PATCH, TARGET)

    def setUp(self):
        super().setUp()
        file = self.work / "versions.yaml"
        file.write_text(f"versions:\n- version: {OLD_PATCH}\n- version: {TARGET}\n")
        self.options = (*HOW, "--versions", str(file))

    def damage(self, node):
        """Changes a file of the backup of a node; what brings it back."""
        file = next((self.fleet.nodes / node / "var/lib/kmm-node/backups").rglob("kube-scheduler.yaml"))
        text = file.read_bytes()
        file.write_bytes(text + b"#")
        return lambda: file.write_bytes(text)

    def test_on(self):
        fleet = self.fleet
        self.must("start", "kubernetes", TARGET, *self.options, "--until", "downloaded-images", exit_code=11)
        mend = self.damage("cp1")
        self.assertIn("cp1: backup-valid fails: kmm-worker says: ", self.must("resume", exit_code=11))
        self.assertEqual((fleet.control_plane("cp1")["kube-apiserver"], fleet.kubelet("cp1")), (OLD_PATCH, OLD_PATCH))
        mend()
        self.must("retry", "cp1")
        self.assertEqual({fleet.control_plane(node)["kube-apiserver"] for node in ("cp1", "cp2")}, {TARGET})

    def test_back(self):
        fleet = self.fleet
        self.must("start", "kubernetes", TARGET, *self.options, "--until", "upgraded-second-master", exit_code=11)
        mend = self.damage("cp2")
        shown = self.must("abort", "--rollback", "all", exit_code=11)
        self.assertIn("cp2: backup-valid fails: kmm-worker says: ", shown)
        self.assertEqual(fleet.control_plane("cp2")["kube-apiserver"], TARGET)
        mend()
        self.must("resume")
        self.assertEqual(self.run_states()[-1], "upgrade-aborted")
        self.assertEqual({fleet.control_plane(node)["kube-apiserver"] for node in ("cp1", "cp2")}, {OLD_PATCH})
