# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade doctor on a live cluster: what it finds, what --fix may do, and that the commands it names for the rest
are right."""
import json
import shlex
import signal

from testbed.fleet import KMM, Fleet
from testbed.proxy import Proxy
from testbed.testing import ClusterCase


class Examined(ClusterCase):
    def doctor(self, fleet, *options, expect):
        """{code: finding} of those about this fleet."""
        said = fleet.run("doctor", *options, "--kubeconfig", fleet.access(), "-o", "json", expect=expect)
        found = json.loads(said[said.index("{"):])["findings"]
        return {finding["code"]: finding for finding in found}

    def test_an_upgrade_that_is_open_and_a_module_that_is_being_deleted(self):
        fleet = Fleet(self, "doctor", count=2)
        fleet.install()
        fleet.edit("v2")
        asked = []

        def stop(record, moment):
            if "/nodes/" in record.path and record.changes and not asked:
                asked.append(record)
                child.send_signal(signal.SIGTERM)
        with Proxy(self.cluster) as proxy:
            with proxy.turn:
                proxy.hook = stop
                child = fleet.begin(*fleet.start("v2"), "--kubeconfig", fleet.access(proxy.port))
            said, _ = child.communicate(timeout=600)
        self.assertEqual(child.returncode, 143, said)
        module = f"{KMM}/namespaces/{fleet.namespace}/modules/{fleet.name}"
        self.api.patch(module, {"metadata": {"finalizers": ["kmm.node.kubernetes.io/module-finalizer"]}})
        self.api.delete(module)
        before = fleet.outcome()

        found = self.doctor(fleet, expect=10)
        self.assertEqual(set(found), {"run-open", "deletion-stuck"})
        # Neither is for a program to decide: nothing is changed, and both stay.
        fixed = self.doctor(fleet, "--fix", "--yes", expect=10)
        self.assertEqual({code: finding["fix"] for code, finding in fixed.items()}, dict.fromkeys(found, "none"))
        self.assertEqual(fleet.outcome(), before)

        # Nothing new is installed of a Module that goes away, so the run can only be given up.
        for command, code in zip(found["run-open"]["hint"].split(", or: "), (11, 0), strict=True):
            self.assertTrue(command.startswith("kmm-upgrade "), command)
            said = fleet.run(*shlex.split(command)[1:], "--kubeconfig", fleet.access(), expect=code)
            self.assertTrue(code == 0 or "module-deleting" in said, said)
        command = found["deletion-stuck"]["hint"].split("without one: ")[1]
        self.assertTrue(command.startswith("kubectl "), command)
        self.kubectl(*shlex.split(command)[1:])
        self.wait("the Module to be gone", lambda: self.api.raw("GET", module)[0] == 404)

        # What the Module has left on the nodes may be taken away.
        fixed = self.doctor(fleet, "--fix", "--yes", expect=0)
        self.assertEqual({code: finding["fix"] for code, finding in fixed.items()}, {"label-left": "done"})
        for name in fleet.names:
            labels = self.api.get(f"/api/v1/nodes/{name}")["metadata"]["labels"]
            self.assertEqual([label for label in labels if fleet.namespace in label], [])
        self.assertEqual(self.doctor(fleet, expect=0), {})
