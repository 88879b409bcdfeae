# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade start kubernetes on a kubeadm cluster of files: what it does, in which order, and where it stops."""
import json
import os
import shutil

from kubernetes_case import NEW, OLD, Case
from kubernetes_fleet import FROM, HOW, START, TARGET

STATES = ["downloading-images", "downloaded-images", "upgrading-first-master", "upgraded-first-master",
          "upgrading-second-master",
          "upgraded-second-master", "upgrading-kubelets", "upgraded-kubelets", "upgrade-complete"]


class Walked(Case):
    size = (3, 3)
    needs_tracing = False

    def test_undisturbed(self):
        fleet = self.fleet
        before = fleet.object("nodes/w1")
        copies = fleet.nodes / "cp1/etc/kubernetes/tmp"
        for month in ("01", "02"):
            copy = copies / f"kubeadm-backup-etcd-2025-{month}-01-00-00-00"
            copy.mkdir(parents=True)
            os.utime(copy, (0, 10 * int(month)))
        self.must(*START)
        # kubeadm keeps the data of etcd for ever: of what is older than the run the newest copy stays.
        self.assertEqual([copy.name for copy in copies.glob("kubeadm-backup-etcd*")],
                         ["kubeadm-backup-etcd-2025-02-01-00-00-00"])
        self.assertIn("; removed 1 old copy of kubeadm in /etc/kubernetes/tmp", self.must("history", "current"))
        self.require_complete()
        self.assertEqual([state for state in self.run_states() if state in STATES], STATES)
        calls = [call[1:3] for call in fleet.calls() if call[0] == "begin"
                 and call[2] not in ("facts", "backup", "images")]
        self.assertEqual(calls, [[node, "control-plane"] for node in ("cp1", "cp2", "cp3")] + [
            [node, verb] for node in fleet.names() for verb in ("kubelet", "prune")])
        self.assertEqual([line for line in fleet.log("cp1") if "upgrade" in line],
                         [f"kubeadm upgrade apply {TARGET} --yes"])
        for node in fleet.names()[1:]:
            self.assertEqual([line for line in fleet.log(node) if "upgrade" in line], ["kubeadm upgrade node"])
        # Nothing else is left of it in the cluster.
        self.assertEqual(fleet.object("nodes/w1"), before.replace(FROM, TARGET))
        for verb in (("show",), ("nodes",), ("history",), ("history", "current"),
                     ("report", "--html", str(fleet.root / "r.html"))):
            self.assertIn(TARGET, self.must(*verb) if verb[0] != "report" else (self.must(*verb),
                                                                                (fleet.root / "r.html").read_text())[1])
        self.assertIn("upgrade-complete", self.must("show"))
        self.must("delete")

    def test_every_stage_fails_and_is_retried(self):
        fleet = self.fleet
        stops = [("downloading-images", "cp2", {"fail": "kubeadm"}),
                 ("upgrading-first-master", "cp1", {"preflight": ["CreateJob"]}),
                 ("upgrading-second-master", "cp3", {"preflight": ["ControlPlaneNodesReady"]}),
                 ("upgrading-kubelets", "w2", {"fail": "systemctl"})]
        words = START
        for state, node, fault in stops:
            with self.subTest(state=state):
                fleet.behave(node, **fault)
                shown = self.must(*words, exit_code=11)
                self.assertIn(node, shown)
                self.assertEqual(self.run_states()[-1], f"{state}-failed", shown)
                self.assertIn(f"{state}-failed", self.must("show"))
                framed = self.must("show", "--stx")
                self.assertRegex(framed, r"\| state +\| upgrade-failed +\|\n"
                                         rf"\| failed_step +\| {state} +\|\n\| created_at ")
                self.assertEqual("--ignore-preflight-errors NAMES" in shown, "preflight" in fault, shown)
                # Nothing has been repaired: it stops at the same place.
                self.must("retry", node, exit_code=11)
                fleet.behave(node)
                words = ("retry", node)
        self.must(*words)
        self.require_complete()
        self.assertEqual([state for state in self.run_states() if state in STATES and not state.endswith("ing")
                          and state != "upgrading-images"][-1],
                         "upgrade-complete")

    def test_a_kubelet_that_fails_says_what_to_do(self):
        self.fleet.behave("w1", fail="systemctl")
        self.must(*START, exit_code=11)
        self.assertIn("journalctl -u kubelet -n 50 on the node; correct it, then kmm-upgrade retry w1",
                      self.must("show"))
        self.fleet.behave("w1")
        self.must("retry", "w1")
        self.require_complete()

    def test_kubeadm_is_told_to_go_on(self):
        fleet = self.fleet
        for node in ("cp1", "cp3"):
            fleet.behave(node, preflight=["CreateJob"])
        shown = self.must(*START, exit_code=11)
        # What only takes long is tried once more by itself.
        self.assertIn("did not end in time: kubeadm is run once more", shown)
        self.assertEqual(sum("upgrade apply" in line for line in fleet.log("cp1")), 2)
        self.must("retry", "cp1", "--ignore-preflight-errors", "CreateJob")
        self.require_complete()
        for node in ("cp1", "cp3"):
            self.assertIn("--ignore-preflight-errors=CreateJob", " ".join(fleet.log(node)))

    def refused(self, exit_code, *codes, words=START):
        before = {path: path.read_bytes() for path in self.fleet.cluster.rglob("*.yaml") if "leases" not in path.parts}
        shown = self.must(*words, exit_code=exit_code)
        for code in codes:
            self.assertIn(code, shown)
        self.assertEqual(before, {path: path.read_bytes() for path in self.fleet.cluster.rglob("*.yaml")
                                  if "leases" not in path.parts})
        self.assertFalse((self.fleet.state / "journal.ndjson").exists())
        self.assertEqual([self.fleet.log(node) for node in self.fleet.names()], [[]] * len(self.fleet.names()))

    def test_checks_come_first(self):
        fleet = self.fleet
        node = fleet.cluster / "nodes/w3.yaml"
        text = node.read_text()
        node.write_text(text.replace('type: Ready\n      status: "True"', 'type: Ready\n      status: "False"'))
        (fleet.nodes / "cp3/etc/kubernetes/manifests/etcd.yaml").unlink()
        fleet.follow("cp3")
        fleet.fault("w2", "* unreachable")
        self.refused(10, "nodes-ready", "w3", "manifests-present", "cp3", "node-reach", "w2", "No route to host")
        fleet.fault("w2", "* unreachable")
        shown = self.must("health", "--via", "ssh", exit_code=17)
        self.assertRegex(shown, r"node-reach \[FAIL\] .*w2.*No route to host")

    def test_what_cannot_be_asked_for(self):
        self.refused(10, "v1.36.9", words=("start", "kubernetes", "v1.36.9", *HOW))
        self.refused(64, "bad-version", words=("start", "kubernetes", "latest", *HOW))
        self.refused(64, "--switch", words=("start", "kubernetes", TARGET))
        self.refused(64, "--until", words=(*START, "--until", "upgrading-kubelets"))


