# SPDX-License-Identifier: Apache-2.0
"""What kmm-plan renders, the definitions and the examples are accepted by a real API server: strictly, without a
warning."""
import pathlib
import tempfile

from testbed import manifests
from testbed.client import ApiError
from testbed.testing import ROOT, ClusterCase, LoadedCase

FLEET = ROOT / "manifests/examples/fleet"
RICH = ROOT / "tests/golden/inputs/render"
EXTRACT = ("--worker-style", "extract", "--worker-image", "registry.example/w:1")
KMM = "/apis/kmm.sigs.x-k8s.io/v1beta1"


class Rendering(LoadedCase):
    """Inputs are created first and read back: owners have the identities that the server gave them."""

    def render(self, dump, *arguments):
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch, "dump.json")
            file.write_text(dump)
            return self.documents("kmm-plan", "render", *arguments, "-f", file)

    def accepted(self, objects, least):
        """Creates each object, first on trial; the number, which must not be less."""
        self.assertGreaterEqual(len(objects), least)
        faults = []
        for thing in objects:
            meta = thing["metadata"]
            if meta.get("namespace"):
                self.need_namespace(meta["namespace"])
            self.api.warnings.clear()
            words = f"{thing['kind']} {meta.get('namespace', '')}/{meta['name']}"
            try:
                self.keep(thing)
            except ApiError as error:
                faults.append(f"{words}: {error}")
            faults += [f"{words}: warning: {text}" for text in self.api.warnings]
        self.assertEqual(faults, [])
        return len(objects)

    def keep(self, thing):
        """An object that is there is applied; Pods, and DaemonSets, whose selector is for ever, are created anew."""
        path, there = self.api.path_of(thing), self.api.raw("GET", self.api.path_of(thing))[0] == 200
        if there and thing["kind"] in ("Pod", "DaemonSet"):
            self.free(path)
            self.wait(f"{path} to be gone", lambda: self.api.raw("GET", path)[0] == 404)
            there = False
        self.api.apply(thing, dryRun="All")
        if there:
            self.api.apply(thing)
            return
        self.api.create(thing, dryRun="All")
        self.api.create(thing)
        if thing["kind"] != "Namespace":
            self.addCleanup(self.free, path)

    def check(self, directory, cases):
        """(arguments of render, the least number of objects) on the objects of a directory."""
        dump = self.load(directory)
        counts = {
            " ".join(arguments): self.accepted(self.render(dump, *arguments), least) for arguments, least in cases
        }
        print("objects created:", counts)

    def test_every_form_of_the_example_fleet(self):
        self.check(FLEET, [(("namespace",), 1), (("rbac",), 1), ((), 2), (("nmc",), 1), (("worker-pods",), 1),
                           (("pull-check",), 1), (("worker-pods", *EXTRACT), 1)])

    def test_every_form_of_rich_modules(self):
        self.check(
            RICH,
            [
                (("namespace",), 1),
                (("rbac",), 1),
                (("nmc",), 1),
                (("worker-pods",), 1),
                (("pull-check",), 1),
                (("build",), 1),
                (("sign",), 1),
                (("device-plugin",), 1),
                (("dra",), 1),
                (("--next",), 1),
                (("--no-finalizers", "--missing", "*"), 5),
                (("worker-pods", *EXTRACT), 1),
                (("device-plugin", "worker-pods", "nmc", "--kmm-version", "v2.6.0"), 3),
            ],
        )

    def test_daemon_sets_make_their_pods(self):
        dump = self.load(RICH)
        wanted = self.render(dump, "namespace", "device-plugin", "dra", "--no-finalizers")
        accounts = {(t["metadata"]["namespace"], t["spec"]["template"]["spec"].get("serviceAccountName"))
                    for t in wanted if t["kind"] == "DaemonSet"}
        for namespace, account in accounts:
            if account:
                self.api.apply(
                    {
                        "apiVersion": "v1",
                        "kind": "ServiceAccount",
                        "metadata": {"name": account, "namespace": namespace},
                    }
                )
        sets = []
        for thing in wanted:
            self.api.apply(thing)
            if thing["kind"] == "DaemonSet":
                sets.append(thing)
            elif thing["kind"] != "Namespace":
                self.addCleanup(self.free, self.api.path_of(thing))
        self.assertGreaterEqual(len(sets), 3)
        # The labels for which the Pods wait; the operator, or kmm-upgrade, gives them.
        for thing in sets:
            selector = thing["spec"]["template"]["spec"]["nodeSelector"]
            self.api.patch("/api/v1/nodes/node-a", {"metadata": {"labels": selector}})
            path = self.api.path_of(thing)
            self.wait(
                f"a ready Pod of {path}", lambda path=path: self.api.get(path)["status"].get("numberReady", 0) >= 1
            )
        self.assertEqual(self.api.warnings, [])


class Definitions(ClusterCase):
    def setUp(self):
        super().setUp()
        manifests.install_definitions(self.api, ROOT)
        self.namespace("definitions")

    def module(self, **spec):
        container = {"modprobe": {"moduleName": "m"}, "kernelMappings": [{"regexp": ".", "containerImage": "i:1"}]}
        return {"apiVersion": "kmm.sigs.x-k8s.io/v1beta1", "kind": "Module",
                "metadata": {"name": "m", "namespace": "definitions"},
                "spec": {"selector": {}, "moduleLoader": {"container": container}, **spec}}

    def refused(self, module, words):
        with self.assertRaises(ApiError) as error:
            self.api.create(module, dryRun="All")
        self.assertIn(words, str(error.exception))

    def test_defaults(self):
        made = self.api.create(self.module(), dryRun="All")
        self.assertEqual(made["spec"]["moduleLoader"]["container"]["modprobe"]["dirName"], "/opt")

    def test_what_the_schema_refuses(self):
        plugin = {"container": {"image": "p:1"}}
        self.refused(self.module(dra=dict(plugin, driverName="a.b"), devicePlugin=plugin), "mutually exclusive")
        self.refused(self.module(selectr={}), 'unknown field "spec.selectr"')
        without = self.module()
        del without["spec"]["selector"]
        self.refused(without, "spec.selector")
        empty = self.module()
        empty["spec"]["moduleLoader"]["container"]["kernelMappings"] = []
        self.refused(empty, "kernelMappings")

    def test_status_is_written_apart(self):
        config = {
            "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
            "kind": "NodeModulesConfig",
            "metadata": {"name": "definitions-node"},
            "spec": {"modules": []},
            "status": {"modules": []},
        }
        self.addCleanup(self.api.delete, f"{KMM}/nodemodulesconfigs/definitions-node")
        self.assertNotIn("status", self.api.create(config))
        entry = {
            "name": "m",
            "namespace": "definitions",
            "serviceAccountName": "default",
            "bootId": "b",
            "config": {
                "containerImage": "i:1",
                "insecurePull": False,
                "kernelVersion": "6.1",
                "modprobe": {"moduleName": "m"},
            },
        }
        path = f"{KMM}/nodemodulesconfigs/definitions-node/status"
        stored = self.api.patch(path, {"status": {"modules": [entry]}})
        self.assertEqual(stored["status"]["modules"][0]["bootId"], "b")
