# SPDX-License-Identifier: Apache-2.0
"""KMM's operator, as tests/support/scripted_operator.py plays it, for the nodes and the Module of one fleet."""
import json
import sys
import threading

from .client import ApiError
from .testing import ROOT

sys.path.append(str(ROOT / "tests/support"))
import scripted_operator  # noqa: E402

KMM = "/apis/kmm.sigs.x-k8s.io/v1beta1"
PATHS = {
    "nodes": "/api/v1/nodes",
    "nodemodulesconfigs": f"{KMM}/nodemodulesconfigs",
    "pods": "/api/v1/namespaces/{}/pods",
    "modules": KMM + "/namespaces/{}/modules",
}
OF_NODES = ("nodes", "nodemodulesconfigs")


class Remote:
    """The objects of a fleet on the server."""

    def __init__(self, api, fleet):
        self.api, self.fleet = api, fleet

    def path(self, plural):
        return PATHS[plural].format(self.fleet.namespace)

    def all(self, plural):
        if plural == "moduleimagesconfigs":
            return []  # there is no such kind here: every image is taken to exist
        if plural not in OF_NODES:
            return list(self.api.items(self.path(plural)))
        return [thing for thing in (self.one(plural, name) for name in self.fleet.names) if thing]

    def one(self, plural, name):
        status, data = self.api.raw("GET", f"{self.path(plural)}/{name}")
        return json.loads(data) if status == 200 else None

    def create(self, _, document):
        self.api.create({key: value for key, value in document.items() if key != "status"})

    def merge(self, plural, _, name, patch, subresource=""):
        self.api.patch(f"{self.path(plural)}/{name}" + (f"/{subresource}" if subresource else ""), patch)

    def delete(self, plural, _, name):
        self.api.delete(f"{self.path(plural)}/{name}", gracePeriodSeconds=0)


class KmmOperator:
    """At work from `with` to its end."""

    def __init__(self, fleet, faults=()):
        self.operator = scripted_operator.Operator(Remote(fleet.case.cluster.api(), fleet), faults, "theirs")
        self.stopping, self.failure = threading.Event(), None
        self.thread = threading.Thread(target=self.work, daemon=True)

    def work(self):
        while not self.stopping.is_set():
            try:
                if not self.operator.step():
                    self.stopping.wait(0.05)
            except ApiError as error:
                # Somebody else was faster: looked at anew, as controllers do.
                if error.status not in (404, 409, 422):
                    self.failure = error
                    return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        if self.failure:
            raise self.failure
