# SPDX-License-Identifier: Apache-2.0
"""An operator that does what KMM's tables say, and nothing else: which node gets an entry (4.2), which worker Pod is
made (5.2 to 5.4), which version label comes and goes (8.1; numbers of the project's KMM facts). It plays the kubelet of
worker Pods and the DaemonSet of a device plugin as well.

`Operator(api, faults).step()` does one round and returns whether anything was done. `api` has
  all(plural)                                         every object of a kind
  one(plural, name)                                   one of no namespace, None if it is not there
  create(plural, document)
  merge(plural, namespace, name, patch, subresource)  a merge patch
  delete(plural, namespace, name)
A fault is NODE:no-load or NODE:no-unload: that worker Pod stays Pending there; NODE:no-labels: the label controller is
not seen there.
"""

import copy
import json
import re
import threading

PREFIX, BETA = "kmm.node.kubernetes.io", "beta.kmm.node.kubernetes.io"
ACTION, CONFIG, VERSION = f"{PREFIX}/worker-action", f"{PREFIX}/worker-config", f"{PREFIX}/worker-module-version"
MODULE_NAME, ROLE = f"{PREFIX}/module.name", f"{PREFIX}/role"
GROUP_VERSION = "kmm.sigs.x-k8s.io/v1beta1"

# 8.1: M, W, S. What is not here is left as it is for ever.
LABEL_TABLE = {
    ("-", "P", "P"): "delete S",
    ("-", "P", "-"): "delete W",
    ("P", "-", "-"): "add W",
    ("P", "P", "-"): "add S",
    ("P", "D", "D"): "delete S",
    ("P", "D", "-"): "delete W",
}


def meta(thing):
    return thing["metadata"]


def labels_of(thing):
    return meta(thing).get("labels", {})


def config_of(module, kernel):
    """The ModuleConfig of the first kernel mapping that matches, None without one."""
    container = module["spec"]["moduleLoader"]["container"]
    for mapping in container["kernelMappings"]:
        if mapping.get("literal") == kernel or ("regexp" in mapping and re.search(mapping["regexp"], kernel)):
            image = (mapping.get("containerImage") or container.get("containerImage")).replace(
                "${KERNEL_FULL_VERSION}", kernel
            )
            return {"kernelVersion": kernel, "containerImage": image, "imagePullPolicy": "", "insecurePull": False,
                    "modprobe": container["modprobe"]}
    return None


def is_tolerated(taint, tolerations):
    return taint["effect"] not in ("NoSchedule", "NoExecute") or any(
        item.get("key", taint["key"]) == taint["key"]
        and (item.get("operator") == "Exists" or item.get("value", "") == taint.get("value", ""))
        and item.get("effect", taint["effect"]) == taint["effect"]
        for item in tolerations
    )


