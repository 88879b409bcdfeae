# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade abort --restore-etcd: every member goes back to one snapshot, or none does. The gateway of etcd is played
from the files of the nodes: a member that has restored beside one that has not is seen at once."""
import hashlib
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import case
from fleet import scratch
from injection import every, inject, points
from kubernetes_fleet import FROM, KubernetesFleet, TARGET
from test_kubernetes_backup import Gateway
from kubernetes_case import CUTS, Case, NEW, OLD, REBOOTS, sampled

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

HOW = ("--switch", "binaries")
ABORT = ("abort", "--rollback", "all", "--restore-etcd")
SNAPSHOT_AT, NOW_AT = 4100, 4242


class Members(Gateway):
    """etcd as the nodes' files make it: a member answers while its manifest is there, by the data that it has."""

    def do_POST(self):
        node = self.path.split("/")[1]
        root = self.server.nodes / node
        manifest, data = root / "etc/kubernetes/manifests/etcd.yaml", root / "var/lib/etcd/member/snap/db"
        self.rfile.read(int(self.headers["Content-Length"]))
        if not manifest.exists() or not data.exists():
            return self.send_error(503)
        running = {
            name: (self.server.nodes / name / "var/lib/etcd/member/snap/db").read_bytes().split(b"\n")[0]
            for name in self.server.names
            if (self.server.nodes / name / "etc/kubernetes/manifests/etcd.yaml").exists()
            and (self.server.nodes / name / "var/lib/etcd/member/snap/db").exists()
        }
        if len({text.startswith(b"restored") for text in running.values()}) > 1:
            self.server.mixed.append(dict(running))
        same = sum(text.partition(b" on ")[0] == running[node].partition(b" on ")[0] for text in running.values())
        has_leader = same * 2 > len(self.server.names)
        is_restored = running[node].startswith(b"restored")
        self.path = self.path.split("/v3/", 1)[1]
        if self.path == "maintenance/snapshot":
            return self.send_snapshot(node)
        number = {name: str(11 + place) for place, name in enumerate(self.server.names)}
        revision = 1_000_000_000 + SNAPSHOT_AT if is_restored else NOW_AT if self.server.is_later else SNAPSHOT_AT
        answer = {
            "maintenance/status": {
                "header": {"member_id": number[node], "cluster_id": "8" if is_restored else "7",
                           "revision": str(revision)},
                "leader": number[self.server.names[-1]] if has_leader else "0",
                "version": re.search(r"/etcd:([0-9.]+)", manifest.read_text())[1],
                "dbSize": "4128",
                "dbSizeInUse": "4096",
            },
            "cluster/member/list": {"members": [{"ID": number.get(name, "99"), "name": name, "clientURLs": []}
                                                for name in self.server.names + self.server.joined]},
            "maintenance/alarm": {"alarms": []},
        }[self.path]
        self.send(json.dumps(answer).encode())

    def send_snapshot(self, node=None):
        super().send_snapshot()


def with_etcd(fleet, server):
    """Gives every control plane a member with data, which `server` speaks for."""
    names = [name for name in fleet.names() if name.startswith("cp")]
    members = ",".join(f"{name}=https://{name}.example:2380" for name in names)
    for name in names:
        root = fleet.nodes / name
        manifest = root / "etc/kubernetes/manifests/etcd.yaml"
        url = f"http://127.0.0.1:{server.server_port}/{name}"
        words = [
            "etcd",
            f"--name={name}",
            f"--initial-advertise-peer-urls=https://{name}.example:2380",
            f"--initial-cluster={members}",
            "--data-dir=/var/lib/etcd",
            f"--listen-client-urls=http://10.0.0.1:2379,{url}",
        ]
        manifest.write_text(manifest.read_text().replace("[etcd]", json.dumps(words)))
        (root / "var/lib/etcd/member/snap").mkdir(parents=True)
        (root / "var/lib/etcd/member/snap/db").write_text(f"as it was on {name}\n")
        fleet.follow(name)


