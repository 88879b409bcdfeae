# SPDX-License-Identifier: Apache-2.0
"""--timeout on a live cluster: it ends runs in time, also where the server is away, and gives the Lease up."""
import time

from testbed.fleet import Fleet
from testbed.proxy import Proxy
from testbed.testing import ClusterCase

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
# Seconds in which a run ends after its time is over, beside other tests: what waits for a server waits ten minutes.
ENDS = 60


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
        self.assertLess(time.monotonic() - begun, timeout + ENDS, said)
        return said

    def timed_until(self, fleet, proxy, reached):
        """A start that runs out of time after `reached()` holds: how long it takes to get there is the machine's."""
        for timeout in (8, 16, 32, 64):
            arguments = ("resume",) if fleet.recorded() else fleet.start("v2")
            said = self.timed(fleet, proxy, *arguments, timeout=timeout)
            if reached():
                return said
        self.fail(said)

    def test_in_the_middle(self):
        fleet, proxy = self.begin("late")
        proxy.reset(lambda record, moment: time.sleep(1) if fleet.recorded() else None)
        said = self.timed_until(fleet, proxy, fleet.recorded)
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
        self.timed_until(fleet, proxy, lambda: gone)
        # Before anything, and while it is resumed.
        for arguments in (("resume",), ("doctor",)):
            self.timed(fleet, proxy, *arguments)
        gone.clear()
        proxy.reset()
        fleet.run("resume", "--kubeconfig", fleet.access(proxy.port))
        self.assertEqual([], list(self.api.items(LEASES.format(fleet.namespace))))