class Operator:
    """`kubelet` says who runs worker Pods: this class, or somebody else."""

    def __init__(self, api, faults=(), kubelet="ours"):
        self.api, self.faults, self.has_kubelet, self.done = api, set(faults), kubelet != "ours", False

    def step(self):
        self.done = False
        for module in self.api.all("modules"):
            for node in self.api.all("nodes"):
                self.label_controller(module, self.node(node))
                self.module_controller(module, self.node(node))
        for node in self.api.all("nodes"):
            if not self.has_kubelet:
                self.kubelet(self.node(node))
            self.config_controller(self.node(node))
            for module in self.api.all("modules"):
                self.plugin_controller(module, self.node(node))
        return self.done

    def node(self, node):
        return self.api.one("nodes", meta(node)["name"])

    def config(self, node):
        return self.api.one("nodemodulesconfigs", meta(node)["name"])

    def pods(self, node, namespace=None):
        return [item for item in self.api.all("pods") if item["spec"].get("nodeName") == meta(node)["name"]
                and (namespace is None or meta(item)["namespace"] == namespace)]

    def label(self, node, key, value):
        if labels_of(node).get(key) != value:
            self.done = True
            self.api.merge("nodes", "", meta(node)["name"], {"metadata": {"labels": {key: value}}})

    # 8.1
    def label_controller(self, module, node):
        if f"{meta(node)['name']}:no-labels" in self.faults:
            return
        full = f"{meta(module)['namespace']}.{meta(module)['name']}"
        keys = [
            f"{PREFIX}/version-module.{full}",
            f"{BETA}/version-worker-pod.{full}",
            f"{BETA}/version-schedule-pod.{full}",
        ]
        wanted, worker, schedule = (labels_of(node).get(key, "") for key in keys)
        state = [
            ("-" if not value else "P" if value == wanted or not wanted else "D")
            for value in (wanted, worker, schedule)
        ]
        action = LABEL_TABLE.get(tuple(state))
        if action == "delete S":
            self.label(node, keys[2], None)
        elif action == "delete W":
            plugins = [pod for pod in self.pods(node, meta(module)["namespace"])
                       if labels_of(pod).get(MODULE_NAME) == meta(module)["name"] and ROLE in labels_of(pod)]
            if not plugins:
                self.label(node, keys[1], None)
        elif action == "add W" and f"{PREFIX}/{full}.ready" not in labels_of(node):
            self.label(node, keys[1], wanted)
        elif action == "add S":
            self.label(node, keys[2], wanted)

    # 4.2
    def module_controller(self, module, node):
        spec, namespace, name = module["spec"], meta(module)["namespace"], meta(module)["name"]
        selected = all(labels_of(node).get(key) == value for key, value in spec["selector"].items())
        taints = node.get("spec", {}).get("taints", [])
        eligible = selected and all(is_tolerated(taint, spec.get("tolerations", [])) for taint in taints)
        there = self.config(node)
        entries = (there or {}).get("spec", {}).get("modules", [])
        others = [entry for entry in entries if (entry["namespace"], entry["name"]) != (namespace, name)]
        version = spec["moduleLoader"]["container"].get("version", "")
        config = config_of(module, node["status"]["nodeInfo"]["kernelVersion"])
        worker = labels_of(node).get(f"{BETA}/version-worker-pod.{namespace}.{name}", "")
        wanted = entries
        if not eligible or config is None or (version and not worker):  # rows 8, 2, 7
            wanted = others
        elif (not version or worker == version) and self.has_image(
            namespace, name, config["containerImage"]
        ):  # rows 4, 5
            entry = {"name": name, "namespace": namespace, "config": config, "serviceAccountName": "default"}
            if version:
                entry["version"] = version
            wanted = others + [entry]
        if wanted == entries:
            return
        self.done = True
        key = f"{BETA}/{namespace}.{name}"
        labels = {f"{key}.module-configured": "" if wanted != others else None}
        if wanted != others:
            labels[f"{key}.module-in-use"] = ""
        if there is None:
            owner = {"apiVersion": "v1", "kind": "Node", "name": meta(node)["name"], "uid": meta(node)["uid"]}
            self.api.create(
                "nodemodulesconfigs",
                {
                    "apiVersion": GROUP_VERSION,
                    "kind": "NodeModulesConfig",
                    "spec": {},
                    "metadata": {"name": meta(node)["name"], "ownerReferences": [owner]},
                },
            )
        self.api.merge(
            "nodemodulesconfigs", "", meta(node)["name"], {"metadata": {"labels": labels}, "spec": {"modules": wanted}}
        )

    def has_image(self, namespace, name, image):
        configs = [
            item
            for item in self.api.all("moduleimagesconfigs")
            if (meta(item)["namespace"], meta(item)["name"]) == (namespace, name)
        ]
        states = [state for item in configs for state in item.get("status", {}).get("imagesStates", [])]
        return not configs or {"image": image, "status": "Exists"} in states

    # Worker Pods, as a kubelet runs them.
    def kubelet(self, node):
        for pod in self.pods(node):
            action = labels_of(pod).get(ACTION)
            if (
                action
                and pod["status"]["phase"] == "Pending"
                and f"{meta(node)['name']}:no-{action.lower()}" not in self.faults
            ):
                self.done = True
                self.api.merge(
                    "pods", meta(pod)["namespace"], meta(pod)["name"], {"status": {"phase": "Succeeded"}}, "status"
                )

    # 5.1 to 5.4
    def config_controller(self, node):
        there = self.config(node)
        if there is None:
            return
        name, boot = meta(node)["name"], node["status"]["nodeInfo"]["bootID"]
        spec = {(entry["namespace"], entry["name"]): entry for entry in there.get("spec", {}).get("modules", [])}
        status = {(entry["namespace"], entry["name"]): entry for entry in there.get("status", {}).get("modules", [])}
        before = dict(status)
        finished = []
        for pod in self.pods(node):  # 5.4
            key = (meta(pod)["namespace"], labels_of(pod).get(MODULE_NAME))
            if ACTION not in labels_of(pod) or pod["status"]["phase"] not in ("Failed", "Succeeded"):
                continue
            finished.append(pod)
            if pod["status"]["phase"] == "Succeeded" and labels_of(pod)[ACTION] == "Unload":
                status.pop(key, None)
            elif pod["status"]["phase"] == "Succeeded":
                entry = {
                    "namespace": key[0],
                    "name": key[1],
                    "config": json.loads(meta(pod)["annotations"][CONFIG]),
                    "bootId": boot,
                    "serviceAccountName": "default",
                }
                if VERSION in meta(pod)["annotations"]:
                    entry["version"] = meta(pod)["annotations"][VERSION]
                status[key] = entry
        busy = {(meta(pod)["namespace"], labels_of(pod).get(MODULE_NAME)): pod for pod in self.pods(node)
                if ACTION in labels_of(pod) and pod not in finished}
        for key, entry in list(status.items()):  # 5.3
            if key not in spec and entry.get("bootId") != boot:
                del status[key]
        if status != before:
            self.done = True
            self.api.merge("nodemodulesconfigs", "", name, {"status": {"modules": list(status.values())}}, "status")
        for pod in finished:
            self.done = True
            self.api.delete("pods", meta(pod)["namespace"], meta(pod)["name"])
        for key, entry in spec.items():  # 5.2
            there_now = status.get(key)
            if key in busy:
                continue
            if there_now is None:
                self.worker(node, entry, "Load")
            elif there_now["config"] != entry["config"]:
                same_kernel = there_now["config"]["kernelVersion"] == entry["config"]["kernelVersion"]
                self.worker(node, there_now if same_kernel else entry, "Unload" if same_kernel else "Load")
            elif there_now.get("bootId") != boot:
                self.worker(node, entry, "Load")
        for key, entry in status.items():  # 5.3
            if key in spec:
                continue
            pod = busy.get(key)
            if pod is None:
                self.worker(node, entry, "Unload")
            elif labels_of(pod)[ACTION] == "Load":
                self.done = True
                self.api.delete("pods", meta(pod)["namespace"], meta(pod)["name"])
        self.ready_labels(node, spec, status)

    def worker(self, node, entry, action):
        self.done = True
        annotations = {CONFIG: json.dumps(entry["config"])}
        if action == "Load" and "version" in entry:
            annotations[VERSION] = entry["version"]
        self.api.create(
            "pods",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "status": {"phase": "Pending"},
                "metadata": {
                    "name": f"kmm-worker-{meta(node)['name']}-{entry['name']}",
                    "namespace": entry["namespace"],
                    "annotations": annotations,
                    "labels": {
                        ACTION: action,
                        MODULE_NAME: entry["name"],
                        "app.kubernetes.io/part-of": "kmm",
                        "app.kubernetes.io/component": "worker",
                    },
                },
                "spec": {
                    "nodeName": meta(node)["name"],
                    "restartPolicy": "OnFailure",
                    "containers": [{"name": "worker", "image": "registry.example/worker:v1"}],
                },
            },
        )

    def ready_labels(self, node, spec, status):
        pattern = re.compile(re.escape(PREFIX) + r"/([a-zA-Z0-9-]+)\.([a-zA-Z0-9.-]+?)(\.version)?\.ready$")
        for key in list(labels_of(node)):
            found = pattern.match(key)
            if found and (found[1], found[2]) not in spec and (found[1], found[2]) not in status:
                self.label(node, key, None)
        for key, entry in spec.items():
            if (
                key in status
                and status[key]["config"] == entry["config"]
                and f"{PREFIX}/{key[0]}.{key[1]}.ready" not in labels_of(node)
            ):
                self.label(node, f"{PREFIX}/{key[0]}.{key[1]}.ready", "")
                if "version" in status[key]:
                    self.label(node, f"{PREFIX}/{key[0]}.{key[1]}.version.ready", status[key]["version"])

    # 9.1: a Pod of the version that the schedule label says, ready at once.
    def plugin_controller(self, module, node):
        if "devicePlugin" not in module["spec"]:
            return
        namespace, name = meta(module)["namespace"], meta(module)["name"]
        key, labels = f"{BETA}/version-schedule-pod.{namespace}.{name}", labels_of(node)
        wanted = labels.get(key) if f"{PREFIX}/{namespace}.{name}.ready" in labels else None
        plugins = [pod for pod in self.pods(node, namespace) if labels_of(pod).get(ROLE) == "device-plugin"]
        for pod in plugins:
            if labels_of(pod).get(key) != wanted and "stays" not in meta(pod)["name"]:
                self.done = True
                self.api.delete("pods", namespace, meta(pod)["name"])
        ready = [pod for pod in plugins if labels_of(pod).get(key) == wanted]
        if wanted and not ready:
            self.done = True
            self.api.create(
                "pods",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "status": {"phase": "Running"},
                    "spec": {
                        "nodeName": meta(node)["name"],
                        "containers": [{"name": "device-plugin", "image": "registry.example/plugin:v1"}],
                    },
                    "metadata": {
                        "name": f"{name}-device-plugin-{wanted}-{meta(node)['name']}",
                        "namespace": namespace,
                        "labels": {MODULE_NAME: name, ROLE: "device-plugin", key: wanted},
                    },
                },
            )
        self.label(node, f"{PREFIX}/{namespace}.{name}.device-plugin-ready", "" if ready else None)