class Steered(Case):
    """What a person does with a run."""
    needs_tracing = False

    def test_it_stops_where_it_is_told(self):
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-first-master", exit_code=11)
        self.assertEqual((fleet.control_plane("cp1"), fleet.control_plane("cp2")), (NEW, OLD))
        self.assertEqual(fleet.states(), {FROM: "partial", TARGET: "partial"})
        hosts = self.must("nodes", "--stx")
        self.assertRegex(hosts, r"\| id \| hostname \| personality \| target_version \| control_plane_version \| "
                                r"kubelet_version \| status \|\n")
        for row in (f"1 cp1 controller {TARGET} {TARGET} {FROM} None", f"2 cp2 controller {FROM} {FROM} {FROM} None",
                    f"3 w1 worker {FROM} N/A {FROM} None"):
            self.assertRegex(hosts, r"\| " + r" +\| ".join(row.split()) + r" +\|\n")
        self.assertRegex(self.must("versions"), rf"{FROM} +False +partial\n(v.*\n)*{TARGET} +True +partial\n")
        self.must("resume")
        self.require_complete()
        told = self.must("versions")
        self.assertRegex(told, rf"{TARGET} +True +active\n")
        self.assertNotIn("the record says", told)
        node = fleet.cluster / "nodes/w1.yaml"
        node.write_text(node.read_text().replace(TARGET, FROM))
        differs = f"kubelet of w1: {FROM} runs, the record says {TARGET}"
        for verb in ("versions", "show", "nodes"):
            self.assertIn(differs, self.must(verb))
        for verb in ("show", "nodes"):
            self.assertEqual(json.loads(self.must(verb, "-o", "json"))["differences"],
                             [{"node": "w1", "part": "kubelet", "recorded": TARGET, "runs": FROM}])
        fleet.cluster.rename(fleet.cluster.with_name("away"))
        self.assertRegex(self.must("show"), r"note: the cluster could not be asked what runs: .*\n")
        self.assertIn("cluster", json.loads(self.must("nodes", "-o", "json"))["clusterProblem"])
        fleet.cluster.with_name("away").rename(fleet.cluster)

    def test_step_by_step(self):
        self.must(*START, "--manual", exit_code=11)
        seen = []
        for _ in range(60):
            done = self.fleet.run("step")
            self.assertIn(done.returncode, (0, 11), done.stdout)
            seen += self.run_states()[-1:]
            if seen[-1] == "upgrade-complete":
                break
        # A stage is done when the next step begins.
        self.assertEqual(list(dict.fromkeys(seen)), ["downloading-images", "upgrading-first-master",
                                                     "upgrading-second-master", "upgrading-kubelets",
                                                     "upgrade-complete"])
        self.assertEqual([state for state in self.run_states() if state in STATES], STATES)
        self.require_complete()

    def test_older_data_of_etcd_needs_a_snapshot(self):
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-first-master", exit_code=11)
        before = self.run_states()
        shown = self.must("abort", "--rollback", "all", exit_code=10)
        self.assertIn("etcd-differs", shown)
        self.assertIn("cp1 runs etcd", shown)
        self.assertIn("and there is no snapshot: kmm-upgrade resume", shown)
        self.assertNotIn("--restore-etcd", shown)
        # As if nobody had asked: the way on is open.
        self.assertEqual((fleet.control_plane("cp1"), self.run_states()), (NEW, before))
        self.must("resume")
        self.require_complete()

    def test_a_way_back_that_could_not_be_asked_for_changes_nothing(self):
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-first-master", exit_code=11)
        # The node does not answer when it is asked whether there is a way back, and does afterwards.
        (fleet.nodes / "faults").write_text("cp1 facts unreachable\n")
        self.assertIn("etcd-differs", self.must("abort", "--rollback", "all", exit_code=11))
        self.assertEqual((fleet.control_plane("cp1"), fleet.kubelet("cp1"), self.run_states()[-1]),
                         (NEW, FROM, "upgrade-aborting-failed"))

    def test_a_worker_that_cannot_be_reached(self):
        fleet = self.fleet
        self.must(*START, "--node-timeout", "2s", "--until", "upgraded-second-master", exit_code=11)
        (fleet.nodes / "faults").write_text("w1 facts unreachable\n" * 100)
        shown = self.must("resume", exit_code=11)
        self.assertIn("node-unreachable", shown)
        self.assertIn("No route to host", shown)
        self.assertEqual(fleet.kubelet("cp2"), TARGET)
        (fleet.nodes / "faults").unlink()
        self.must("skip", "w1", "--reason", "broken")
        self.assertNotIn("once it can take part", self.must("show"))
        self.must("resume", exit_code=12)
        self.assertIn(f"once it can take part: kmm-upgrade start kubernetes --cluster {fleet.cluster} {TARGET} "
                      "--switch binaries --no-etcd-snapshot --ignore-checks versions-uniform\n", self.must("show"))
        self.assertEqual((fleet.kubelet("w1"), self.run_states()[-1]), (FROM, "upgrade-complete"))
        self.assertNotIn("unschedulable: true", fleet.object("nodes/w1"))
        # Started again it is about what is left, which a person has to know of.
        self.must("delete")
        self.assertIn("versions-uniform", self.must(*START, exit_code=10))
        self.must(*START, "--ignore-checks", "versions-uniform")
        self.require_complete()

    def test_options_of_kubeadm_go_along_to_every_node(self):
        fleet, directory = self.fleet, "/etc/kubernetes/patches"
        for node in fleet.names():
            (fleet.nodes / node / directory[1:]).mkdir(parents=True)
        # kubeadm upgrade node refuses phases that only upgrade apply has.
        self.must(*START, "--patches", directory, "--skip-phases", "bootstrap-token,addon,kubelet-config")
        self.require_complete()
        self.assertIn(f"kubeadm upgrade apply {TARGET} --yes --skip-phases=bootstrap-token,addon,kubelet-config "
                      f"--patches={directory}", fleet.log("cp1"))
        for node, phases in (("cp2", "addon,kubelet-config"), ("w1", "kubelet-config")):
            self.assertIn(f"kubeadm upgrade node --skip-phases={phases} --patches={directory}", fleet.log(node))

    def test_a_worker_without_patches(self):
        fleet, directory = self.fleet, "/etc/kubernetes/patches"
        for node in ("cp1", "cp2"):
            (fleet.nodes / node / directory[1:]).mkdir(parents=True)
        self.assertIn(f"no-patches: {directory} is not on this node", self.must(*START, "--patches", directory))
        self.assertIn("kubeadm upgrade node", fleet.log("w1"))

    def test_a_worker_that_has_left(self):
        self.must(*START, "--until", "upgraded-second-master", exit_code=11)
        (self.fleet.cluster / "nodes/w1.yaml").unlink()
        shutil.move(self.fleet.nodes / "w1", self.work / "gone")
        self.must("resume", exit_code=12)
        self.require_complete()

    def test_a_node_that_lies(self):
        fleet = self.fleet.copy(self.work / "other")
        fleet.behave("cp2", lie=True)
        done = fleet.start()
        self.assertEqual(done.returncode, 11, done.stdout)
        self.assertIn("images-missing", done.stdout)
        fleet = self.fleet
        self.must(*START, "--until", "downloaded-images", exit_code=11)
        fleet.behave("cp1", lie=True)
        self.assertIn("not-upgraded", self.must("resume", exit_code=11))
        self.assertEqual(fleet.control_plane("cp1"), OLD)
        fleet.behave("cp1")
        fleet.behave("w1", stale=True)
        self.assertIn("kubelet-not-switched", self.must("retry", "cp1", exit_code=11))
        fleet.behave("w1")
        self.must("retry", "w1")
        self.require_complete()

    def test_nothing_to_do(self):
        self.must(*START)
        self.must("delete")
        log = [self.fleet.log(node) for node in self.fleet.names()]
        self.assertIn("nothing to do", self.must(*START))
        self.assertEqual(log, [self.fleet.log(node) for node in self.fleet.names()])


