# SPDX-License-Identifier: Apache-2.0
"""The end of a run: nodes that are done, the commands that are named; what a killed guard leaves behind."""
import os
import re
import shutil
import signal
import subprocess
import threading
import time

from kubernetes_fleet import FROM, START, TARGET
from kubernetes_case import Case

OF_A_RUN = re.compile(r"kmm-upgrade (retry|resume|skip|step|abort)|and retry|same command")


class Ends(Case):
    needs_tracing = False

    def hints(self, shown):
        return [line.split(None, 1)[1] for line in shown.splitlines() if line.startswith("hint ")]

    def test_no_hint_of_an_ended_run_needs_a_run(self):
        fleet = self.fleet
        fleet.behave("cp1", fail="kubeadm")
        shown = self.must(*START, exit_code=11)
        # The worker speaks of its own command; here another one repeats the step.
        self.assertIn("see whether this node reaches the registry, then kmm-upgrade retry cp1", self.hints(shown)[-1])
        self.must("abort")
        shown = self.must("show")
        self.assertRegex(shown, "(?m)^failed +cp1: images-failed")
        self.assertEqual(len(self.hints(shown)), 1, shown)
        self.assertIn("see whether this node reaches the registry", shown)
        self.assertNotRegex(shown + self.must("show", "-o", "json") + self.must("report", "--html", "-"), OF_A_RUN)
        # What is named works: the record goes, or the next run takes its place.
        fleet.behave("cp1")
        fleet.behave("w1", fail="systemctl")
        self.must(*START, exit_code=11)
        self.must("abort")
        shown = self.must("show")
        self.assertIn("journalctl -u kubelet -n 50 on the node; correct it\n", shown)
        self.assertNotRegex(shown, OF_A_RUN)
        self.must("delete")
        self.assertIn("kmm-upgrade resume goes on with a run under way; else: start with --ignore-checks",
                      self.must(*START, exit_code=10))
        fleet.behave("w1")
        self.must(*START, "--ignore-checks", "versions-uniform")
        self.require_complete()

    def require_hosts(self, first, others, status):
        """Targets of the first control plane and of the other hosts, and the status of all, in the seed's words."""
        rows = [line.split(" | ") for line in self.must("nodes", "--stx").splitlines() if line.startswith("| ")][1:]
        self.assertEqual([(row[1].strip(), row[3].strip(), row[-1].strip(" |")) for row in rows],
                         [("cp1", first, status), ("cp2", others, status), ("w1", others, status)])

    def test_a_rollback_that_fails_is_gone_on_with(self):
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-first-master", exit_code=11)
        # The node answers again after the question whether there is a way back.
        (fleet.nodes / "faults").write_text("cp1 facts unreachable\n")
        shown = self.must("abort", "--rollback", "all", exit_code=11)
        self.assertIn("kmm-upgrade abort --rollback none, then start again with", self.hints(shown)[-1])
        self.assertNotIn("kmm-upgrade retry", shown)
        self.require_hosts(FROM, FROM, "upgrade-aborting")
        self.must("abort", "--rollback", "none")
        self.require_hosts(TARGET, FROM, "None")
        ignored = "versions-uniform,kubernetes-version-cm"
        self.assertIn(f"else: start with --ignore-checks {ignored}\n", self.must(*START, exit_code=10))
        self.assertTrue(self.hints(self.must("show"))[-1].endswith(f": start again with --ignore-checks {ignored}"))
        self.must(*START, "--ignore-checks", ignored)
        self.require_complete()


class Addons(Case):
    needs_tracing = False

    def resumed_with(self, pods, image, older):
        """What a run shows in the end in which the first of these Pods has an older image."""
        self.must(*START, "--until", "upgraded-second-master", exit_code=11)
        pod = next((self.fleet.cluster / "pods/kube-system").glob(pods))
        pod.write_text(re.sub(rf"(/{image}:)[^\"\n]+", rf"\g<1>{older}", pod.read_text()))
        shown = self.must("resume")
        self.assertIn("upgrade-complete", shown)
        return shown

    def test_a_kube_proxy_that_was_not_upgraded_is_said(self):
        shown = self.resumed_with("kube-proxy*w1*", "kube-proxy", FROM)
        self.assertIn(f"kube-proxy is older than the control plane on w1 ({FROM}): ", shown)

    def test_a_coredns_that_was_not_upgraded_is_said(self):
        shown = self.resumed_with("coredns*", "coredns", "v1.9.3")
        self.assertRegex(shown, r"CoreDNS is older than v1\S+, which kubeadm of v\S+ deploys: coredns-\S* \(v1\.9\.3\): ")


