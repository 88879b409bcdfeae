# SPDX-License-Identifier: Apache-2.0
"""A real API server judges the objects of tests/support/schema_cases.json as tests/unit/api/schema_test.cpp says. Its
definitions are made from lib/schema/kmm.schema, in groups of their own: those of manifests/crd stay as they are."""
import json
import sys

from lab.common import wait_for
from testbed import manifests
from testbed.client import ApiError
from testbed.testing import ROOT, ClusterCase

sys.path.insert(0, str(ROOT / "tests/support"))
import kmm_schema  # noqa: E402

GROUP = "schema.example.org"


class Schema(ClusterCase):
    def install(self):
        """A definition of each kind, served when this returns: {kind: apiVersion}."""
        versions = {}
        for definition in kmm_schema.definitions((ROOT / "lib/schema/kmm.schema").read_text()):
            spec = definition["spec"]
            group = spec["group"].replace("kmm.sigs.x-k8s.io", GROUP)
            spec["group"], definition["metadata"]["name"] = group, f"{spec['names']['plural']}.{group}"
            self.api.apply(definition)
            self.addCleanup(self.api.delete, f"{manifests.DEFINITIONS}/{definition['metadata']['name']}")
            version = f"{group}/{spec['versions'][-1]['name']}"
            versions[spec["names"]["kind"]] = (version, f"/apis/{version}/{spec['names']['plural']}")
        for _, path in versions.values():
            wait_for(f"{path} to be served", lambda path=path: self.api.raw("GET", path)[0] == 200, 300, 0.05)
        return {kind: version for kind, (version, _) in versions.items()}

    def verdict(self, thing):
        try:
            self.api.create(thing, dryRun="All")
        except ApiError as error:
            self.assertIn(error.status, (400, 422), error)
            return f"refused: {error}"
        return "admitted"

    def test_objects_are_refused_as_kmm_plan_refuses_them(self):
        versions = self.install()
        self.namespace("n")
        cases = json.loads((ROOT / "tests/support/schema_cases.json").read_text())
        wrong = []
        for case in cases:
            verdict = self.verdict(kmm_schema.case_object(case, versions[case.get("kind", "Module")]))
            if ("code" in case) == (verdict == "admitted"):
                wrong.append(f"{case['about']}: expected {case.get('code', 'admitted')}, the server says {verdict}")
        self.assertEqual(wrong, [])
        self.assertGreater(len(cases), 90)
