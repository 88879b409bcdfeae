# SPDX-License-Identifier: Apache-2.0
"""--timeout on a live cluster: it ends runs in time, also where the server is away, and gives the Lease up."""
import time

from testbed.fleet import Fleet
from testbed.proxy import Proxy
from testbed.testing import ClusterCase

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


class Timeout(ClusterCase):
    def begin(self, name):
        fleet = Fleet(self, name, count=2, via="self")
        fleet.install()
        fleet.edit("v2")
        proxy = Proxy(self.cluster)
        self.addCleanup(proxy.close)
        return fleet, proxy

    def timed(self, fleet, proxy, *arguments):
        begun = time.monotonic()
        said = fleet.run(*arguments, "--timeout", "4s", "--kubeconfig", fleet.access(proxy.port), expect=124)
        return said, time.monotonic() - begun

    def test_in_the_middle(self):
        fleet, proxy = self.begin("late")
        proxy.reset(lambda record, moment: time.sleep(0.2) if fleet.recorded() else None)
        said, took = self.timed(fleet, proxy, *fleet.start("v2"))
        self.assertLess(took, 10, said)
        self.assertTrue(fleet.recorded(), said)
        self.assertEqual([], list(self.api.items(LEASES.format(fleet.namespace))), said)
        proxy.reset()
        fleet.run("resume", "--kubeconfig", fleet.access(proxy.port))

    def test_the_server_goes_away(self):
        fleet, proxy = self.begin("away")

        def leave(record, moment):
            if record.method == "PATCH" and "/nodes/" in record.path:
                gone.append(record)
            return not gone
        gone = []
        proxy.reset(leave)
        said, took = self.timed(fleet, proxy, *fleet.start("v2"))
        self.assertLess(took, 15, said)
        self.assertTrue(gone)
        # Before anything, and while it is resumed.
        for arguments in (("resume",), ("doctor",)):
            said, took = self.timed(fleet, proxy, *arguments)
            self.assertLess(took, 7, said)
        gone.clear()
        proxy.reset()
        fleet.run("resume", "--kubeconfig", fleet.access(proxy.port))
        self.assertEqual([], list(self.api.items(LEASES.format(fleet.namespace))), said)
