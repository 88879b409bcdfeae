# SPDX-License-Identifier: Apache-2.0
"""--timeout on a live cluster: it ends runs in time, also where the server is away, and gives the Lease up."""
import time

from testbed.fleet import Fleet
from testbed.proxy import Proxy
from testbed.testing import ClusterCase

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
# Seconds in which a start reaches its first node on a machine where four other tests run.
STARTED = 16


class Timeout(ClusterCase):
    def begin(self, name):
        fleet = Fleet(self, name, count=2, via="self")
        fleet.install()
        fleet.edit("v2")
        proxy = Proxy(self.cluster)
        self.addCleanup(proxy.close)
        return fleet, proxy

    def timed(self, fleet, proxy, *arguments, timeout=4):
        begun = time.monotonic()
        said = fleet.run(*arguments, "--timeout", f"{timeout}s", "--kubeconfig", fleet.access(proxy.port), expect=124)
        return said, time.monotonic() - begun

    def test_in_the_middle(self):
        fleet, proxy = self.begin("late")
        proxy.reset(lambda record, moment: time.sleep(1) if fleet.recorded() else None)
        said, took = self.timed(fleet, proxy, *fleet.start("v2"), timeout=STARTED)
        self.assertLess(took, STARTED + 6, said)
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
        said, took = self.timed(fleet, proxy, *fleet.start("v2"), timeout=STARTED)
        self.assertLess(took, STARTED + 11, said)
        self.assertTrue(gone)
        # Before anything, and while it is resumed.
        for arguments in (("resume",), ("doctor",)):
            said, took = self.timed(fleet, proxy, *arguments)
            self.assertLess(took, 7, said)
        gone.clear()
        proxy.reset()
        fleet.run("resume", "--kubeconfig", fleet.access(proxy.port))
        self.assertEqual([], list(self.api.items(LEASES.format(fleet.namespace))), said)