class Patched(Case):
    """From patch to patch of a minor, where etcd stays: there and back."""
    needs_tracing = False
    versions = ("v1.35.3", TARGET)

    def setUp(self):
        super().setUp()
        file = self.work / "versions.yaml"
        file.write_text("versions:\n- {version: v1.35.3}\n- {version: v1.35.4, downgrade_to: []}\n".replace("[]",
            "[v1.35.3]"))
        self.options = (*HOW, "--versions", str(file))

    def test_back_after_the_first_control_plane(self):
        fleet = self.fleet
        before = fleet.outcome()["objects"]
        self.must("start", "kubernetes", TARGET, *self.options, "--until", "upgraded-first-master", exit_code=11)
        self.assertEqual((fleet.control_plane("cp1")["kube-apiserver"], fleet.control_plane("cp2")["kube-apiserver"]),
                         (TARGET, "v1.35.3"))
        self.must("abort", "--rollback", "all")
        self.assertEqual(self.run_states()[-1], "upgrade-aborted")
        changed = {path for path, text in fleet.outcome()["objects"].items() if text != before[path]}
        # kubeadm itself was put there.
        self.assertEqual(changed, {"cp1/usr/bin/kubeadm", "cp2/usr/bin/kubeadm"})
        self.assertIn("kubeadm-config names v1.35.3 again", self.must("show", "-o", "json"))

    def test_back_where_kubeadm_was_killed_between_two_manifests(self):
        for renames in (2, 3, 4):
            with self.subTest(renames=renames):
                fleet = self.fleet = self._template.copy(self.work / f"killed-{renames}")
                before = fleet.control_plane("cp1")
                fleet.behave("cp1", die_at=renames)
                self.must("start", "kubernetes", TARGET, *self.options, exit_code=11)
                fleet.behave("cp1")
                self.assertEqual(fleet.control_plane("cp1")["kube-apiserver"], TARGET)
                shown = self.must("abort", "--rollback", "all")
                self.assertEqual(fleet.control_plane("cp1"), before, shown)

    def test_back_where_a_kubelet_was_installed_and_not_restarted(self):
        fleet = self.fleet
        fleet.behave("w1", fail="systemctl")
        self.must("start", "kubernetes", TARGET, *self.options, exit_code=11)
        kubelet = fleet.nodes / "w1/usr/bin/kubelet"
        self.assertEqual((fleet.kubelet("w1"), TARGET in kubelet.read_text()), ("v1.35.3", True))
        fleet.behave("w1")
        shown = self.must("abort", "--rollback", "current")
        self.assertNotIn(TARGET, kubelet.read_text())
        self.assertIn("kubelet v1.35.3 is running", shown)

    def test_checks_of_kubeadm_are_passed_over_on_the_way_back_too(self):
        fleet = self.fleet
        fleet.behave("w1", preflight=["SystemVerification"])
        shown = self.must("start", "kubernetes", TARGET, *self.options, "--until", "upgraded-kubelets", exit_code=11)
        self.assertIn("kubeadm refused to upgrade: SystemVerification", shown)
        self.assertIn("kmm-upgrade retry w1 --ignore-preflight-errors NAMES", shown)
        self.must("retry", "w1", "--ignore-preflight-errors", "SystemVerification", exit_code=11)
        self.assertEqual(fleet.kubelet("w1"), TARGET)
        self.must("abort", "--rollback", "all")
        self.assertEqual((fleet.kubelet("w1"), self.run_states()[-1]), ("v1.35.3", "upgrade-aborted"))

    def test_workers_go_back_before_control_planes(self):
        fleet = self.fleet
        # In whatever order they were begun.
        self.must("start", "kubernetes", TARGET, *self.options, "--manual", exit_code=11)
        self.must("step", "--node", "w1")
        self.must("resume", "--until", "upgraded-kubelets", exit_code=11)
        begun = len(fleet.events())
        # The old kubelet was started with the configuration of the newer one.
        self.assertIn("its kubelet reads its restored files when it is restarted: systemctl restart kubelet",
                      self.must("abort", "--rollback", "all"))
        self.assertEqual([event["node"] for event in fleet.events()[begun:] if event.get("to") == "rolled-back"],
                         ["w1", "cp2", "cp1"])

    def test_a_worker_that_has_left_keeps_nobody_from_going_back(self):
        fleet = self.fleet
        self.must("start", "kubernetes", TARGET, *self.options, "--until", "upgraded-kubelets", exit_code=11)
        (fleet.cluster / "nodes/w1.yaml").unlink()
        shutil.move(fleet.nodes / "w1", self.work / "gone")
        self.assertIn("there is no Node w1 and no answer from it: it stays as it is",
                      self.must("abort", "--rollback", "all"))
        self.assertEqual({(fleet.kubelet(node), fleet.control_plane(node)["kube-apiserver"]) for node in
                          ("cp1", "cp2")}, {("v1.35.3", "v1.35.3")})

    def test_back_while_kubeadm_is_still_at_work(self):
        fleet = self.fleet
        before = fleet.control_plane("cp1")
        fleet.behave("cp1", hold=True)
        self.must("start", "kubernetes", TARGET, *self.options, "--node-timeout", "3s", exit_code=11)
        self.assertIn("kubeadm upgrade apply v1.35.4 --yes", fleet.log("cp1"))
        shown = self.must("abort", "--rollback", "current", exit_code=124)
        self.assertIn("the job control-plane v1.35.4 first is still under way there after the time limit", shown)
        self.assertEqual(self.run_states()[-1], "upgrading-first-master-failed")
        (fleet.nodes / "cp1/fake/go").write_text("")
        shown = self.must("abort", "--rollback", "current")
        self.assertEqual(fleet.control_plane("cp1"), before, shown)
        self.assertIn("restored from backup", shown)

    def test_an_abort_that_stops_here_says_what_goes_on_there(self):
        self.fleet.behave("cp1", hold=True)
        self.must("start", "kubernetes", TARGET, *self.options, "--node-timeout", "3s", exit_code=11)
        shown = self.must("abort")
        (self.fleet.nodes / "cp1/fake/go").write_text("")
        self.assertIn("the job control-plane v1.35.4 first is still under way there, and goes on", shown)

    def test_a_kubelet_that_runs_until_its_next_restart_only(self):
        fleet = self.fleet
        kubelet = fleet.nodes / "w1/usr/bin/kubelet"
        old = kubelet.read_text()
        fleet.ssh("w1", "kubelet", "--target", TARGET, "--switch", "binaries")
        kubelet.write_text(old)
        self.assertEqual(fleet.kubelet("w1"), TARGET)
        shown = self.must("start", "kubernetes", TARGET, *self.options, "--ignore-checks", "versions-uniform",
                          exit_code=11)
        self.assertIn("w1: the kubelet after its next restart runs v1.35.3, not v1.35.4", shown)
        self.must("retry", "w1")
        self.assertIn(TARGET, kubelet.read_text())
        self.require_complete()

    def test_a_downgrade_begins_with_kubelets(self):
        fleet = self.fleet
        self.must("start", "kubernetes", TARGET, *self.options)
        self.must("delete")
        already = len(fleet.calls())
        self.must("start", "kubernetes", "v1.35.3", *self.options)
        calls = [call[1:3] for call in fleet.calls()[already:] if call[0] == "begin"
                 and call[2] in ("control-plane", "kubelet")]
        self.assertEqual(calls, [["cp1", "kubelet"], ["cp2", "kubelet"], ["w1", "kubelet"], ["cp1", "control-plane"],
                                 ["cp2", "control-plane"]])
        self.assertEqual(({fleet.kubelet(node) for node in fleet.names()}, fleet.configured()),
                         ({"v1.35.3"}, "v1.35.3"))
        self.assertEqual({fleet.control_plane(node)["kube-apiserver"] for node in ("cp1", "cp2")}, {"v1.35.3"})
        # The last run was of control planes alone: their kubelets were there before it.
        self.assertRegex(self.must("nodes", "--stx"), r"\| cp1 +\| controller +\| v1.35.3 +\| v1.35.3 +\| v1.35.3 +\|")


