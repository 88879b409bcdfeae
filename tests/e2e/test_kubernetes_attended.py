# SPDX-License-Identifier: Apache-2.0
"""What stands around the steps of start kubernetes: hooks, patches, the freeze of applications, guard."""
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

from kubernetes_fleet import COMPONENTS, FROM, HOW, START, TARGET
from kubernetes_case import Case

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
sys.path.insert(0, str(SUPPORT))
import forge_record  # noqa: E402
LOG = '#!/bin/sh\necho "${0##*/} $STATE ${NODE:--} $FROM $TO ${#UUID}" >> "${0%/*}/.log"\n'

# Puts a release of Helm into the cluster: NAME REVISION.
CHANGE = """import json, os, sys, urllib.request
server = json.load(open(os.environ["KUBECONFIG"]))["clusters"][0]["cluster"]["server"]
name, revision = sys.argv[1:]
secret = {"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
          "metadata": {"name": f"sh.helm.release.v1.{name}.v{revision}", "namespace": "prod", "labels": {"owner": "helm", "name": name, "status": "deployed", "version": revision}}}
urllib.request.urlopen(urllib.request.Request(f"{server}/api/v1/namespaces/prod/secrets", json.dumps(secret).encode(), method="POST")).read()
"""


# What kubeadm upgrade apply does to kubeadm-config.
CONFIGURE = """import json, os, sys, urllib.request
server = json.load(open(os.environ["KUBECONFIG"]))["clusters"][0]["cluster"]["server"]
url = f"{server}/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
found = json.load(urllib.request.urlopen(url))
found["data"]["ClusterConfiguration"] = found["data"]["ClusterConfiguration"].replace(*sys.argv[1:])
urllib.request.urlopen(urllib.request.Request(url, json.dumps(found).encode(), method="PUT")).read()
"""


