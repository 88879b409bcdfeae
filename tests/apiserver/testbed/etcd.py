# SPDX-License-Identifier: Apache-2.0
"""What the API server keeps, below it: thousands of nodes in seconds, and objects put back as they were."""
import base64
import json
import urllib.request
import uuid

from lab.common import LabError


def _call(cluster, verb, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{cluster.state()['etcd']}/v3/kv/{verb}", json.dumps(body).encode()
    )
    # No proxy of the environment: etcd is on loopback.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=600) as answer:
        return json.load(answer)


def _coded(text):
    return base64.b64encode(text.encode()).decode()


def _range(prefix):
    return {"key": _coded(prefix), "range_end": _coded(prefix[:-1] + chr(ord(prefix[-1]) + 1))}


def put(cluster, things, batch=100):
    """Puts thousands of objects, as (key below /registry/, object), where the API server keeps them, in seconds: it
    serves them as any other."""
    for start in range(0, len(things), batch):
        puts = []
        for key, thing in things[start:start + batch]:
            meta = dict(thing["metadata"], uid=str(uuid.uuid4()), creationTimestamp="2026-01-01T00:00:00Z")
            puts.append(
                {
                    "requestPut": {
                        "key": _coded(f"/registry/{key}"),
                        "value": _coded(json.dumps(dict(thing, metadata=meta))),
                    }
                }
            )
        if not _call(cluster, "txn", {"success": puts}).get("succeeded"):
            raise LabError("etcd did not take the objects")


def flood(cluster, nodes):
    """Puts thousands of nodes where the API server keeps them. See drain."""
    put(cluster, [(f"minions/{node['metadata']['name']}", node) for node in nodes])


def drain(cluster, prefix):
    """Removes all nodes whose name starts with prefix."""
    _call(cluster, "deleterange", _range(f"/registry/minions/{prefix}"))


class Saved:
    """All objects below some prefixes, byte by byte."""

    def __init__(self, cluster, prefixes):
        self.cluster, self.prefixes = cluster, prefixes
        self.pairs = self._pairs()

    def _pairs(self):
        found = {}
        for prefix in self.prefixes:
            found.update({kv["key"]: kv["value"] for kv in _call(self.cluster, "range", _range(prefix)).get("kvs", [])})
        return found

    def restore(self):
        """Puts back what was changed or removed, and removes what is new, in one transaction."""
        now = self._pairs()
        steps = [{"requestPut": {"key": k, "value": v}} for k, v in self.pairs.items() if now.get(k) != v]
        steps += [{"requestDeleteRange": {"key": k}} for k in now if k not in self.pairs]
        if steps and not _call(self.cluster, "txn", {"success": steps}).get("succeeded"):
            raise LabError("etcd did not take the objects back")