class External(Case):
    """With an etcd of its own elsewhere, control planes of another minor may go back."""
    needs_tracing = False

    def setUp(self):
        super().setUp()
        fleet = self.fleet
        for node in ("cp1", "cp2"):
            manifests = fleet.nodes / node / "etc/kubernetes/manifests"
            (manifests / "etcd.yaml").unlink()
            server = manifests / "kube-apiserver.yaml"
            server.write_text(server.read_text().replace("127.0.0.1:2379", "etcd.example:2379"))
            fleet.follow(node)
        configuration = fleet.cluster / "configmaps/kube-system/kubeadm-config.yaml"
        configuration.write_text(configuration.read_text().replace(
            "      local:\n        dataDir: /var/lib/etcd", "      external:\n        endpoints: [https://etcd.example:2379]"))

    def test_no_api_server_goes_back_below_a_kubelet_that_stays(self):
        fleet = self.fleet
        fleet.behave("cp2", fail="systemctl")
        self.must(*START, exit_code=11)
        self.assertEqual((fleet.kubelet("cp1"), fleet.kubelet("cp2")), (TARGET, FROM))
        fleet.behave("cp2")
        shown = self.must("abort", "--rollback", "current", exit_code=10)
        self.assertIn(f"kubelets {TARGET} of nodes that are done would be newer than API servers that go back: cp1; "
                      "cp2", shown)
        self.assertEqual(fleet.control_plane("cp2")["kube-apiserver"], TARGET)
        self.must("abort", "--rollback", "all")
        self.assertEqual({(fleet.kubelet(node), fleet.control_plane(node)["kube-apiserver"]) for node in
                          ("cp1", "cp2")}, {(FROM, FROM)})
        self.assertEqual((fleet.kubelet("w1"), fleet.configured()), (FROM, FROM))

    def test_images_are_those_that_kubeadm_config_names(self):
        configuration = self.fleet.cluster / "configmaps/kube-system/kubeadm-config.yaml"
        configuration.write_text(configuration.read_text().replace(
            "    kubernetesVersion:", "    imageRepository: mirror.example/k8s\n    dns:\n      imageRepository: "
            "mirror.example/dns\n    kubernetesVersion:"))
        self.must(*START, "--until", "downloaded-images", exit_code=11)
        images = (self.fleet.nodes / "cp1/fake/images").read_text()
        self.assertIn(f"mirror.example/k8s/kube-apiserver:{TARGET}\n", images)
        self.assertIn("mirror.example/dns/coredns:", images)
        self.assertNotIn("etcd", images)

    def test_every_kubelet_goes_back_before_any_api_server(self):
        """Through a load balancer the kubelet of one control plane talks to the API server of another one."""
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-kubelets", exit_code=11)
        already = len(fleet.calls())
        self.must("abort", "--rollback", "all")
        calls = [call[1:3] for call in fleet.calls()[already:] if call[0] == "begin"
                 and call[2] in ("kubelet", "restore")]
        self.assertEqual(calls, [["w1", "kubelet"], ["cp2", "kubelet"], ["cp1", "kubelet"], ["cp2", "restore"],
                                 ["cp1", "restore"]])
