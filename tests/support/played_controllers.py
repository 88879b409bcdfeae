# SPDX-License-Identifier: Apache-2.0
"""What controllers do to workloads, for fake_api.py --controllers.

DaemonSets have a Pod on every node that their nodeSelector selects, available unless the image has "broken" in its name. Jobs
complete at once, and fail with such an image. A Pod's log is what the args of its first container say, one a line. Objects go with
their Namespace and with their owner. An object with the annotation test/owned: "MANAGER FIELD" has a field that another manager set.
"""
import copy
import json

KINDS = [
    ("serviceaccounts", "", "v1", "ServiceAccount", True), ("persistentvolumeclaims", "", "v1", "PersistentVolumeClaim", True),
    ("jobs", "batch", "v1", "Job", True), ("roles", "rbac.authorization.k8s.io", "v1", "Role", True),
    ("clusterroles", "rbac.authorization.k8s.io", "v1", "ClusterRole", False),
]


def begin(cluster):
    """Objects that an earlier server has left keep their uids: new ones get others."""
    for item in cluster.objects.values():
        number = item["metadata"]["uid"][-12:]
        cluster.version = max(cluster.version, int(number) if number.isdigit() else 0)


def at(document, path):
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def other_owner(current, body):
    """(manager, field) of the field of another manager that `body` would change."""
    owned = (current or {}).get("metadata", {}).get("annotations", {}).get("test/owned", "")
    manager, _, field = owned.partition(" ")
    wanted = at(body, field) if field else None
    return (manager, field) if wanted is not None and wanted != at(current, field) else None


def conflict(manager, field):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409,
            "message": f'Apply failed with 1 conflict: conflict with "{manager}": .{field}',
            "details": {"causes": [{"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"', "field": f".{field}"}]}}


def count(before, after):
    """The generation grows with every change of what is wanted."""
    if "spec" in after and (before or {}).get("spec") != after["spec"]:
        after["metadata"]["generation"] = (before or {}).get("metadata", {}).get("generation", 0) + 1


def log_of(pod):
    return "".join(f"{line}\n" for line in pod["spec"]["containers"][0].get("args", []))


def daemon_set_status(cluster, daemon_set):
    meta, template = daemon_set["metadata"], daemon_set["spec"]["template"]
    wanted = template["spec"].get("nodeSelector", {})
    nodes = [item["metadata"]["name"] for key, item in sorted(cluster.objects.items()) if key[0] == "nodes"
             and all(item["metadata"].get("labels", {}).get(name) == value for name, value in wanted.items())]
    for node in nodes:
        key = ("pods", meta["namespace"], f'{meta["name"]}-{node}')
        spec = dict(copy.deepcopy(template["spec"]), nodeName=node)
        if cluster.objects.get(key, {}).get("spec") != spec:
            cluster.put({"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": {"phase": "Running"},
                         "metadata": {"name": key[2], "namespace": key[1], "labels": copy.deepcopy(template["metadata"]["labels"]),
                                      "ownerReferences": [{"kind": "DaemonSet", "name": meta["name"], "uid": meta["uid"]}]}})
    available = 0 if "broken" in template["spec"]["containers"][0]["image"] else len(nodes)
    return {"observedGeneration": meta.get("generation", 0), "desiredNumberScheduled": len(nodes),
            "updatedNumberScheduled": len(nodes), "numberAvailable": available}


def job_status(job):
    failed = "broken" in job["spec"]["template"]["spec"]["containers"][0]["image"]
    return {"conditions": [{"type": "Failed" if failed else "Complete", "status": "True", "message": "it has exited 1" if failed else ""}]}


def step(cluster):
    """The cluster's lock is held."""
    while True:
        uids = {item["metadata"]["uid"] for item in cluster.objects.values()}
        spaces = {key[2] for key in cluster.objects if key[0] == "namespaces"} | {"kube-system", "default"}
        gone = [key for key, item in cluster.objects.items() if key[1] and key[1] not in spaces
                or any(owner["uid"] not in uids for owner in item["metadata"].get("ownerReferences", []))]
        for key in gone:
            cluster.remove(key)
        if not gone:
            break
    for key, item in sorted(cluster.objects.items()):
        status = None
        if key[0] == "daemonsets":
            status = daemon_set_status(cluster, item)
        elif key[0] == "jobs":
            status = job_status(item)
        if status is not None and item.get("status") != status:
            cluster.put(json.loads(json.dumps(dict(item, status=status))), "MODIFIED")