class Done(Case):
    """Nodes that are done, and what becomes of them before the run is complete."""
    needs_tracing = False

    def ready(self, path, is_ready):
        """Of the Node or Pod in that file."""
        file = self.fleet.cluster / f"{path}.yaml"
        word, other = ("True", "False") if is_ready else ("False", "True")
        file.write_text(re.sub(rf'("?type"?: "?Ready"?,?\s+"?status"?: "){other}"', rf'\g<1>{word}"', file.read_text()))
        self.assertIn(f'status{"" if "nodes" in path else chr(34)}: "{word}"', file.read_text())

    def test_nodes_are_looked_at_again_before_the_run_is_complete(self):
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-kubelets", exit_code=11)
        node = fleet.cluster / "nodes/w1.yaml"
        node.write_text(node.read_text().replace(TARGET, FROM))
        self.ready("nodes/cp1", False)
        self.ready("pods/kube-system/kube-apiserver-cp2", False)
        shown = self.must("resume", exit_code=11)
        self.assertIn(f"its kubelet runs {FROM}, not {TARGET}, after it was done", shown)
        self.assertIn("Node cp1 is not Ready", shown)
        self.assertIn("kube-apiserver on cp2 is not Ready, after it was done", shown)
        self.assertEqual(self.run_states()[-2:], ["upgraded-kubelets", "upgrading-kubelets-failed"])
        node.write_text(node.read_text().replace(FROM, TARGET))
        self.ready("nodes/cp1", True)
        self.ready("pods/kube-system/kube-apiserver-cp2", True)
        self.must("resume")
        self.require_complete()
        self.assertEqual(self.run_states()[-3:], ["upgrading-kubelets", "upgraded-kubelets", "upgrade-complete"])

    def go_back(self, node):
        """The API server of that node, and kubeadm-config, are as before the upgrade."""
        fleet = self.fleet
        for file in (fleet.nodes / node / "etc/kubernetes/manifests/kube-apiserver.yaml",
                     fleet.cluster / "configmaps/kube-system/kubeadm-config.yaml"):
            file.write_text(file.read_text().replace(TARGET, FROM))
        fleet.follow(node)

    def test_a_control_plane_that_went_back_after_it_was_done(self):
        self.must(*START, "--until", "upgraded-kubelets", exit_code=11)
        self.go_back("cp2")
        shown = self.must("resume", exit_code=11)
        self.assertIn(f"ConfigMap kubeadm-config names {FROM}, not {TARGET}, after it was done", shown)
        self.assertIn(f"its control plane runs {FROM}, not {TARGET}, after it was done", shown)
        # What the hints name is enough; the kubelet of cp1 must not be newer than cp2.
        self.must("retry", "cp1", exit_code=11)
        self.must("retry", "cp2", exit_code=11)
        self.must("resume")
        self.require_complete()

    def test_a_control_plane_that_was_installed_again_says_how_its_backup_is_made(self):
        fleet = self.fleet
        self.must(*START, "--until", "upgraded-first-master", exit_code=11)
        shutil.rmtree(fleet.nodes / "cp2")
        subprocess.run(["cp", "-a", self._template.nodes / "cp2", fleet.nodes / "cp2"], check=True)  # with its sockets
        fleet.follow("cp2")
        shown = self.must("resume", exit_code=11)
        self.assertIn("cp2: worker-failed", shown)
        name = re.search(r"kmm-worker kubernetes backup --name (\S+) makes it", shown).group(1)
        self.assertEqual(fleet.ssh("cp2", "backup", "--name", name).returncode, 0)
        self.must("retry", "cp2")
        self.require_complete()

    def test_a_control_plane_that_went_back_before_its_kubelet(self):
        self.must(*START, "--until", "upgraded-second-master", exit_code=11)
        self.go_back("cp1")
        shown = self.must("resume")
        self.assertIn(f"its control plane runs {FROM}: it is brought to {TARGET} again", shown)
        self.require_complete()

    def test_a_node_that_is_away_for_a_moment_is_waited_for(self):
        self.must(*START, "--until", "upgraded-kubelets", exit_code=11)
        self.ready("nodes/w1", False)
        back = threading.Timer(2, self.ready, ("nodes/w1", True))
        back.start()
        self.addCleanup(back.join)
        self.must("resume")
        self.assertFalse(back.is_alive())
        self.require_complete()