class EtcdCase(Case):
    """Control planes with etcd; the first one has been upgraded, its etcd with it."""
    size = (3, 1)
    needs_tracing = False
    options = ()

    def serve(self, fleet):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Members)
        server.nodes, server.names = fleet.nodes, [name for name in fleet.names() if name.startswith("cp")]
        server.mixed, server.is_later, server.joined = [], False, []
        pages = bytes(16) + bytes.fromhex("edda0ced") + bytes(4076)
        server.snapshot = pages + hashlib.sha256(pages).digest()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def setUp(self):
        super().setUp()
        self.server = self.serve(self.fleet)
        with_etcd(self.fleet, self.server)
        self.must("start", "kubernetes", TARGET, *HOW, *self.options, "--until", "upgraded-first-master", exit_code=11)
        self.assertEqual((self.fleet.control_plane("cp1"), self.fleet.control_plane("cp2")), (NEW, OLD))
        self.server.is_later = True

    def words_to_give(self):
        shown = self.must(*ABORT, exit_code=10)
        self.assertIn("not-confirmed", shown)
        return re.search(r"--confirm '(.+?)'", shown)[1]

    def data(self, fleet=None):
        fleet = fleet or self.fleet
        return {name: (fleet.nodes / name / "var/lib/etcd/member/snap/db").read_bytes().split(b"\n")[0].decode()
                for name in fleet.names() if name.startswith("cp")}

    def back(self, fleet=None):
        """"" or what is not as it was."""
        fleet = fleet or self.fleet
        data = self.data(fleet)
        faults = [f"{name}: {text}" for name, text in data.items() if not text.startswith("restored kmm-run-")]
        faults += [name for name in data if fleet.control_plane(name) != OLD]
        faults += [f"{name} lost its old data" for name in data
                   if not list((fleet.nodes / name / "var/lib/etcd").glob("before-restore-*/member/snap/db"))]
        faults += [f"{name}: a leftover" for name in data
                   if (fleet.nodes / name / "etc/kubernetes/manifests/kmm-etcd-restore.yaml").exists()]
        if len(set(data.values())) != 1:
            faults.append(f"several clusters: {data}")
        if fleet.configured() != FROM:
            faults.append(f"kubeadm-config names {fleet.configured()}")
        return "; ".join(faults)

    def untouched(self):
        self.assertEqual(self.data(), {name: f"as it was on {name}" for name in self.server.names})
        self.assertEqual((self.fleet.control_plane("cp1"), self.fleet.control_plane("cp2")), (NEW, OLD))


