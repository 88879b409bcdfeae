# SPDX-License-Identifier: Apache-2.0
"""What the policy of manifests/admission refuses: changes of Pods that are good as they are."""


def put_in(place, **values):
    place.update(values)


# What nobody may make of a worker Pod: verb, why, change (pod, spec, worker).
HOSTILE = (
    ("check", "another name", lambda pod, spec, worker: put_in(pod["metadata"], name="kmm-upgrade-load-x")),
    ("check", "no label", lambda pod, spec, worker: pod["metadata"].pop("labels")),
    ("check", "a command", lambda pod, spec, worker: put_in(worker, command=["/bin/sh"])),
    ("check", "another verb", lambda pod, spec, worker: put_in(worker, args=["sign", *worker["args"][1:]])),
    (
        "check",
        "privileges",
        lambda pod, spec, worker: put_in(worker["securityContext"], privileged=True, allowPrivilegeEscalation=True),
    ),
    (
        "check",
        "a capability",
        lambda pod, spec, worker: put_in(
            worker["securityContext"], capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}
        ),
    ),
    ("check", "no seccomp profile", lambda pod, spec, worker: worker["securityContext"].pop("seccompProfile")),
    ("check", "the host's network", lambda pod, spec, worker: put_in(spec, hostNetwork=True)),
    (
        "check",
        "the root of the host",
        lambda pod, spec, worker: spec["volumes"].append({"name": "root", "hostPath": {"path": "/"}}),
    ),
    (
        "check",
        "/proc that can be written",
        lambda pod, spec, worker: [m.pop("readOnly", None) for m in worker["volumeMounts"] if m["name"] == "proc"],
    ),
    (
        "check",
        "/proc under another name",
        lambda pod, spec, worker: spec["volumes"].append({"name": "x", "hostPath": {"path": "/proc"}}),
    ),
    ("check", "a token", lambda pod, spec, worker: put_in(spec, automountServiceAccountToken=True)),
    ("check", "a second container", lambda pod, spec, worker: spec["containers"].append({"name": "x", "image": "x"})),
    (
        "check",
        "an init container",
        lambda pod, spec, worker: put_in(spec, initContainers=[{"name": "x", "image": "x"}]),
    ),
    (
        "check",
        "a secret in its environment",
        lambda pod, spec, worker: worker["env"].append(
            {"name": "NODE_NAME", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}
        ),
    ),
    (
        "check",
        "another secret",
        lambda pod, spec, worker: spec["volumes"].append({"name": "x", "secret": {"secretName": "admin"}}),
    ),
    ("check", "no end", lambda pod, spec, worker: spec.pop("activeDeadlineSeconds")),
    ("load", "the processes of the host", lambda pod, spec, worker: put_in(spec, hostPID=True)),
    (
        "load",
        "a root that can be written",
        lambda pod, spec, worker: put_in(worker["securityContext"], readOnlyRootFilesystem=False),
    ),
    (
        "load",
        "the root of the host",
        lambda pod, spec, worker: spec["volumes"].append({"name": "root", "hostPath": {"path": "/etc"}}),
    ),
    ("load", "a hook", lambda pod, spec, worker: put_in(worker, lifecycle={"preStop": {"sleep": {"seconds": 1}}})),
)

# Of Pods of kmm-worker kubernetes.
HOSTILE_ON_NODES = (
    (
        "facts",
        "privileges",
        lambda pod, spec, worker: put_in(worker["securityContext"], privileged=True, allowPrivilegeEscalation=True),
    ),
    (
        "facts",
        "another capability",
        lambda pod, spec, worker: worker["securityContext"]["capabilities"]["add"].append("SYS_ADMIN"),
    ),
    ("facts", "the processes of the host", lambda pod, spec, worker: put_in(spec, hostPID=True)),
    (
        "facts",
        "a node that can be written",
        lambda pod, spec, worker: [m.pop("readOnly", None) for m in worker["volumeMounts"]],
    ),
    (
        "facts",
        "/ under another name",
        lambda pod, spec, worker: spec["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
    ),
    ("facts", "a verb that does not exist", lambda pod, spec, worker: put_in(worker, args=["kubernetes", "destroy"])),
    ("facts", "the verb of a step", lambda pod, spec, worker: put_in(worker, args=["kubernetes", "kubelet"])),
    ("kubelet", "the root of the host", lambda pod, spec, worker: put_in(
        spec, volumes=[{"name": "node", "hostPath": {"path": "/"}}])),
    ("kubelet", "a command", lambda pod, spec, worker: put_in(worker, command=["/bin/sh"])),
    ("kubelet", "the host's IPC", lambda pod, spec, worker: put_in(spec, hostIPC=True)),
    ("kubelet", "a token", lambda pod, spec, worker: put_in(spec, automountServiceAccountToken=True)),
    ("canary", "a token", lambda pod, spec, worker: put_in(spec, automountServiceAccountToken=True)),
    ("canary", "the host's network", lambda pod, spec, worker: put_in(spec, hostNetwork=True)),
    ("canary", "privileges", lambda pod, spec, worker: put_in(worker, securityContext={"privileged": True})),
    ("canary", "another name", lambda pod, spec, worker: put_in(pod["metadata"], name="kmm-upgrade-x")),
    ("canary", "/proc", lambda pod, spec, worker: put_in(
        spec, volumes=[{"name": "proc", "hostPath": {"path": "/proc"}}])),
    ("canary", "a secret", lambda pod, spec, worker: put_in(
        spec, volumes=[{"name": "pull-secret", "secret": {"secretName": "admin"}}])),
)
# As NetworkCanary makes it.
CANARY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "kmm-upgrade-canary-12345678-ask-0",
        "namespace": "kube-system",
        "labels": {"app.kubernetes.io/managed-by": "kmm-upgrade"},
    },
    "spec": {
        "activeDeadlineSeconds": 420,
        "automountServiceAccountToken": False,
        "nodeName": "node-a",
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "ask",
                "image": "busybox",
                "command": ["sh", "-c", "exit 0"],
                "env": [{"name": "PEER", "value": "x"}],
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                    "runAsNonRoot": True,
                    "runAsUser": 65534,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
            }
        ],
    },
}
