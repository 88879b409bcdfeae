# SPDX-License-Identifier: Apache-2.0
"""What the policy of manifests/admission refuses: changes of Pods that are good as they are."""


def put_in(place, **values):
    place.update(values)


def mount_of(worker, name):
    return next(mount for mount in worker["volumeMounts"] if mount["name"] == name)


def add_directory(spec, worker, name, path):
    """A directory of the host that can be written, in place of what the Pod has under that name."""
    spec["volumes"] = [v for v in spec["volumes"] if v["name"] != name] + [{"name": name, "hostPath": {"path": path}}]
    mounts = [mount for mount in worker["volumeMounts"] if mount["name"] != name]
    worker["volumeMounts"] = [*mounts, {"name": name, "mountPath": f"/mnt/{name}"}]


def pull_secret(key):
    items = [{"key": key, "path": key}]
    return {"name": "pull-secret", "secret": {"secretName": "admin", "items": items}}


def rename(pod, worker, verb):
    pod["metadata"]["name"] = pod["metadata"]["name"].replace("-" + worker["args"][0] + "-", f"-{verb}-")
    worker["args"] = [verb, *worker["args"][1:]]


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
    ("check", "another user", lambda pod, spec, worker: put_in(worker["securityContext"], runAsUser=1000)),
    ("check", "the user of the image", lambda pod, spec, worker: worker["securityContext"].pop("runAsUser")),
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
    (
        "status",
        "a port of the node",
        lambda pod, spec, worker: put_in(worker, ports=[{"containerPort": 8443, "hostPort": 6443}]),
    ),
    ("status", "what was loaded, to be written", lambda pod, spec, worker: mount_of(worker, "state").pop("readOnly")),
    ("status", "the cache", lambda pod, spec, worker: add_directory(spec, worker, "cache", "/var/lib/kmm-worker")),
    ("status", "the firmware", lambda pod, spec, worker: add_directory(spec, worker, "lib-firmware", "/lib/firmware")),
    (
        "check",
        "the firmware, to be written",
        lambda pod, spec, worker: add_directory(spec, worker, "lib-firmware", "/lib/firmware"),
    ),
    ("check", "the cache under another name", lambda pod, spec, worker: add_directory(
        spec, worker, "state-2", "/var/lib/kmm-worker")),
    ("check", "part of a directory", lambda pod, spec, worker: put_in(mount_of(worker, "cache"), subPath="x")),
    ("check", "mounts that reach the host", lambda pod, spec, worker: put_in(
        mount_of(worker, "proc"), mountPropagation="HostToContainer")),
    (
        "check",
        "a whole secret",
        lambda pod, spec, worker: spec["volumes"].append({"name": "pull-secret", "secret": {"secretName": "admin"}}),
    ),
    (
        "check",
        "a key of a secret",
        lambda pod, spec, worker: spec["volumes"].append(pull_secret("token")),
    ),
    ("status", "a login at a registry", lambda pod, spec, worker: spec["volumes"].append(
        pull_secret(".dockerconfigjson"))),
    (
        "check",
        "no AppArmor",
        lambda pod, spec, worker: put_in(worker["securityContext"], appArmorProfile={"type": "Unconfined"}),
    ),
    (
        "check",
        "no AppArmor, by annotation",
        lambda pod, spec, worker: put_in(
            pod["metadata"], annotations={"container.apparmor.security.beta.kubernetes.io/worker": "unconfined"}
        ),
    ),
    ("check", "no AppArmor, for the Pod", lambda pod, spec, worker: put_in(
        spec, securityContext={"appArmorProfile": {"type": "Unconfined"}})),
    (
        "check",
        "another network",
        lambda pod, spec, worker: put_in(pod["metadata"], annotations={"k8s.v1.cni.cncf.io/networks": "lan"}),
    ),
    ("check", "the label of a service", lambda pod, spec, worker: put_in(
        pod["metadata"]["labels"], **{"k8s-app": "kube-dns"})),
    (
        "check",
        "no SELinux",
        lambda pod, spec, worker: put_in(worker["securityContext"], seLinuxOptions={"type": "spc_t"}),
    ),
    (
        "check",
        "no SELinux, for the Pod",
        lambda pod, spec, worker: put_in(spec, securityContext={"seLinuxOptions": {"type": "spc_t"}}),
    ),
    (
        "check",
        "settings of the kernel",
        lambda pod, spec, worker: put_in(
            spec, securityContext={"sysctls": [{"name": "net.ipv4.ip_local_port_range", "value": "1 2"}]}
        ),
    ),
    ("check", "another runtime", lambda pod, spec, worker: put_in(spec, runtimeClassName="other")),
    ("check", "a critical class", lambda pod, spec, worker: put_in(spec, priorityClassName="system-node-critical")),
    (
        "check",
        "a device",
        lambda pod, spec, worker: put_in(
            worker, resources={"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}}
        ),
    ),
    ("check", "a claim", lambda pod, spec, worker: put_in(
        spec, resourceClaims=[{"name": "x", "resourceClaimName": "x"}])),
    ("check", "addresses of its own", lambda pod, spec, worker: put_in(
        spec, hostAliases=[{"ip": "10.0.0.1", "hostnames": ["registry.example"]}])),
    ("status", "a verb that no run uses", lambda pod, spec, worker: rename(pod, worker, "pull")),
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
    ("facts", "another type of SELinux", lambda pod, spec, worker: put_in(
        worker["securityContext"]["seLinuxOptions"], type="container_runtime_t")),
    ("facts", "a port of the node", lambda pod, spec, worker: put_in(worker, ports=[{"containerPort": 6443}])),
    ("kubelet", "another critical class", lambda pod, spec, worker: put_in(
        spec, priorityClassName="system-cluster-critical")),
    ("kubelet", "a directory of a load", lambda pod, spec, worker: put_in(
        spec, volumes=[{"name": "state", "hostPath": {"path": "/run/kmm-worker"}}])),
    ("canary", "a port of the node", lambda pod, spec, worker: put_in(
        worker, ports=[{"containerPort": 53, "hostPort": 53}])),
    ("canary", "the label of a service", lambda pod, spec, worker: put_in(
        pod["metadata"]["labels"], **{"k8s-app": "kube-dns"})),
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
