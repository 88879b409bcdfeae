# SPDX-License-Identifier: Apache-2.0
"""kmm-plan on a live cluster: the same as from a dump of it, and what diff finds before and after."""
import json
import tempfile

from testbed import manifests
from testbed.testing import ROOT, LoadedCase

FLEET = ROOT / "manifests/examples/fleet"
RICH = ROOT / "tests/golden/inputs/render"
KINDS = (("v1", "Node"), ("v1", "Pod"), ("kmm.sigs.x-k8s.io/v1beta1", "Module"),
         ("kmm.sigs.x-k8s.io/v1beta1", "NodeModulesConfig"))


class Live(LoadedCase):
    def live(self):
        return ("--kubeconfig", self.cluster.kubeconfig)

    def dump(self):
        """What `kubectl get nodes,pods,modules,nodemodulesconfigs -A -o json` prints, and the definition of Module."""
        items = []
        for version, kind in KINDS:
            items += [
                dict(thing, apiVersion=version, kind=kind) for thing in self.api.items(self.api.path(version, kind))
            ]
        items.append(self.api.get(f"{manifests.DEFINITIONS}/modules.kmm.sigs.x-k8s.io"))
        file = tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8")
        self.addCleanup(file.close)
        json.dump({"apiVersion": "v1", "kind": "List", "items": items}, file)
        file.flush()
        return ("-f", file.name)

    def said(self, line, source):
        """What a command line says; where it says so, not from which cluster or file."""
        text = self.tool("kmm-plan", *line, *source)
        if "json" not in line:
            return text
        document = json.loads(text)
        for key in ("context", "server", "files"):
            document.get("source", {}).pop(key, None)
        return document

    def test_the_same_as_from_a_dump(self):
        for directory in (FLEET, RICH):
            self.load(directory)
        dump = self.dump()
        shown = self.documents("kmm-plan", "show", *dump)[0]["entries"]
        self.assertGreater(len(shown), 3)
        lines = [
            ("show",),
            ("show", "-o", "json"),
            ("show", "-o", "wide"),
            ("show", "--next"),
            ("matrix",),
            ("matrix", "-o", "json"),
        ]
        lines += [("why", entry["node"], entry["module"]) for entry in shown]
        lines += [("why", entry["node"], entry["module"], "-o", "json") for entry in shown[:3]]
        for line in lines:
            with self.subTest(line=line):
                self.assertEqual(self.said(line, self.live()), self.said(line, dump))
        print(f"{len(lines)} command lines, {len(shown)} nodes and modules")

    def test_diff(self):
        self.load(RICH)
        self.tool("kmm-plan", "diff", "--no-finalizers", *self.live(), expect=2)
        wanted = self.documents("kmm-plan", "render", "nmc", "device-plugin", "dra", "--no-finalizers", *self.live())
        self.assertGreater(len(wanted), 4)
        for thing in wanted:
            # In the name of the one who wrote what is there, so that what is no longer wanted goes.
            self.api.apply(thing, manager="kmm-tools" if thing["kind"] == "Node" else "input")
            if thing["kind"] != "Node":
                self.addCleanup(self.free, self.api.path_of(thing))
        self.assertEqual(self.tool("kmm-plan", "diff", "--no-finalizers", *self.live(), expect=0), "")
        config = next(thing for thing in wanted if thing["kind"] == "NodeModulesConfig" and thing["spec"]["modules"])
        name, path = config["metadata"]["name"], self.api.path_of(config)
        config["spec"]["modules"][0]["config"]["containerImage"] = "registry.example/edited:1"
        self.api.patch(path, {"spec": config["spec"]})
        version = self.api.get(path)["metadata"]["resourceVersion"]
        said = self.tool("kmm-plan", "diff", "--no-finalizers", *self.live(), expect=2)
        self.assertIn(f"NodeModulesConfig/{name}", said)
        self.assertRegex(said, r'(?m)^-containerImage: "registry.example/edited:1"$')
        self.assertEqual(self.api.get(path)["metadata"]["resourceVersion"], version, "diff changed something")

    def test_rendered_text_can_be_applied(self):
        """`kmm-plan render | kubectl apply -f -`: the YAML as it is printed, strictly, without a word of warning."""
        self.load(FLEET)
        text = self.tool("kmm-plan", "render", "namespace", "rbac", "nmc", "-o", "yaml", *self.live())
        applied = json.loads(self.kubectl("apply", "--validate=strict", "-o", "json", "-f", "-", stdin=text))["items"]
        for thing in applied:
            if thing["kind"] not in ("Node", "Namespace"):
                self.addCleanup(self.free, self.api.path_of(thing))
        self.assertGreater(len(applied), 3)
