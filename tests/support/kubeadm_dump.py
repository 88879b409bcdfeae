#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a dump of a kubeadm cluster, as `kubectl get nodes,pods,configmaps,... -A -o json` does.

Usage: kubeadm_dump.py [-e CODE]... [--kinds KIND,...] [--yaml] NODE=VERSION...

NODE=VERSION is a worker's kubelet; NODE=VERSION/CONTROL-PLANE a control-plane node. CODE is Python that changes the
objects: `items` is the list, get(KIND, NAME) an object, drop(KIND, NAME) removes one, pod(NS, NAME, NODE, **spec) adds
one; make_node, core_dns and release make one.
"""
import argparse
import base64
import gzip
import json
import sys

ETCD = {"v1.33": "3.5.24-0", "v1.34": "3.6.5-0", "v1.35": "3.6.6-0"}
COREDNS = {"v1.33": "v1.12.0", "v1.34": "v1.12.1", "v1.35": "v1.13.1"}
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def conditions(*true):
    return [{"type": name, "status": "True" if name in true else "False", "reason": "Kubelet", "message": ""}
            for name in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")]


def make_node(name, kubelet, control_plane=False):
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    if control_plane:
        labels["node-role.kubernetes.io/control-plane"] = ""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "conditions": conditions("Ready"),
            "allocatable": {"cpu": "3920m", "memory": "7904Mi", "pods": "110"},
            "nodeInfo": {
                "kubeletVersion": kubelet,
                "containerRuntimeVersion": "containerd://2.1.4",
                "operatingSystem": "linux",
            },
        },
    }


def make_pod(
    namespace,
    name,
    node,
    image="example.com/app:1",
    container="app",
    command=(),
    labels=None,
    owner="ReplicaSet",
    mirror=False,
    volumes=(),
):
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner, "name": "owner", "uid": "u", "controller": True}
        ]
    if mirror:
        metadata["annotations"] = {"kubernetes.io/config.mirror": "hash"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": node,
            "containers": [{"name": container, "image": image, "command": list(command)}],
            "volumes": list(volumes),
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": container, "image": image, "ready": True}],
        },
    }


def static_pods(node, version):
    for component in (*COMPONENTS, "etcd"):
        tag = ETCD.get(version.rsplit(".", 1)[0], "3.5.24-0") if component == "etcd" else version
        yield make_pod(
            "kube-system",
            f"{component}-{node}",
            node,
            f"registry.k8s.io/{component}:{tag}",
            component,
            [component, "--authorization-mode=Node,RBAC", "--profiling=false"],
            {"component": component, "tier": "control-plane"},
            "Node",
            True,
        )


def config_map(name, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "kube-system"},
        "data": data,
    }


def core_dns(tag="v1.12.1", **spec):
    """As kubeadm writes it; `spec` are members of the Pod."""
    container = {
        "name": "coredns",
        "image": f"registry.k8s.io/coredns/coredns:{tag}",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
    }
    term = {
        "labelSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": ["kube-dns"]}]},
        "topologyKey": "kubernetes.io/hostname",
    }
    pod = {
        "containers": [container],
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "priorityClassName": "system-cluster-critical",
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term, "weight": 100}]
            }
        },
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"},
        ],
        "volumes": [{"name": "config-volume", "configMap": {"name": "coredns"}}],
        **spec,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"k8s-app": "kube-dns"}},
            "template": {"metadata": {"labels": {"k8s-app": "kube-dns"}}, "spec": pod},
        },
    }


def release(namespace, name, manifest, revision=1, status="deployed"):
    """The Secret that Helm keeps a revision in."""
    text = json.dumps({"name": name, "namespace": namespace, "version": revision, "manifest": manifest}).encode()
    return {"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {"name": f"sh.helm.release.v1.{name}.v{revision}", "namespace": namespace,
                         "labels": {"owner": "helm", "name": name, "status": status, "version": str(revision)}},
            "data": {"release": base64.b64encode(base64.b64encode(gzip.compress(text, mtime=0))).decode()}}


def cluster(nodes):
    items, versions = [], []
    for text in nodes:
        name, _, rest = text.partition("=")
        kubelet, _, control_plane = rest.partition("/")
        items.append(make_node(name, kubelet, bool(control_plane)))
        items.append(
            make_pod(
                "kube-system",
                f"kube-proxy-{name}",
                name,
                f"registry.k8s.io/kube-proxy:{kubelet}",
                "kube-proxy",
                ["kube-proxy"],
                {"k8s-app": "kube-proxy"},
                "DaemonSet",
            )
        )
        if control_plane:
            items.extend(static_pods(name, control_plane))
            versions.append(control_plane)
    items.append(make_pod("prod", "web-0", nodes[-1].partition("=")[0], labels={"app": "web"}))
    items.append(
        config_map(
            "kubeadm-config",
            ClusterConfiguration="apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
            f"etcd:\n  local:\n    dataDir: /var/lib/etcd\nkubernetesVersion: {versions[0] if versions else ''}\n",
        )
    )
    items.append(
        config_map(
            "kubelet-config",
            kubelet="apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: systemd\n",
        )
    )
    items.append(
        config_map(
            "coredns",
            Corefile=".:53 {\n    errors\n    kubernetes cluster.local {\n        ttl 30\n    }\n    forward . /etc/resolv.conf\n    cache 30\n}\n",
        )
    )
    for kind, api_version, name, spec in (
        ("Service", "v1", "kube-dns", {"clusterIP": "10.96.0.10"}),
        ("DaemonSet", "apps/v1", "owner", {}),
    ):
        items.append({"apiVersion": api_version, "kind": kind, "spec": spec,
                      "metadata": {"name": name, "namespace": "kube-system"}})
    items.append(core_dns(COREDNS.get(versions[0].rsplit(".", 1)[0], "v1.11.1") if versions else "v1.11.1"))
    items.append(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "prod", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
            "status": {"disruptionsAllowed": 1, "observedGeneration": 1},
        }
    )
    items.append({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.apps"},
                  "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Local"}]}})
    items.append(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {"versions": [{"name": "v1", "served": True, "storage": True}]},
            "status": {"storedVersions": ["v1"]},
        }
    )
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        items.append(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": "guard"},
                "webhooks": [
                    {
                        "name": "guard.example.com",
                        "failurePolicy": "Fail",
                        "clientConfig": {"service": {"namespace": "prod", "name": "guard"}},
                        "rules": [
                            {
                                "apiGroups": ["apps"],
                                "apiVersions": ["v1"],
                                "operations": ["CREATE"],
                                "resources": ["deployments"],
                            }
                        ],
                    }
                ],
            }
        )
    items.append(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "guard-1", "namespace": "prod", "labels": {"kubernetes.io/service-name": "guard"}},
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "nodeName": nodes[0].partition("=")[0]}
            ],
        }
    )
    return items


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-e", action="append", default=[])
    parser.add_argument("--kinds")
    parser.add_argument("--yaml", action="store_true")
    parser.add_argument("nodes", nargs="+")
    options = parser.parse_args()
    items = cluster(options.nodes)

    def get(kind, name):
        return next(item for item in items if item["kind"] == kind and item["metadata"]["name"] == name)

    def drop(kind, name=None):
        items[:] = [item for item in items if not (item["kind"] == kind and name in (None, item["metadata"]["name"]))]

    def pod(namespace, name, node, **spec):
        items.append(make_pod(namespace, name, node, **spec))

    for code in options.e:
        exec(
            code,
            {
                "items": items,
                "get": get,
                "drop": drop,
                "pod": pod,
                "make_node": make_node,
                "core_dns": core_dns,
                "release": release,
            },
        )  # the tests' own text
    if options.kinds:
        items[:] = [item for item in items if item["kind"] in options.kinds.split(",")]
    if options.yaml:
        print("\n---\n".join(json.dumps(item) for item in items))
    else:
        json.dump(
            {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}},
            sys.stdout,
            indent=4,
        )
        print()


if __name__ == "__main__":
    main()