class Attended(Case):
    size = (2, 1)
    needs_tracing = False

    def setUp(self):
        super().setUp()
        self.hooks = self.work / "hooks"
        self.hooks.mkdir()

    def hook(self, name, text=LOG):
        path = self.hooks / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def ran(self):
        log = self.hooks / ".log"
        return [line.split()[:3] for line in log.read_text().splitlines()] if log.exists() else []

    def test_hooks_run_in_order(self):
        for name in (
            "pre-downloading-images",
            "pre-upgrading-first-master",
            "post-upgrading-first-master",
            "pre-upgrading-kubelets",
            "pre-upgrading-kubelets.w1",
            "post-upgrading-kubelets.w1",
            "post-upgrading-kubelets",
            "pre-node",
            "post-node",
            "pre-upgrade-complete",
        ):
            self.hook(name)
        self.must(*START, "--hook-dir", str(self.hooks))
        self.require_complete()
        every = [
            [f"{when}-node", state, node]
            for state, nodes in (
                ("downloading-images", ("cp1", "cp2", "w1")),
                ("upgrading-first-master", ("cp1",)),
                ("upgrading-second-master", ("cp2",)),
                ("upgrading-kubelets", ("cp1", "cp2", "w1")),
            )
            for node in nodes
            for when in ("pre", "post")
        ]
        self.assertEqual([line for line in self.ran() if line[0].endswith("-node")], every)
        self.assertEqual(
            [line for line in self.ran() if not line[0].endswith("-node")],
            [
                ["pre-downloading-images", "downloading-images", "-"],
                ["pre-upgrading-first-master", "upgrading-first-master", "-"],
                ["post-upgrading-first-master", "upgrading-first-master", "-"],
                ["pre-upgrading-kubelets", "upgrading-kubelets", "-"],
                ["pre-upgrading-kubelets.w1", "upgrading-kubelets", "w1"],
                ["post-upgrading-kubelets.w1", "upgrading-kubelets", "w1"],
                ["post-upgrading-kubelets", "upgrading-kubelets", "-"],
                ["pre-upgrade-complete", "upgrade-complete", "-"],
            ],
        )
        self.assertEqual((self.hooks / ".log").read_text().split()[3:6], [FROM, TARGET, "36"])

    def test_a_hook_before_a_state_stops_the_run(self):
        failing = self.hook("pre-upgrading-first-master", "#!/bin/sh\necho no window >&2\nexit 3\n")
        shown = self.must(*START, "--hook-dir", str(self.hooks), exit_code=11)
        self.assertIn("hook pre-upgrading-first-master exited with 3: no window", shown)
        self.assertEqual(self.run_states()[-1], "downloaded-images")
        self.assertEqual(self.fleet.applies(), [])
        self.must("resume", exit_code=11)
        # What a record names is run by whoever made it only.
        self.assertIn(f"--hook-dir {self.hooks}", self.must("show"))
        failing.write_text(LOG)
        self.must("resume")
        self.require_complete()
        self.assertEqual(self.ran(), [["pre-upgrading-first-master", "upgrading-first-master", "-"]])

    def test_hooks_of_a_node(self):
        before = self.hook("pre-upgrading-kubelets.w1", "#!/bin/sh\nkill -9 $$\n")
        after = self.hook("post-upgrading-kubelets.cp1", "#!/bin/sh\necho sick\nexit 1\n")
        shown = self.must(*START, "--hook-dir", str(self.hooks), exit_code=11)
        self.assertIn("hook post-upgrading-kubelets.cp1 exited with 1: sick", shown)
        self.assertEqual(self.fleet.kubelet("cp1"), TARGET)
        after.write_text(LOG)
        shown = self.must("retry", "cp1", exit_code=11)
        self.assertIn("hook pre-upgrading-kubelets.w1 was ended by signal 9", shown)
        self.assertEqual((self.fleet.kubelet("w1"), "unschedulable" in self.fleet.object("nodes/w1")), (FROM, False))
        # 75: later.
        before.write_text('#!/bin/sh\necho x >> "${0%/*}/.tries"\n[ $(wc -l < "${0%/*}/.tries") -ge 3 ] || exit 75\n')
        self.must("retry", "w1")
        self.assertEqual((self.hooks / ".tries").read_text(), "x\nx\nx\n")
        self.require_complete()

    def test_root_runs_no_program_of_somebody_else(self):
        hook = self.hook("pre-upgrading-kubelets.w1")
        taken = self.hook("post-upgrading-kubelets.cp1", f"#!/bin/sh\nchown 65534 '{hook}'\n")
        if os.geteuid() != 0:  # others run what they like
            return
        os.chown(taken, 65534, 65534)
        shown = self.must(*START, "--hook-dir", str(self.hooks), exit_code=77)
        self.assertIn("untrusted-file", shown)
        self.assertEqual(self.fleet.applies(), [])
        os.chown(taken, 0, 0)
        shown = self.must(*START, "--hook-dir", str(self.hooks), exit_code=11)
        self.assertIn("expected one that only root may change", shown)
        self.assertEqual((self.fleet.kubelet("cp1"), self.fleet.kubelet("w1")), (TARGET, FROM))
        os.chown(hook, 0, 0)
        self.must("retry", "w1")
        self.require_complete()

    def test_hooks_that_would_never_run(self):
        for name in ("pre-upgrading-kubelet", "post-upgrading-kubelets.w9", "notes"):
            self.hook(name)
        shown = self.must(*START, "--hook-dir", str(self.hooks), exit_code=64)
        for text in (
            "unknown-hook",
            "pre-upgrading-kubelet (did you mean pre-upgrading-kubelets?)",
            "post-upgrading-kubelets.w9",
            "notes",
        ):
            self.assertIn(text, shown)
        self.assertFalse((self.fleet.state / "journal.ndjson").exists())

    def test_patches_before_each_step(self):
        versions, table = self.work / "versions.yaml", self.work / "table"
        versions.write_text(
            f"versions:\n- version: {FROM}\n- {{version: {TARGET}, applied_patches: [KUBE.1], available_patches: "
            f"[KUBE.2]}}\n"
        )

        def patches(first, second):
            table.write_text(
                f"Patch ID  RR  Release  Patch State\n========  ==  =======  ===========\nKUBE.1    N   1        "
                f"{first}\nKUBE.2    N   1        {second}\n"
            )

        words = (
            *START,
            "--versions",
            str(versions),
            "--patch-query",
            f"cat {table}",
            "--until",
            "upgraded-first-master",
        )
        patches("Available", "Available")
        self.assertIn("applied-patches: KUBE.1 is Available, expected Applied", self.must(*words, exit_code=10))
        patches("Applied", "Available")
        self.must(*words, exit_code=11)
        self.assertIn(f"--patch-query cat {table}", self.must("show"))
        patches("Partial-Remove", "Available")
        shown = self.must("resume", exit_code=11)
        self.assertIn("patches that this step needs: KUBE.1 is Partial-Remove, expected Applied", shown)
        self.assertEqual(self.fleet.control_plane("cp2")["kube-apiserver"], FROM)
        # Kubelets need them applied.
        patches("Applied", "Available")
        self.assertIn("KUBE.2 is Available, expected Applied", self.must("retry", "cp2", exit_code=11))
        self.assertEqual(self.fleet.kubelet("cp1"), FROM)
        patches("Committed", "Applied")
        self.must("retry", "cp1")
        self.require_complete()

    def test_a_copied_record_runs_nothing(self):
        self.hook("pre-upgrading-first-master", "#!/bin/sh\nexit 3\n")
        self.must(*START, "--hook-dir", str(self.hooks), exit_code=11)
        self.hook("pre-upgrading-first-master")
        copied = self.work / "copied"
        shutil.copytree(self.fleet.state, copied)
        forge_record.forge(copied)
        self.fleet.state = copied
        shown = self.must("resume", exit_code=77)
        self.assertIn("record-untrusted", shown)
        self.assertIn(f"hook-dir: {self.hooks}", shown)
        self.assertEqual(self.ran(), [])

    def test_checks_of_nodes_before_an_upgrade(self):
        words = ("check", "kubernetes", TARGET, "--via", "ssh", "--switch", "binaries", "-o", "json")
        ids = (
            "manifest-drift",
            "images-present",
            "sandbox-image",
            "package-repo",
            "package-simulate",
            "binaries-digest",
            "kubeadm-preflight",
        )

        def found():
            checks = {each["id"]: each for each in json.loads(self.fleet.run(*words).stdout)["checks"]}
            return {each: (checks[each]["outcome"], checks[each]["detail"]) for each in ids}

        fine = found()
        self.assertEqual([fine[each][0] for each in ids], ["OK", "WARN", "OK", "SKIP", "SKIP", "OK", "OK"], fine)
        self.assertIn("cp2: lacks registry.k8s.io/etcd:3.6.6-0", fine["images-present"][1])
        self.fleet.behave(
            "cp1",
            drift="--- /etc/kubernetes/manifests/kube-apiserver.yaml\n+++ new manifest\n@@ -19 +18,0 @@\n-    - --profiling=false\n",
        )
        self.fleet.behave("cp2", refuses=["ControlPlaneNodesReady"])
        self.fleet.behave("w1", sandbox="mirror.example/pause:3.9")
        (self.fleet.nodes / "w1/usr/local/kubernetes" / TARGET[1:] / "kubelet.sha256").write_text("00\n")
        images = "".join(
            f"registry.k8s.io/{name}\n" for name in ("etcd:3.6.6-0", *(f"{each}:{TARGET}" for each in COMPONENTS))
        )
        for node in ("cp1", "cp2"):
            (self.fleet.nodes / node / "fake/images").write_text(images)
        bad = found()
        self.assertEqual([bad[each][0] for each in ids], ["FAIL", "OK", "WARN", "SKIP", "SKIP", "FAIL", "FAIL"], bad)
        self.assertIn("cp2: ControlPlaneNodesReady: ", bad["kubeadm-preflight"][1])
        self.assertEqual(bad["manifest-drift"][1], "cp1: kube-apiserver (- - --profiling=false)")
        self.assertEqual(bad["sandbox-image"][1], "w1: uses mirror.example/pause:3.9, expected pause 3.10.1")
        self.assertIn(f"w1: /usr/local/kubernetes/{TARGET[1:]}/kubelet: expected sha256 00", bad["binaries-digest"][1])
        said = self.must(*START, exit_code=10)
        self.assertRegex(said, r"3 of \d+ checks fail; nothing was changed")
        self.assertEqual([self.fleet.log(node) for node in self.fleet.names()], [[], [], []])


