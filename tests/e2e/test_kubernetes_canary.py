# SPDX-License-Identifier: Apache-2.0
"""Pods that try the network after its manifests were applied, on an API server of fake_api.py; played_pods.py runs
them."""
import json
import shutil

from kubernetes_fleet import HOW, START
from test_kubernetes_attended import Frozen

IMAGE = "registry.example/busybox:1.36"
# What a Node suffers from: NODE TROUBLE.
ANNOTATE = """import json, os, sys, urllib.request
server = json.load(open(os.environ["KUBECONFIG"]))["clusters"][0]["cluster"]["server"]
patch = json.dumps({"metadata": {"annotations": {"test/network": sys.argv[2]}}}).encode()
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
        return shown, [item["metadata"]["name"] for item in after if "kmm-upgrade-canary" in item["metadata"]["name"]
                       and "deletionTimestamp" not in item["metadata"]]

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
            "1 of 1 objects changed, every rollout is complete; Pods on cp1 and w1 reach each other and DNS",
            self.messages(),
        )

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
            r"kmm-upgrade-canary-\w+-ask-0 on node cp1: no answer of the Pod at 127\.77\.0\.\d+: nc: can\'t connect",
        )
        self.assertIn("exit 11", shown)
        self.assertEqual((left, self.run_states()[-1]), ([], "upgraded-networking"))

    def test_a_dns_that_does_not_answer(self):
        shown, left = self.walked("ANNOTATE cp1 no-dns; GO", exit_code=11)
        self.assertIn(
            "DNS does not say 10.96.0.1 for kubernetes.default.svc.cluster.local.: ;; connection timed out", shown
        )
        self.assertEqual((left, self.run_states()[-1]), ([], "upgrading-networking-failed"))

    def test_an_image_that_cannot_be_pulled(self):
        shown, left = self.walked("ANNOTATE w1 no-pull; GO", exit_code=11)
        self.assertIn(f'ErrImagePull: failed to pull image "{IMAGE}"', shown)
        self.assertEqual(left, [])

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
