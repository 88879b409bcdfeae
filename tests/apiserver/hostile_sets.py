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
    "volumeMounts": [{"name": "dev", "mountPath": "/dev", "readOnly": False}],
}
PLUGIN = {
    "container": CONTAINER,
    "volumes": [{"name": "dev", "hostPath": {"path": "/dev"}}, {"name": "more", "configMap": {"name": "more"}}],
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


# Of a DaemonSet and the spec of its Pods: why, change.
HOSTILE_SETS = (
    ("the processes of the host", lambda it, spec: put_in(spec, hostPID=True)),
    ("the root of the host", lambda it, spec: spec["volumes"].append({"name": "root", "hostPath": {"path": "/"}})),
    ("another directory", lambda it, spec: [
        put_in(volume["hostPath"], path="/") for volume in spec["volumes"] if volume["name"] == "dev"]),
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
)
