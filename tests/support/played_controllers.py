# SPDX-License-Identifier: Apache-2.0
"""What controllers do to workloads, for fake_api.py --controllers.

DaemonSets have a Pod on every node that their nodeSelector selects, ready unless the image has "broken" in its name;
with the update strategy OnDelete it is replaced once it is deleted. Taints with the effect NoExecute evict Pods, but
for those with the annotation test/keep. Jobs complete at once, and fail with such an image. A Pod's log is what the
args of its first container say, one a line. Objects go with their Namespace and with their owner. An object with the
annotation test/owned: "MANAGER FIELD" has a field that another manager set.
"""
import copy
import json

GENERATION = "deprecated.daemonset.template.generation"
KINDS = [
    ("serviceaccounts", "", "v1", "ServiceAccount", True),
    ("persistentvolumeclaims", "", "v1", "PersistentVolumeClaim", True),
    ("jobs", "batch", "v1", "Job", True),
    ("roles", "rbac.authorization.k8s.io", "v1", "Role", True),
    ("specialresources", "sro.openshift.io", "v1beta1", "SpecialResource", False),
    ("machineconfigpools", "machineconfiguration.openshift.io", "v1", "MachineConfigPool", False),
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


def drop(target, before, now):
    """What was applied before and is not any more goes."""
    for key, value in before.items():
        if key not in now:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict) and isinstance(now[key], dict):
            drop(target[key], value, now[key])


def conflict(manager, field):
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Conflict",
        "code": 409,
        "message": f'Apply failed with 1 conflict: conflict with "{manager}": .{field}',
        "details": {
            "causes": [
                {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"', "field": f".{field}"}
            ]
        },
    }


def count(before, after):
    """The generation grows with every change of what is wanted."""
    if "spec" in after and (before or {}).get("spec") != after["spec"]:
        after["metadata"]["generation"] = (before or {}).get("metadata", {}).get("generation", 0) + 1


def generation_of(daemon_set):
    """Counts the templates, as the annotation of the API server does."""
    annotations = daemon_set["metadata"].setdefault("annotations", {})
    template = json.dumps(daemon_set["spec"]["template"], sort_keys=True)
    if daemon_set["metadata"].get("test-template") != template:
        daemon_set["metadata"]["test-template"] = template
        annotations[GENERATION] = str(int(annotations.get(GENERATION, "0")) + 1)
    return annotations[GENERATION]


def tolerates(spec, taint):
    return any(
        entry.get("key") in (None, taint["key"])
        and entry.get("effect") in (None, taint["effect"])
        and (entry.get("operator") == "Exists" or entry.get("value") == taint.get("value"))
        for entry in spec.get("tolerations", [])
    )


def taints_of(cluster, node):
    taints = cluster.objects[("nodes", "", node)].get("spec", {}).get("taints") or []
    return [taint for taint in taints if taint["effect"] == "NoExecute"]


def evict_by_taint(cluster):
    for key, pod in sorted(cluster.objects.items()):
        node = pod.get("spec", {}).get("nodeName") if key[0] == "pods" else None
        if (
            node is None
            or "test/keep" in pod["metadata"].get("annotations", {})
            or ("nodes", "", node) not in cluster.objects
        ):
            continue
        if not all(tolerates(pod["spec"], taint) for taint in taints_of(cluster, node)):
            cluster.remove(key)


def log_of(pod):
    return "".join(f"{line}\n" for line in pod["spec"]["containers"][0].get("args", []))


def daemon_set_status(cluster, daemon_set):
    meta, template = daemon_set["metadata"], daemon_set["spec"]["template"]
    generation = generation_of(daemon_set)
    wanted = template["spec"].get("nodeSelector", {})
    nodes = [item["metadata"]["name"] for key, item in sorted(cluster.objects.items()) if key[0] == "nodes"
             and all(item["metadata"].get("labels", {}).get(name) == value for name, value in wanted.items())
             and all(tolerates(template["spec"], taint) for taint in taints_of(cluster, item["metadata"]["name"]))]
    by_hand = daemon_set["spec"].get("updateStrategy", {}).get("type") == "OnDelete"
    updated = available = 0
    for node in nodes:
        key = ("pods", meta["namespace"], f'{meta["name"]}-{node}')
        pod = cluster.objects.get(key)
        is_new = pod is not None and pod["metadata"]["labels"].get("pod-template-generation") == generation
        if pod is None or not is_new and not by_hand:
            labels = dict(template["metadata"]["labels"], **{"pod-template-generation": generation})
            ready = "False" if "broken" in template["spec"]["containers"][0]["image"] else "True"
            pod = {"apiVersion": "v1", "kind": "Pod", "spec": dict(copy.deepcopy(template["spec"]), nodeName=node),
                   "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
                   "metadata": {"name": key[2], "namespace": key[1], "labels": labels,
                                "ownerReferences": [{"kind": "DaemonSet", "name": meta["name"], "uid": meta["uid"]}]}}
            cluster.put(pod)
            is_new = True
        updated += is_new
        available += pod["status"]["conditions"][0]["status"] == "True"
    return {"observedGeneration": meta.get("generation", 0), "desiredNumberScheduled": len(nodes),
            "updatedNumberScheduled": updated, "numberAvailable": available}


def job_status(job):
    failed = "broken" in job["spec"]["template"]["spec"]["containers"][0]["image"]
    return {
        "conditions": [
            {
                "type": "Failed" if failed else "Complete",
                "status": "True",
                "message": "it has exited 1" if failed else "",
            }
        ]
    }


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
    evict_by_taint(cluster)
    for key, item in sorted(cluster.objects.items()):
        status = None
        if key[0] == "daemonsets":
            status = daemon_set_status(cluster, item)
        elif key[0] == "jobs":
            status = job_status(item)
        if status is not None and item.get("status") != status:
            cluster.put(json.loads(json.dumps(dict(item, status=status))), "MODIFIED")