class Followed(Case):
    """Two runs, one after the other."""
    size = (1, 1)
    versions = (FROM, "v1.35.1", TARGET)
    needs_tracing = False

    def test_applications_are_asked_before_each_run(self):
        file, programs = self.work / "versions.yaml", self.work / "apps"
        file.write_text(
            f"versions:\n- version: {FROM}\n- version: v1.35.1\n- {{version: {TARGET}, upgrade_from: [v1.35.1]}}\n"
        )
        programs.mkdir()
        program = programs / "database"

        def answer(refuses):
            program.write_text(
                f"#!/bin/sh\necho $1 $2 >> {self.work}/asked\n[ $1 = v1.35.1 ] && s={str(not refuses).lower()} || "
                f"s=true\n"
                "echo '{\"supported\": '$s', \"reason\": \"data of release 3\"}'\n"
            )
            program.chmod(0o755)

        answer(True)
        shown = self.must(
            "start", "kubernetes", TARGET, *HOW, "--versions", str(file), "--app-check", str(programs), exit_code=10
        )
        for text in (
            f"database does not support {TARGET}: data of release 3",
            f"control planes {TARGET}, kubelets {TARGET}: not begun",
        ):
            self.assertIn(text, shown)
        self.assertEqual(
            (self.fleet.control_plane("cp1")["kube-apiserver"], self.fleet.kubelet("w1")), ("v1.35.1", FROM)
        )
        self.assertEqual((self.work / "asked").read_text().split("\n")[-2], f"v1.35.1 {TARGET}")
        self.must("resume", exit_code=10)
        answer(False)
        # What follows a copied record runs nothing of it.
        journal = self.fleet.state / "journal.ndjson"
        kept = journal.read_bytes()
        forge_record.forge(self.fleet.state)
        self.assertIn("record-untrusted", self.must("resume", exit_code=77))
        journal.write_bytes(kept)
        self.must("resume")
        self.require_complete()


