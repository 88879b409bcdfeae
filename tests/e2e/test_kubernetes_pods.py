# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade start kubernetes --via self: worker Pods in place of ssh, on an API server of fake_api.py whose kubelets
play the nodes of a kubeadm cluster; also killed, and with the API server away."""
import json

from kubernetes_fleet import COMPONENTS, FROM, START, TARGET
from test_kubernetes_attended import Frozen

IMAGE = "registry.example/kmm-worker@sha256:" + "0" * 64
SELF = f"--via self --worker-image {IMAGE} --ignore-checks drain-unmanaged,other-orchestrators"
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
        versions = {item["metadata"]["name"]: item["status"]["nodeInfo"]["kubeletVersion"] for item in self.after("Node")}
        self.assertEqual(versions, {"cp1": TARGET, "w1": TARGET}, shown)
        planes = {component: tag for component, tag in self.fleet.control_plane("cp1").items() if component in COMPONENTS}
        self.assertEqual(planes, {component: TARGET for component in COMPONENTS}, shown)
        self.assertEqual(len(self.fleet.applies()), 1)
        self.assertEqual(self.run_states()[-1], "upgrade-complete", shown)
        left = [item["metadata"]["name"] for item in self.after("Pod") if item["metadata"]["name"].startswith("kmm-upgrade-")]
        self.assertEqual(left, [], shown)

    def changes(self):
        return [call[1:3] for call in self.fleet.calls() if call[0] == "begin" and call[2] in CHANGES]

    def test_the_whole_upgrade(self):
        self.require_upgraded(self.walked("GO"))
        self.assertEqual(self.changes(), [["cp1", "control-plane"], ["cp1", "kubelet"], ["w1", "kubelet"]])

    def test_questions_alone(self):
        shown = self.walked(f"kmm-upgrade check kubernetes {TARGET} --switch binaries {SELF} -o json")
        results = {each["id"]: each for each in json.loads(shown[shown.index("{"):])["checks"]}
        self.assertEqual(results["node-reach"]["outcome"], "OK", shown)
        self.assertEqual(self.fleet.log("cp1"), [])
        asked = len(self.fleet.calls())
        self.walked(f"kmm-upgrade health {SELF}")
        self.assertEqual(len([call for call in self.fleet.calls()[asked:] if call[0] == "begin" and call[2] == "facts"]), 2)
        requests = (self.work / "requests").read_text().splitlines()
        changing = [line for line in requests if line.split()[0] in ("PUT", "PATCH") or ("POST" in line and "/pods" not in line)]
        self.assertEqual([line for line in changing if "selfsubject" not in line], [])

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


if __name__ == "__main__":
    import unittest

    unittest.main()
