# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade start kubernetes --via self: worker Pods in place of ssh, on an API server of fake_api.py whose kubelets
play the nodes of a kubeadm cluster; also killed, and with the API server away."""
import json
import pathlib

from kubernetes_fleet import COMPONENTS, FROM, START, TARGET
from test_kubernetes_attended import Frozen

IMAGE = "registry.example/kmm-worker@sha256:" + "0" * 64
REACH = f"--via self --worker-image {IMAGE}"
SELF = f"{REACH} --ignore-checks drain-unmanaged,other-orchestrators"
# The objects have no DaemonSet for the Pods of kube-proxy.
GO = " ".join(["kmm-upgrade", *START, "--no-freeze", "--force", SELF])
CHANGES = ("control-plane", "kubelet")


class Podded(Frozen):
    test_from_start_to_abort = test_lifted_by_a_person_it_stays_so = test_guard = test_an_old_server_is_advised = None
    test_changed_releases_are_reported = test_kubeadm_config_goes_back = test_without_effect = None

    def walked(self, script, *options, exit_code=0):
        """Runs `script`, in which GO is the start; what was printed."""
        log = ("--log", str(self.work / "requests"))
        return self.live(script.replace("GO", GO), "--kubelet", *log, *options, exit_code=exit_code)[2]

    def after(self, kind):
        items = json.loads((self.work / "after.json").read_text())["main"]
        return [item for item in items if item["kind"] == kind]

    def require_upgraded(self, shown):
        versions = {
            item["metadata"]["name"]: item["status"]["nodeInfo"]["kubeletVersion"] for item in self.after("Node")
        }
        self.assertEqual(versions, {"cp1": TARGET, "w1": TARGET}, shown)
        planes = {
            component: tag for component, tag in self.fleet.control_plane("cp1").items() if component in COMPONENTS
        }
        self.assertEqual(planes, {component: TARGET for component in COMPONENTS}, shown)
        self.assertEqual(len(self.fleet.applies()), 1)
        self.assertEqual(self.run_states()[-1], "upgrade-complete", shown)
        left = [
            item["metadata"]["name"]
            for item in self.after("Pod")
            if item["metadata"]["name"].startswith("kmm-upgrade-")
        ]
        self.assertEqual(left, [], shown)

    def changes(self):
        return [call[1:3] for call in self.fleet.calls() if call[0] == "begin" and call[2] in CHANGES]

    def test_the_whole_upgrade(self):
        self.require_upgraded(self.walked("GO"))
        self.assertEqual(self.changes(), [["cp1", "control-plane"], ["cp1", "kubelet"], ["w1", "kubelet"]])
        admitted = (pathlib.Path(__file__).parents[2] / "manifests/admission/worker-pods.yaml").read_text()
        for verb in {call[2] for call in self.fleet.calls() if call[0] == "begin"}:
            self.assertIn(f"'kubernetes-{verb}'", admitted)

    def test_a_server_that_hangs_keeps_nobody_from_the_record(self):
        listen = ('import socket, time; s = socket.create_server(("127.0.0.1", 0)); '
                  'open("port.new", "w").write(str(s.getsockname()[1])); time.sleep(3600)')
        shown = self.walked(
            f"GO --manual || test $? = 11\npython3 -c '{listen}' > /dev/null 2>&1 &\n"
            "until [ -s port.new ]; do sleep 0.1; done\n"
            'sed -i -E "s/(127.0.0.1:)[0-9]+/\\1$(cat port.new)/" "$KUBECONFIG"\n'
            "timeout 600 kmm-upgrade show; echo \"exit $?\"; kill $!")
        self.assertRegex(shown, r"note: the cluster could not be asked what runs: .*no answer from .*\n"
                                r"cluster .*\nstate +upgrade-started .*\n[\s\S]*exit 0\n")

    def test_questions_alone(self):
        shown = self.walked(f"kmm-upgrade check kubernetes {TARGET} --switch binaries {SELF} -o json")
        results = {each["id"]: each for each in json.loads(shown[shown.index("{"):])["checks"]}
        self.assertEqual(results["node-reach"]["outcome"], "OK", shown)
        self.assertEqual(self.fleet.log("cp1"), [])
        asked = len(self.fleet.calls())
        self.walked(f"kmm-upgrade health {SELF}")
        self.assertEqual(
            len([call for call in self.fleet.calls()[asked:] if call[0] == "begin" and call[2] == "facts"]), 2
        )
        requests = (self.work / "requests").read_text().splitlines()
        changing = [
            line for line in requests if line.split()[0] in ("PUT", "PATCH") or ("POST" in line and "/pods" not in line)
        ]
        self.assertEqual([line for line in changing if "selfsubject" not in line], [])

    def test_a_scan(self):
        self.assertEqual(self.walked(f"kmm-upgrade versions --scan {REACH} -o name").split(), [FROM, TARGET])
        self.assertEqual([self.fleet.log(node) for node in ("cp1", "w1")], [[], []])

    def test_a_question_that_was_left_behind_is_in_nobodys_way(self):
        """Its node starts no Pods when the check is killed, and is there again for the next one."""
        faults = self.fleet.nodes / "faults"
        faults.write_text("w1 * unreachable\n")
        check = f"kmm-upgrade check kubernetes {TARGET} --switch binaries {SELF} -o json"
        script = (
            f"{check} & echo $! > {self.work}/pid; wait $!; [ $? = 137 ] || exit 9; "
            f"rm {faults}; echo next; exec {check}"
        )
        shown = self.walked(script, "--kill", f"POST .*/pods,POST .*/pods:after:{self.work}/pid").split("next\n")[1]
        results = {each["id"]: each for each in json.loads(shown[shown.index("{"):])["checks"]}
        self.assertEqual(results["node-reach"]["outcome"], "OK", shown)

    def test_step_by_step(self):
        script = (
            "GO --manual; for i in $(seq 40); do kmm-upgrade step > /dev/null; c=$?; [ $c = 0 ] || [ $c = 11 ] || exit 9; "
            "kmm-upgrade show | grep -q upgrade-complete && exit 0; done; exit 9"
        )
        self.require_upgraded(self.walked(script))

    def test_a_failed_step_is_retried(self):
        behaviours = {"cp1": {"die_at": 3}, "w1": {"fail": "systemctl"}}
        for node, behaviour in behaviours.items():
            self.fleet.behave(node, **behaviour)
        script = "GO; [ $? = 11 ] || exit 9"
        for node in behaviours:
            script += (
                f"; kmm-upgrade show | grep -q '{node}: ' || exit 8; echo '{{}}' > {self.fleet.nodes}/{node}/fake/behaviour; "
                f"kmm-upgrade retry {node}; c=$?"
            )
        shown = self.walked(script + "; exit $c")
        # kubeadm upgrade apply ran twice: it was killed once, and the manifests were put back before the second time.
        self.assertIn("repaired: ", shown)
        self.assertEqual(len(self.fleet.applies()), 2)
        self.assertEqual(
            {node: self.fleet.kubelet(node) for node in ("cp1", "w1")}, {"cp1": TARGET, "w1": TARGET}, shown
        )

    def test_the_api_server_is_away_during_kubeadm(self):
        self.require_upgraded(self.walked("GO", "--away", "kubernetes-control-plane"))

    def test_an_image_that_cannot_be_pulled(self):
        shown = self.walked(GO.replace(IMAGE, IMAGE.replace("kmm-worker", "missing")), exit_code=10)
        self.assertIn("node-reach", shown)
        self.assertIn("not found", shown)
        self.assertEqual((self.fleet.log("cp1"), self.changes()), ([], []))

    def test_a_node_without_a_kubelet(self):
        self.walked("GO --node-timeout 5s --until upgraded-second-master", exit_code=11)
        (self.fleet.nodes / "faults").write_text("w1 * unreachable\n" * 200)
        shown = self.walked("kmm-upgrade resume", exit_code=11)
        self.assertIn("node-unreachable", shown)
        self.assertIn("was not started in time", shown)

    def test_killed_and_resumed(self):
        for number in (1, 4, 7, 10):
            path = ",".join(["POST .*/pods"] * number)  # so many worker Pods are made
            for when in ("before", "after"):
                with self.subTest(number=number, when=when):
                    self.setUp()
                    script = (
                        f"GO & echo $! > {self.work}/pid; wait $!; [ $? = 137 ] || exit 9; "
                        "[ -e $KMM_STATE_DIR/journal.ndjson ] && exec kmm-upgrade resume; GO"
                    )
                    self.require_upgraded(self.walked(script, "--kill", f"{path}:{when}:{self.work}/pid"))

    def test_what_cannot_be_asked_for(self):
        self.assertIn("--worker-image", self.walked(f"kmm-upgrade {' '.join(START)} --via self", exit_code=64))
        done = self.fleet.run(*START, "--via", "self", "--worker-image", IMAGE)
        self.assertEqual(done.returncode, 64)
        self.assertIn("needs an API server", done.stdout)


class Back(Podded):
    """The way back by Pods, from a patch of the same minor."""
    versions = ("v1.35.3", TARGET)
    test_the_whole_upgrade = test_questions_alone = test_a_scan = test_step_by_step = test_killed_and_resumed = None
    test_a_question_that_was_left_behind_is_in_nobodys_way = test_a_failed_step_is_retried = None
    test_the_api_server_is_away_during_kubeadm = test_an_image_that_cannot_be_pulled = None
    test_a_node_without_a_kubelet = test_what_cannot_be_asked_for = None

    def test_everything_goes_back(self):
        file = self.work / "versions.yaml"
        file.write_text(f"versions:\n- version: v1.35.3\n- version: {TARGET}\n")
        shown = self.walked(
            f"GO --versions {file} --until upgraded-first-master; [ $? = 11 ] || exit 9; kmm-upgrade abort --rollback all"
        )
        self.assertEqual(self.run_states()[-1], "upgrade-aborted", shown)
        self.assertEqual(self.fleet.control_plane("cp1")["kube-apiserver"], "v1.35.3")
        self.assertIn("restore", [call[2] for call in self.fleet.calls() if call[0] == "begin"])
        left = [
            item["metadata"]["name"]
            for item in self.after("Pod")
            if item["metadata"]["name"].startswith("kmm-upgrade-")
        ]
        self.assertEqual(left, [], shown)


if __name__ == "__main__":
    import unittest

    unittest.main()