class Restored(EtcdCase):
    def test_only_with_its_words(self):
        self.assertIn("etcd-differs", self.must("abort", "--rollback", "all", exit_code=10))
        shown = self.must(*ABORT, exit_code=10)
        self.assertIn(f"at revision {SNAPSHOT_AT}; etcd is at revision {NOW_AT} now: up to {NOW_AT - SNAPSHOT_AT} "
                      "revisions are lost", shown)
        words = self.words_to_give()
        self.assertRegex(words, r"^restore etcd of cp1, cp2, cp3 from 20\S+Z; everything written since is lost$")
        self.assertIn("not-confirmed", self.must(*ABORT, "--confirm", words[:-1], exit_code=10))
        self.assertIn("--rollback all", self.must("abort", "--restore-etcd", "--confirm", words, exit_code=64))
        self.untouched()
        self.must("resume")
        self.require_complete()

    def test_all_members_go_back(self):
        self.must(*ABORT, "--confirm", self.words_to_give())
        self.assertEqual((self.back(), self.server.mixed), ("", []))
        self.assertEqual(self.run_states()[-1], "upgrade-aborted")
        # The data is restored by the etcd that has written it.
        for name in self.server.names:
            self.assertEqual([line for line in self.fleet.log(name) if line.startswith("kmm-restore")],
                             ["kmm-restore registry.k8s.io/etcd:3.6.5-0"])
        done = self.must(*ABORT)
        self.assertIn("upgrade-aborted", done)

    def test_a_member_that_cannot_be_reached(self):
        words = self.words_to_give()
        (self.fleet.nodes / "faults").write_text("cp3 restore-etcd unreachable\n" * 200)
        self.assertIn("No route to host", self.must(*ABORT, "--confirm", words, exit_code=69))
        (self.fleet.nodes / "faults").unlink()
        self.untouched()
        self.must(*ABORT, "--confirm", words)
        self.assertEqual((self.back(), self.server.mixed), ("", []))

    def test_a_member_of_which_the_run_knows_nothing(self):
        """It would go on with the old data."""
        words = self.words_to_give()
        self.server.joined = ["cp9"]
        self.assertIn("etcd on cp1 has the member cp9", self.must(*ABORT, "--confirm", words, exit_code=10))
        self.untouched()
        self.server.joined = []
        self.must(*ABORT, "--confirm", words)
        self.assertEqual(self.back(), "")

    def test_a_snapshot_with_changed_bytes(self):
        words = self.words_to_give()
        file = next((self.fleet.nodes / "cp2/var/lib/kmm-node/backups").glob("*/etcd.db"))
        whole = file.read_bytes()
        file.write_bytes(whole[:2000] + b"x" + whole[2001:])
        self.assertIn("backup-damaged", self.must(*ABORT, "--confirm", words, exit_code=76))
        self.untouched()
        file.write_bytes(whole)
        self.must(*ABORT, "--confirm", words)
        self.assertEqual(self.back(), "")

    def test_a_snapshot_that_etcd_does_not_restore(self):
        words = self.words_to_give()
        self.fleet.behave("cp2", restore_fails=True)
        self.assertIn("etcd-restore-failed", self.must(*ABORT, "--confirm", words, exit_code=74))
        self.untouched()
        # Nothing has been stopped: both ways are open.
        self.fleet.behave("cp2")
        self.must("resume")
        self.require_complete()

    def test_another_snapshot_on_each_member(self):
        """Each member has taken its own; all restore the newest."""
        lists = {name: next((self.fleet.nodes / name / "var/lib/kmm-node/backups").glob("*/backup.json"))
                 for name in self.server.names}
        for number, (name, file) in enumerate(lists.items()):
            pages = bytes(16) + bytes.fromhex("edda0ced") + bytes(4076 + 512 * number)
            data = pages + hashlib.sha256(pages).digest()
            (file.parent / "etcd.db").write_bytes(data)
            about = json.loads(file.read_text())
            about["etcdSnapshot"].update(size=len(data), sha256=hashlib.sha256(data).hexdigest(),
                                         revision=SNAPSHOT_AT + number)
            file.write_text(json.dumps(about))
        newest = (lists["cp3"].parent / "etcd.db").read_bytes()
        self.must(*ABORT, "--confirm", self.words_to_give())
        self.assertEqual((self.back(), self.server.mixed), ("", []))
        for name in self.server.names:
            restored = (self.fleet.nodes / name / "var/lib/etcd/member/snap/db").read_bytes()
            self.assertEqual(restored.partition(b"\n")[2], newest, name)

    def test_a_newer_kubelet_is_in_the_way(self):
        self.must("resume", "--until", "upgraded-kubelets", exit_code=11)
        self.assertRegex(self.must("show"), r"back +none: etcd 3.6.5-0 -> 3.6.6-0, and kubelets were changed; ")
        self.assertRegex(self.must("abort", "--rollback", "all", exit_code=10),
                         r"kmm-upgrade resume goes on to the target; or .*--restore-etcd, once the kubelets .* back")
        said = self.must(*ABORT, exit_code=10)
        self.assertIn(f"kubelet-newer", said)
        self.assertIn(", ".join(f"{name} runs {TARGET} ({FROM} before)" for name in ("cp1", "cp2", "cp3", "w1")), said)
        self.assertIn(f"kmm-worker kubernetes kubelet --target {FROM} --switch binaries", said)
        self.assertEqual(self.data(), {name: f"as it was on {name}" for name in self.server.names})
        # What the hint says helps.
        for node in self.fleet.names():
            done = self.fleet.ssh(node, "kubelet", "--target", FROM, "--switch", "binaries")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.must(*ABORT, "--confirm", self.words_to_give())
        self.assertEqual((self.back(), self.server.mixed), ("", []))
        self.assertEqual({self.fleet.kubelet(node) for node in self.fleet.names()}, {FROM})

    def test_after_an_abort_that_found_no_way_back(self):
        (self.fleet.nodes / "faults").write_text("cp1 facts unreachable\n")
        self.assertIn("etcd-differs", self.must("abort", "--rollback", "all", exit_code=11))
        self.assertEqual(self.run_states()[-1], "upgrade-aborting-failed")
        self.must(*ABORT, "--confirm", self.words_to_give())
        self.assertEqual((self.back(), self.server.mixed, self.run_states()[-1]), ("", [], "upgrade-aborted"))

    def test_where_etcd_is_the_same_nothing_is_lost(self):
        fleet = self._template.copy(self.work / "other")
        server = self.serve(fleet)
        with_etcd(fleet, server)
        done = fleet.run("start", "kubernetes", TARGET, *HOW, "--until", "downloaded-images")
        self.assertEqual(done.returncode, 11, done.stdout)
        done = fleet.run(*ABORT)
        self.assertEqual(done.returncode, 10, done.stdout)
        self.assertIn("restore-not-needed", done.stdout)