TERM = re.compile(r"(!?)([^\s!=,()]+)\s*(?:(!=|==?)\s*([^\s!=,()]*)|\s(in|notin)\s*\(([^()]*)\))?")


def matches(selector, labels):
    """As the API server selects: KEY, !KEY, KEY=V, KEY==V, KEY!=V, KEY in (V,V) and KEY notin (V,V), by commas."""
    for text in filter(None, re.split(r",(?![^(]*\))", selector)):
        term = TERM.fullmatch(text.strip())
        if term is None:
            raise ValueError(f"unable to parse requirement {text!r} of a label selector")
        absent, key, sign, value, how, values = term.groups()
        if sign or how:
            wanted = [each.strip() for each in values.split(",")] if how else [value]
            negative = sign == "!=" or how == "notin"
            if (key in labels and labels[key] in wanted) == negative:
                return False
        elif (key in labels) == bool(absent):
            return False
    return True


def field_of(document, path):
    for part in path.split("."):
        document = document.get(part, {}) if isinstance(document, dict) else {}
    return document


def merge(target, patch):
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            merge(target[key], value)
        else:
            target[key] = value


class Direct:
    """Objects of a Cluster of fake_api.py, changed without requests. `changed` is held."""

    def __init__(self, cluster):
        self.cluster = cluster

    def all(self, plural):
        return [copy.deepcopy(item) for key, item in sorted(self.cluster.objects.items()) if key[0] == plural]

    def one(self, plural, name):
        return copy.deepcopy(self.cluster.objects.get((plural, "", name)))

    def create(self, _, document):
        self.cluster.put(copy.deepcopy(document))

    def merge(self, plural, namespace, name, patch, _=""):
        new = copy.deepcopy(self.cluster.objects[(plural, namespace, name)])
        merge(new, copy.deepcopy(patch))
        self.cluster.put(new, "MODIFIED")

    def delete(self, plural, namespace, name):
        self.cluster.remove((plural, namespace, name))


def begin(cluster, faults):
    """Works until nothing is left to do, then beside the caller on whatever changes."""
    operator = Operator(Direct(cluster), faults)

    def work():
        while True:
            with cluster.changed:
                if not operator.step():
                    cluster.changed.wait(1.0)

    with cluster.changed:
        while operator.step():
            pass
    threading.Thread(target=work, daemon=True).start()
