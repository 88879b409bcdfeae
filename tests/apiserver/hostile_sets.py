# SPDX-License-Identifier: Apache-2.0
"""What the policy of manifests/admission refuses: changes of DaemonSets that are good as they are."""
from hostile_pods import put_in

CONTAINER = {
    "image": "registry.example/plugin:1",
    "args": ["--verbose"],
    "env": [
        {"name": "LEVEL", "value": "1"},
        {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "own", "key": "key"}}},
    ],
    "volumeMounts": [
        {"name": "dev", "mountPath": "/dev", "readOnly": False},
        {"name": "more", "mountPath": "/more", "readOnly": True},
    ],
}
PLUGIN = {
    "container": CONTAINER,
    "volumes": [
        {"name": "dev", "hostPath": {"path": "/dev"}},
        {"name": "more", "configMap": {"name": "more", "items": [{"key": "start", "path": "run"}]}},
        {"name": "keys", "secret": {"secretName": "own", "items": [{"key": "key", "path": "key"}]}},
        {"name": "where", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    ],
}
# What a Module says, by what is rendered of it.
PLUGIN_MODULES = {
    "device-plugin": {
        "devicePlugin": {**PLUGIN, "initContainer": {"image": "registry.example/plugin:1", "command": ["/prepare"]}}
    },
    "dra": {"dra": {**PLUGIN, "driverName": "plugins.example.com"}},
}


def daemon_set_of(rendered):
    """The DaemonSet among rendered documents, as kmm-upgrade applies it."""
    documents = rendered.get("items", [rendered])
    (daemon_set,) = [document for document in documents if document["kind"] == "DaemonSet"]
    daemon_set["metadata"].pop("generateName", None)
    daemon_set["spec"]["template"]["metadata"].pop("finalizers", None)
    return daemon_set


def container(spec):
    return spec["containers"][0]


def volume(spec, name):
    return next(each for each in spec["volumes"] if each["name"] == name)


def mount(spec, name):
    return next(each for each in container(spec)["volumeMounts"] if each["name"] == name)


# Of a DaemonSet and the spec of its Pods: why, change.
HOSTILE_SETS = (
    ("the processes of the host", lambda it, spec: put_in(spec, hostPID=True)),
    ("the root of the host", lambda it, spec: spec["volumes"].append({"name": "root", "hostPath": {"path": "/"}})),
    ("another directory", lambda it, spec: put_in(volume(spec, "dev")["hostPath"], path="/")),
    ("a directory that is made", lambda it, spec: put_in(volume(spec, "dev")["hostPath"], type="DirectoryOrCreate")),
    ("another file of a ConfigMap", lambda it, spec: put_in(volume(spec, "more")["configMap"]["items"][0], key="stop")),
    ("all files of a ConfigMap", lambda it, spec: volume(spec, "more")["configMap"].pop("items")),
    ("another key of a Secret", lambda it, spec: put_in(volume(spec, "keys")["secret"]["items"][0], key="admin")),
    ("another field of the Pod", lambda it, spec: put_in(
        volume(spec, "where")["downwardAPI"]["items"][0]["fieldRef"], fieldPath="metadata.annotations")),
    ("a mount to write to", lambda it, spec: mount(spec, "more").pop("readOnly")),
    ("a mount that the host sees", lambda it, spec: put_in(mount(spec, "dev"), mountPropagation="Bidirectional")),
    ("a secret", lambda it, spec: spec["volumes"].append({"name": "x", "secret": {"secretName": "admin"}})),
    ("another image", lambda it, spec: put_in(container(spec), image="registry.example/other:1")),
    ("a command", lambda it, spec: put_in(container(spec), command=["/bin/sh"])),
    ("other arguments", lambda it, spec: put_in(container(spec), args=["--shell"])),
    ("a variable", lambda it, spec: container(spec)["env"].append({"name": "LD_PRELOAD", "value": "/dev/x.so"})),
    ("a directory elsewhere", lambda it, spec: container(spec)["volumeMounts"].append(
        {"name": "dev", "mountPath": "/usr/bin"})),
    ("a program as probe", lambda it, spec: put_in(container(spec), livenessProbe={"exec": {"command": ["/x"]}})),
    ("a second container", lambda it, spec: spec["containers"].append({"name": "x", "image": "x"})),
    ("another init container", lambda it, spec: put_in(spec, initContainers=[{"name": "x", "image": "x"}])),
    ("a port", lambda it, spec: put_in(container(spec), ports=[{"containerPort": 53}])),
    ("all nodes", lambda it, spec: spec.pop("nodeSelector")),
    ("another account", lambda it, spec: put_in(spec, serviceAccountName="admin")),
    ("the label of a service", lambda it, spec: put_in(
        it["spec"]["template"]["metadata"]["labels"], **{"k8s-app": "kube-dns"})),
    ("a Module that is not there", lambda it, spec: put_in(
        it["metadata"]["labels"], **{"kmm.node.kubernetes.io/module.name": "other"})),
    ("no labels", lambda it, spec: it["metadata"].pop("labels")),
    ("no Module", lambda it, spec: it["metadata"]["labels"].pop("kmm.node.kubernetes.io/module.name")),
)