class Stuck(EtcdCase):
    options = ("--node-timeout", "8s")

    def test_a_member_that_does_not_stop(self):
        self.assertRegex(
            self.must("show"), r"back +kmm-upgrade abort --rollback all --restore-etcd: etcd 3.6.5-0 -> 3.6.6-0"
        )
        words = self.words_to_give()
        self.fleet.behave("cp3", lingers=True)
        shown = self.must(*ABORT, "--confirm", words, exit_code=124)
        self.assertIn("still running", shown)
        self.assertEqual(self.data(), {name: f"as it was on {name}" for name in self.server.names})
        for verb in (("abort",), ("step",), ("retry", "cp1")):
            self.assertIn("restore-under-way", self.must(*verb, exit_code=11))
        self.assertRegex(
            self.must("show"), r"etcd +its data goes back: cp1 stopped, cp2 stopped[\s\S]*kmm-upgrade resume"
        )
        for verb in (("repair",), ("restore", "--name", "any"), ("control-plane", "--target", TARGET)):
            done = self.fleet.ssh("cp1", *verb)
            self.assertIn("etcd-restore-under-way", done.stdout + done.stderr)
        self.fleet.behave("cp3")
        self.must("resume")
        self.assertEqual((self.back(), self.server.mixed), ("", []))
        self.assertEqual(self.run_states()[-1], "upgrade-aborted")


class EtcdFleet(KubernetesFleet):
    """The server speaks for the latest copy."""
    server = None

    def copy(self, root):
        made = super().copy(root)
        made.server, self.server.nodes = self.server, made.nodes
        return made


class Disturbed(EtcdCase):
    """Wherever it is cut off, it ends as if it had not been. One world after the other: they share the server."""
    size = (2, 0)
    needs_tracing = True

    def setUp(self):
        super().setUp()
        words = self.words_to_give()
        self.words = (*ABORT, "--confirm", words)
        self.base = EtcdFleet(case.TOOLS, self.fleet.root)
        self.base.server = self.server
        world = self.base.copy(self.work / "undisturbed")
        done = world.run(*self.words)
        self.assertEqual((done.returncode, self.back(world)), (0, ""), done.stdout)
        self.expected = world.outcome()

    def go_on(self, world):
        """What a person does then. The last process."""
        for _ in range(4):
            begun = "all members stop" in (world.state / "journal.ndjson").read_text()
            last = world.run("resume") if begun else world.run(*self.words)
            if last.returncode == 0:
                break
        return last

    def fault_of(self, world, last):
        if last.returncode != 0:
            return f"going on: exit {last.returncode}: {last.stdout}"
        if self.server.mixed:
            return f"restored beside not restored: {self.server.mixed.pop()}"
        return self.back(world) or case.differences(self.expected, world.outcome())

    def tried(self, cases, disturb, what):
        def body(point):
            where = scratch("etcd")
            try:
                world = self.base.copy(where / "w")
                return self.fault_of(world, disturb(world, point))
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body, workers=1)
        self.report(f"{what}: {len(cases)} cases")
        self.assertEqual(faults[:3], [], f"{len(faults)} of {len(cases)} end otherwise")

    def test_killed_at_every_write_of_the_journal(self):
        found, done = points(self.base, self.words, only="journal.ndjson")
        self.assertEqual(done.returncode, 0, done.stdout)

        def killed(world, point):
            world.run(*self.words, prefix=inject(point[0], f"signal=KILL:when={point[1]}"))
            shown = world.run("show")
            return shown if shown.returncode else self.go_on(world)

        self.tried(sampled(found, 5), killed, f"killed at writes of the journal, of {len(found)}")

    def test_connections_and_reboots(self):
        world = self.base.copy(self.work / "counted")
        before = len((world.nodes / "numbers").read_text())
        world.run(*self.words)
        calls = len((world.nodes / "numbers").read_text()) - before
        cases = [(before + number + 1, kind) for number in range(calls) for kind in (*CUTS, *REBOOTS)]

        def cut(world, point):
            world.fault("*", f"#{point[0]} {point[1]}")
            last = world.run(*self.words)
            if (world.nodes / "faults").read_text():
                return subprocess.CompletedProcess((), 1, "the fault did not occur")
            return last if last.returncode == 0 else self.go_on(world)

        self.tried(sampled(cases, 7), cut, f"cut off and rebooted at {calls} calls, of {len(cases)}")


del EtcdCase, Case