class Frozen(Case):
    """On an API server of fake_api.py; its nodes are those of the fleet, which nobody upgrades here."""
    size = (1, 1)
    needs_tracing = False

    def live(self, script, *options, exit_code=0):
        """Runs a script of sh; what the API server has then, and what was printed."""
        objects = self.work / "api"
        objects.mkdir(exist_ok=True)
        kinds = "Node,Pod,ConfigMap"
        version = self.versions[0]
        dump = subprocess.run(
            [SUPPORT / "kubeadm_dump.py", "--kinds", kinds, f"cp1={version}/{version}", f"w1={version}"],
            capture_output=True, check=True).stdout
        (objects / "all.json").write_bytes(dump)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u"}}
        (objects / "ns.json").write_text(json.dumps(namespace))
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "helm.sh/release.v1",
            "metadata": {
                "name": "sh.helm.release.v1.web.v3",
                "namespace": "prod",
                "labels": {"owner": "helm", "name": "web", "status": "deployed", "version": "3"},
            },
        }
        (objects / "secret.json").write_text(json.dumps(secret))
        start = " ".join(
            ["kmm-upgrade", *START, "--via ssh --manual --ignore-checks drain-unmanaged,other-orchestrators"]
        )
        environment = self.fleet.environment(HOME=str(self.work), KMM_STATE_DIR=str(self.fleet.state), START=start)
        environment.pop("KMM_CLUSTER", None)
        done = subprocess.run(
            [
                sys.executable,
                SUPPORT / "fake_api.py",
                *options,
                "--dump",
                self.work / "after.json",
                f"main={objects}",
                "--",
                "sh",
                "-c",
                script,
            ],
            env=environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, exit_code, done.stdout)
        after = json.loads((self.work / "after.json").read_text())["main"]
        names = sorted(
            f"{item['kind']}/{item['metadata']['name']}"
            for item in after
            if item["metadata"]["name"] == "kmm-upgrade-freeze"
        )
        return (
            names,
            {item["kind"]: item for item in after if item["metadata"]["name"] == "kmm-upgrade-freeze"},
            done.stdout,
        )

    ALL = [
        "ConfigMap/kmm-upgrade-freeze",
        "ValidatingAdmissionPolicy/kmm-upgrade-freeze",
        "ValidatingAdmissionPolicyBinding/kmm-upgrade-freeze",
    ]

    def test_from_start_to_abort(self):
        names, objects, shown = self.live(
            "$START --freeze-except prod,user:jane --freeze-for 90m; [ $? = 11 ]", "--policies", "--deny", "create:secrets"
        )
        self.assertEqual(names, self.ALL, shown)
        data = objects["ConfigMap"]["data"]
        self.assertEqual(
            [data[key] for key in ("mode", "from", "to", "users", "namespaces")],
            ["enforced", FROM, TARGET, "jane", "prod"],
        )
        self.assertIn("are refused until the upgrade ends, 90m at most", shown)
        self.assertEqual(self.live("kmm-upgrade abort", "--policies")[0], [])

    def test_it_ends_by_the_clock_of_the_api_server(self):
        for clock in (-864000, 864000):
            begun = time.time()
            names, objects, shown = self.live("$START --freeze-for 90m; [ $? = 11 ]", "--policies", f"--clock={clock}")
            self.assertEqual(names, self.ALL, shown)
            end = objects["ConfigMap"]["data"]["notAfter"]
            at = datetime.datetime.fromisoformat(end.replace("Z", "+00:00")).timestamp()
            self.assertGreaterEqual(at, int(begun) + clock + 5400)
            self.assertLess(at, time.time() + clock + 5401)
            policy = objects["ValidatingAdmissionPolicy"]["spec"]["variables"][0]
            self.assertEqual(policy["expression"], f"timestamp('{end}')")
            self.live("kmm-upgrade abort", "--policies")

    def test_lifted_by_a_person_it_stays_so(self):
        names, objects, shown = self.live(
            "$START; kmm-upgrade unfreeze && kmm-upgrade step; kmm-upgrade unfreeze", "--policies"
        )
        self.assertEqual((names, objects["ConfigMap"]["data"]["mode"]), (self.ALL[:1], "lifted"), shown)
        self.assertIn("kmm-upgrade unfreeze was run during this upgrade", shown)

    def test_guard(self):
        # While an upgrade is recorded: by this record, and by the notice for any other.
        script = (
            "$START; kmm-upgrade guard -- touch ran; echo \"first $?\"; kmm-upgrade guard --state-dir other -- touch "
            "ran; echo \"second $?\"; kmm-upgrade abort; "
            "kmm-upgrade guard -- sh -c 'echo inside; kmm-upgrade guard --state-dir other -- touch ran; exit 9'; echo "
            "\"third $?\"; test ! -e ran; kmm-upgrade unfreeze"
        )
        _, _, shown = self.live(f"cd {self.work}; {script}", "--policies")
        for text in (
            "upgrade-under-way",
            "first 75",
            "second 75",
            "inside",
            "lease-held",
            "third 9",
            "applications of this cluster are not frozen",
        ):
            self.assertIn(text, shown)
        self.assertIn(f"an upgrade of Kubernetes from {FROM} to {TARGET} is under way", shown)
        # And none begins while it runs.
        _, _, shown = self.live(
            "kmm-upgrade delete; kmm-upgrade guard -- sh -c \"$START --state-dir other\"; echo \"inner $?\"",
            "--policies",
        )
        self.assertIn("lease-held", shown)
        self.assertIn("inner 75", shown)

    def test_no_other_record_upgrades_the_same_cluster(self):
        """The first one has paused: nobody holds its Lease, and its freeze would end with the second one."""
        names, objects, shown = self.live(
            f"cd {self.work}; $START; $START --state-dir other; echo \"second $?\"; test ! -e other/journal.ndjson; "
            "kmm-upgrade unfreeze --state-dir other; $START --state-dir other; echo \"third $?\"; "
            "kmm-upgrade step --node w1; echo \"step $?\"; kmm-upgrade abort; echo \"abort $?\"",
            "--policies",
        )
        self.assertIn("second 75", shown)
        self.assertIn(f"record:  {self.fleet.state}", shown)
        self.assertIn("third 11", shown)
        self.assertIn("step 75", shown)
        self.assertIn(f"the freeze of applications is that of the upgrade to {TARGET} by ", shown)
        self.assertIn("abort 0", shown)
        self.assertEqual(names, self.ALL, shown)

    def test_a_lost_record_is_begun_again_in_its_place(self):
        names, _, shown = self.live(f"$START; rm -r {self.fleet.state}; $START", "--policies", exit_code=11)
        self.assertEqual(names, self.ALL, shown)

    def test_an_old_server_is_advised(self):
        names, objects, shown = self.live("$START; kmm-upgrade abort --timeout 1h; $START --no-freeze", exit_code=11)
        self.assertIn("changes of applications are not refused, only reported", shown)
        self.assertEqual((names, objects["ConfigMap"]["data"]["mode"]), (self.ALL[:1], "off"), shown)

    def test_changed_releases_are_reported(self):
        (self.work / "change.py").write_text(CHANGE)
        names, objects, shown = self.live(
            f"$START; python3 {self.work}/change.py web 4; python3 {self.work}/change.py new 1; kmm-upgrade step"
        )
        self.assertEqual(
            (names, objects["ConfigMap"]["data"]["mode"], objects["ConfigMap"]["data"]["releases"]),
            (self.ALL[:1], "advisory", "prod/web 3\n"),
            shown,
        )
        for text in (
            "changed during the upgrade: prod/new: installed",
            "changed during the upgrade: prod/web: revision 3 -> 4",
        ):
            self.assertIn(text, shown)

    def test_kubeadm_config_goes_back(self):
        (self.work / "configure.py").write_text(CONFIGURE)
        _, _, shown = self.live(
            f"$START --no-freeze; kmm-upgrade step; python3 {self.work}/configure.py {FROM} {TARGET}; kmm-upgrade "
            f"abort --rollback all; "
            "kmm-upgrade show -o json"
        )
        self.assertIn(f"kubeadm-config names {FROM} again", shown)
        after = json.loads((self.work / "after.json").read_text())["main"]
        self.assertEqual([item["data"] for item in after if item["metadata"]["name"] == "kubeadm-config"],
                         [item["data"] for item in json.loads((self.work / "api/all.json").read_text())["items"]
                          if item["metadata"]["name"] == "kubeadm-config"])

    def test_without_effect(self):
        _, _, shown = self.live(
            "$START; echo \"exit $?\"", "--policies", "--refuse", "create:configmaps=quota of the namespace"
        )
        self.assertIn("quota of the namespace", shown)


if __name__ == "__main__":
    unittest.main()