class Emptied(Case):
    needs_tracing = False

    def test_a_node_uncordoned_by_someone_else_before_its_kubelet(self):
        """Pods may have come back since the node was drained: they leave again before its kubelet is replaced."""
        self.must(*START, "--until", "upgraded-second-master", exit_code=11)
        while not any(event.get("node") == "w1" and event.get("to") == "drained" for event in self.fleet.events()):
            self.must("step")
        node = self.fleet.cluster / "nodes/w1.yaml"
        self.assertIn("unschedulable: true", node.read_text())
        node.write_text(node.read_text().replace("unschedulable: true", "unschedulable: false"))
        shown = self.must("resume")
        self.assertIn("uncordoned by someone else since it was drained: cordoned and drained again", shown)
        self.require_complete()
        self.assertNotIn("unschedulable: true", node.read_text())


class Way(Case):
    """A way of two runs whose process was killed between them, in a cluster that others then bring to its target."""
    size = (1, 1)
    versions = (FROM, "v1.35.1", TARGET)
    needs_tracing = False

    def test_a_way_whose_target_runs_already_ends(self):
        fleet = self.fleet
        file = self.work / "versions.yaml"
        file.write_text(f"versions: [{{version: {FROM}}}, {{version: v1.35.1}}, "
                        f"{{version: {TARGET}, upgrade_from: [v1.35.1]}}]\n")
        start = (*START, "--versions", str(file))
        self.must(*start)
        # The record of the first run stands again, as if its process had been killed before the second one.
        first = next((fleet.state / "history").glob("*v1.35.1.ndjson"))
        (fleet.state / "upgrade.json").unlink(missing_ok=True)
        first.rename(fleet.state / "journal.ndjson")
        self.assertIn("kmm-upgrade resume", self.must("show"))
        config = fleet.cluster / "configmaps/kube-system/kubeadm-config.yaml"
        text = config.read_text()
        config.write_text(text.replace(TARGET, "v1.35.1"))
        self.assertIn("not-verified", self.must("resume", exit_code=17))
        config.write_text(text)
        self.assertIn(f"every control plane and kubelet runs {TARGET} already: the upgrade is complete",
                      self.must(*start))
        self.assertIn("v1.35.1", self.must("history"))
        guarded = subprocess.run([*fleet.command("guard"), "--", "true"], env=fleet.environment(), check=False)
        self.assertEqual(guarded.returncode, 0)
        self.assertIn("nothing to do", self.must(*start))


class Guard(Case):
    needs_tracing = False

    def run_guard(self, command):
        """A guard whose command has begun, and the pid of that command."""
        started = self.fleet.root / "started"
        guard = subprocess.Popen(
            self.guard_command(f"trap '' TERM; echo $$ > {started}.new; mv {started}.new {started}; {command}"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=self.fleet.environment())
        while not started.exists():
            self.assertIsNone(guard.poll())
            time.sleep(0.01)
        return guard, int(started.read_text())

    def guard_command(self, text):
        words = self.fleet.command("guard")
        return [*words, "--", "sh", "-c", text]

    def test_no_upgrade_starts_while_the_command_of_a_killed_guard_runs(self):
        fleet = self.fleet
        guard, command = self.run_guard("while :; do sleep 0.1; done")
        try:
            shown = self.must(*START, exit_code=75)
            self.assertIn("another kmm-upgrade is running: guard", shown)
            self.assertIn("the lock ends with the processes that hold it", shown)
            guard.send_signal(signal.SIGKILL)
            guard.wait()
            shown = self.must(*START, exit_code=75)
            self.assertIn("a process that kmm-upgrade guard has started is still running", shown)
            self.assertIn(f"fuser -v {fleet.state}/lock", shown)
            # By the lock of the directory cluster, with another record.
            elsewhere = [*fleet.command(*START), "--state-dir", str(fleet.root / "other")]
            done = subprocess.run(elsewhere, env=fleet.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 75, done.stderr)
            self.assertIn("cluster-locked", done.stderr)
            self.assertIn(f"fuser -v {fleet.cluster}/.kmm-lock", done.stderr)
        finally:
            os.kill(command, signal.SIGKILL)
        self.must(*START)
        self.require_complete()

    def test_what_the_command_leaves_running_holds_nothing(self):
        left = self.fleet.root / "left"
        done = subprocess.run(self.guard_command(f"sleep 600 & echo $! > {left}"), env=self.fleet.environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False)
        self.assertEqual(done.returncode, 0)
        try:
            self.must(*START)
        finally:
            os.kill(int(left.read_text()), signal.SIGKILL)
