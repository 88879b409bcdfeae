# SPDX-License-Identifier: Apache-2.0
"""Pods that try the network after its manifests were applied, on an API server of fake_api.py; played_pods.py runs
them."""
import json
import re
import shutil

from kubernetes_fleet import HOW, START
from test_kubernetes_attended import Frozen

IMAGE = "registry.example/busybox:1.36"
# What a Node suffers from: NODE TROUBLE.
ANNOTATE = """import json, os, sys, urllib.request
server = json.load(open(os.environ["KUBECONFIG"]))["clusters"][0]["cluster"]["server"]
unready = [{"type": "Ready", "status": "False", "message": "cni plugin not initialized"}]
patch = {"metadata": {"annotations": {"test/network": sys.argv[2]}}}
patch = json.dumps({"status": {"conditions": unready}} if sys.argv[2] == "unready" else patch).encode()
kind = {"Content-Type": "application/merge-patch+json"}
request = urllib.request.Request(f"{server}/api/v1/nodes/{sys.argv[1]}", patch, kind, method="PATCH")
urllib.request.urlopen(request).read()
"""


class Canary(Frozen):
    test_from_start_to_abort = test_lifted_by_a_person_it_stays_so = test_guard = test_an_old_server_is_advised = None
    test_changed_releases_are_reported = test_kubeadm_config_goes_back = test_without_effect = None

    def setUp(self):
        super().setUp()
        manifests = self.work / "networking/v1.35.4"
        manifests.mkdir(parents=True)
        (manifests / "one.json").write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "cni", "namespace": "kube-system"},
                    "data": {"version": "${KUBERNETES_VERSION}"},
                }
            )
        )
        (self.work / "api").mkdir()
        services = [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "namespace": space},
                "spec": {"clusterIP": address},
            }
            for name, space, address in (
                ("kubernetes", "default", "10.96.0.1"),
                ("kube-dns", "kube-system", "10.96.0.10"),
            )
        ]
        (self.work / "api/services.json").write_text(json.dumps({"kind": "List", "items": services}))
        (self.work / "annotate.py").write_text(ANNOTATE)

    def walked(self, script, *options, exit_code=0, image=("--canary-image", IMAGE), until="upgraded-networking"):
        """Runs `script`, in which GO is the start; what was printed, and the Pods of the canary that nobody has
        deleted."""
        go = " ".join(
            [
                "kmm-upgrade",
                *START,
                "--via ssh --ignore-checks drain-unmanaged,other-orchestrators --no-freeze --networking",
                str(self.work / "networking"),
                "--networking-first",
                "--until",
                until,
                *image,
            ]
        )
        _, _, shown = self.live(
            script.replace("GO", go).replace("ANNOTATE", f"python3 {self.work}/annotate.py"),
            "--kubelet",
            "--log",
            str(self.work / "requests"),
            *options,
            exit_code=exit_code,
        )
        after = json.loads((self.work / "after.json").read_text())["main"]
        return shown, [
            item["metadata"]["name"]
            for item in after
            if item["kind"] == "Pod"
            and "kmm-upgrade-canary" in item["metadata"]["name"]
            and "deletionTimestamp" not in item["metadata"]
        ]

    def made(self):
        return [
            line
            for line in (self.work / "requests").read_text().splitlines()
            if line.startswith("POST") and line.split("?")[0].endswith("/pods")
        ]

    def messages(self):
        return [event.get("message", "") for event in self.fleet.events() if not event.get("node")]

    def test_pods_reach_each_other(self):
        shown, left = self.walked("GO", exit_code=11)
        self.assertEqual((self.run_states()[-1], left, len(self.made())), ("upgraded-networking", [], 4), shown)
        self.assertIn(
            "1 of 1 object changed, every rollout is complete; Pods on cp1 and w1 reach each other and DNS",
            self.messages(),
        )

    def test_rollouts_of_operators_are_waited_for(self):
        group = "operator.example"
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"networks.{group}"},
            "spec": {"group": group},
        }
        (self.work / "networking/v1.35.4/two.json").write_text(json.dumps(definition))
        owner = {"apiVersion": f"{group}/v1", "kind": "Network", "name": "default", "uid": "1"}
        agent = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": "net", "generation": 1, "ownerReferences": [owner]},
            "status": {"observedGeneration": 1, "desiredNumberScheduled": 0},
        }
        (self.work / "api/agent.json").write_text(json.dumps(agent))
        shown, _ = self.walked("GO", "--deny", "list:daemonsets", exit_code=77, image=())
        self.assertIn("manifests/rbac-kubernetes-operators", " ".join(shown.split()))
        written = [line for line in (self.work / "requests").read_text().splitlines() if not line.startswith("GET")]
        self.assertEqual([line for line in written if "/selfsubject" not in line], [])
        # Rights that are taken away before the step is reached are missed before anything is applied.
        shown, _ = self.walked("GO", exit_code=11, image=(), until="upgrade-started")
        (self.work / "requests").unlink()
        resume = "kmm-upgrade resume --until upgraded-networking"
        shown, _ = self.walked(resume, "--deny", "list:daemonsets", exit_code=77)
        self.assertIn("manifests/rbac-kubernetes-operators", " ".join(shown.split()))
        applied = [line for line in (self.work / "requests").read_text().splitlines() if line.startswith("PATCH")]
        self.assertEqual([line for line in applied if "/cni" in line or group in line], [])
        shown, _ = self.walked(resume, exit_code=11)
        self.assertIn("operators have nothing more to roll out: DaemonSet net/agent", "".join(self.messages()), shown)

    def test_without_an_image_nothing_is_tried_and_said_so(self):
        self.walked("GO", exit_code=11, image=())
        self.assertEqual(self.made(), [])
        self.assertTrue(
            [text for text in self.messages() if "were not tried: no --canary-image was given" in text], self.messages()
        )
        self.assertIn(
            "requires --networking DIR",
            self.must("start", "kubernetes", "v1.35.4", *HOW, "--canary-image", IMAGE, exit_code=64),
        )

    def test_a_node_that_nobody_reaches(self):
        shown, left = self.walked("ANNOTATE w1 cut; GO; echo exit $?; ANNOTATE w1 ''; kmm-upgrade retry", exit_code=11)
        self.assertIn("network-canary-failed", shown)
        self.assertRegex(
            shown,
            r"kmm-upgrade-canary-\w+-ask-0 on node cp1: no answer from the Pod on node w1 at 127\.77\.0\.\d+ port \d+: "
            r"nc: can't connect",
        )
        # Also for who looks later.
        self.assertRegex(
            " ".join(shown.split()), r"paused networking: network-canary-failed Pod .* hint look at the Pods"
        )
        self.assertIn("exit 11", shown)
        self.assertEqual((left, self.run_states()[-1]), ([], "upgraded-networking"))

    def test_a_dns_that_does_not_answer(self):
        shown, left = self.walked("ANNOTATE cp1 no-dns; GO", exit_code=11)
        self.assertIn(
            "DNS does not return 10.96.0.1 for kubernetes.default.svc.cluster.local.: ;; connection timed out", shown
        )
        self.assertEqual((left, self.run_states()[-1]), ([], "upgrading-networking-failed"))

    def test_an_image_that_cannot_be_pulled(self):
        shown, left = self.walked("ANNOTATE w1 no-pull; GO", exit_code=11)
        self.assertIn(f'ErrImagePull: failed to pull image "{IMAGE}"', shown)
        self.assertIn("load the image on these nodes", shown)
        self.assertEqual(left, [])

    def test_another_image_is_given_to_a_run_that_is_under_way(self):
        other = "mirror.example:5000/box:2"
        shown, left = self.walked(
            f"ANNOTATE w1 no-pull; GO; kmm-upgrade resume --canary-image {other}; kmm-upgrade retry; "
            "ANNOTATE w1 ''; kmm-upgrade resume", exit_code=11)
        self.assertIn("kmm-upgrade resume --canary-image IMAGE", " ".join(shown.split()))
        # It stays with the run.
        self.assertEqual(len(re.findall(rf'networking-failed .* failed to pull image "{other}"', shown)), 2, shown)
        self.assertEqual((left, self.run_states()[-1]), ([], "upgraded-networking"), shown)

    def test_an_image_for_a_run_that_tries_nothing(self):
        self.must(*START, "--until", "downloaded-images", exit_code=11)
        self.assertIn("--canary-image: this upgrade has no manifests of networking to try",
                      self.must("resume", "--canary-image", IMAGE, exit_code=64))

    def test_every_pod_is_reported(self):
        shown, left = self.walked(
            "ANNOTATE cp1 cut; ANNOTATE w1 no-dns; GO; ANNOTATE cp1 no-pull; ANNOTATE w1 full; kmm-upgrade resume",
            exit_code=11,
        )
        self.assertRegex(
            shown, r"-ask-1 on node w1: no answer from the Pod on node cp1 at \S+ port \d+: nc: .*; DNS does not"
        )
        self.assertRegex(
            shown,
            r"-listen-0 on node cp1: ImagePullBackOff: .*; Pod \S+-listen-1 on node w1: has ended: OutOfpods: "
            "Pod was rejected: Node didn't have enough resource: pods",
        )
        self.assertEqual(left, [])

    def test_a_pod_without_a_network(self):
        shown, left = self.walked("ANNOTATE w1 no-sandbox; GO --node-timeout 20s", exit_code=11)
        self.assertRegex(shown, r"note: waits: Pod \S+-listen-1 on node w1: ContainerCreating; \d\.\ds left")
        self.assertIn(
            "-listen-1 on node w1: ContainerCreating after the time limit (last event: FailedCreatePodSandBox: "
            'plugin type="bridge" failed (add): no such network)',
            shown,
        )
        self.assertEqual(left, [])

    def test_a_rollout_that_does_not_end(self):
        labels = {"matchLabels": {"app": "cni"}}
        template = {
            "metadata": {"labels": {"app": "cni"}},
            "spec": {"containers": [{"name": "cni", "image": "broken"}]},
        }
        (self.work / "networking/v1.35.4/two.json").write_text(json.dumps({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "cni", "namespace": "kube-system"},
            "spec": {"selector": labels, "template": template}}))
        shown, _ = self.walked("GO --node-timeout 20s", exit_code=11)
        self.assertRegex(
            shown, r"note: waits: DaemonSet kube-system/cni: 0 of 2 Pods are updated and available; \d\.\ds left"
        )
        self.assertIn("kubectl describe daemonsets -n kube-system cni; kubectl get pods -n kube-system -o wide",
                      " ".join(shown.split()))
        self.assertEqual(self.made(), [])

    def test_a_namespace_that_the_manifests_bring(self):
        """The server has none of it when it judges the others."""
        for name, document in (("a", {"apiVersion": "v1", "kind": "ConfigMap",
                                      "metadata": {"name": "a", "namespace": "cni-new"}}),
                               ("z", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cni-new"}})):
            (self.work / f"networking/v1.35.4/{name}.json").write_text(json.dumps(document))
        self.walked("GO", "--namespaces", exit_code=11, image=())
        self.assertTrue([text for text in self.messages() if text.startswith("3 of 3 objects changed")],
                        self.messages())

    def test_the_only_other_node_is_not_ready(self):
        shown, left = self.walked("GO --node-timeout 12s; ANNOTATE w1 unready; kmm-upgrade resume", exit_code=11,
                                  until="downloaded-images")
        self.assertIn("no second node is Ready: node w1: cni plugin not initialized after the time limit", shown)
        self.assertEqual((left, self.made()), ([], []))

    def test_a_node_that_is_left_out_gets_no_pod(self):
        shown, left = self.walked("ANNOTATE w1 unready; GO --leave-out w1", exit_code=11)
        self.assertIn("Pods on cp1", shown)
        self.assertEqual((left, self.run_states()[-1]), ([], "upgraded-networking"), shown)

    def test_pods_whose_kubelet_does_not_let_them_go(self):
        shown, _ = self.walked("ANNOTATE w1 stuck; GO", exit_code=11)
        self.assertEqual(self.run_states()[-1], "upgraded-networking", shown)
        after = json.loads((self.work / "after.json").read_text())["main"]
        self.assertFalse([item for item in after if "kmm-upgrade-canary" in item["metadata"]["name"]])

    def test_a_killed_process_leaves_pods_that_the_next_one_removes(self):
        for verb, state, points in (("resume", "upgraded-networking", (1, 4)), ("abort", "upgrade-aborted", (3,))):
            for point in points:
                with self.subTest(verb=verb, point=point):
                    posts = ",".join(["POST /main/api/v1/namespaces/kube-system/pods"] * point)
                    script = f"sh -c 'echo $$ > {self.work}/pid; exec GO'; echo exit $?; kmm-upgrade {verb}; true"
                    shown, left = self.walked(script, "--kill", f"{posts}:after:{self.work}/pid")
                    self.assertIn("exit 137", shown)
                    self.assertEqual((left, self.run_states()[-1]), ([], state), shown)
                    shutil.rmtree(self.fleet.state)

    def test_an_interrupted_process_removes_them(self):
        shown, left = self.walked(
            f"ANNOTATE w1 cut; GO & until [ $(grep -c 'POST.*/pods' {self.work}/requests) -ge 4 ]; do sleep 0.05; "
            f"done; "
            "kill -TERM $!; wait $!; echo exit $?"
        )
        self.assertIn("exit 143", shown)
        self.assertEqual((left, self.run_states()[-1]), ([], "upgrading-networking"), shown)
