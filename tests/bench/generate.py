#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py NODES DIR: writes the benchmark's fleet as kubectl would print it.

DIR/nodes.json    kubectl get nodes -o json: kind List, four blanks of indentation, about 26 kB a node
DIR/nodes.yaml    the same as kubectl get nodes -o yaml prints it (left out with --no-yaml)
DIR/modules.yaml  50 Modules with 6 kernel mappings each
The same arguments give the same bytes.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys

KERNELS = [f"5.14.0-{427 + patch}.{13 + patch}.1.el9_{patch % 5}.x86_64" for patch in range(8)]
KERNELS += [f"6.8.0-{40 + patch}-generic" for patch in range(4)]
POOLS = ["general", "gpu", "storage", "edge", "infra", "ran", "build", "spare"]
ZONES = ["eu-1a", "eu-1b", "eu-1c"]


def hex_of(*parts):
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()


def uuid_of(*parts):
    text = hex_of(*parts)
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:32]}"


def labels():
    result = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": "m6i.4xlarge",
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/zone": "@ZONE@",
        "feature.node.kubernetes.io/cpu-model.vendor_id": "Intel",
        "feature.node.kubernetes.io/system-os_release.ID": "rhcos",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "@NAME@",
        "kubernetes.io/os": "linux",
        "node-role.kubernetes.io/worker": "",
        "node.example.com/pool": "@POOL@",
        "node.example.com/rack": "r@RACK@",
        "node.kubernetes.io/instance-type": "m6i.4xlarge",
        "topology.kubernetes.io/region": "eu-1",
        "topology.kubernetes.io/zone": "@ZONE@",
    }
    for feature in ("ADX", "AESNI", "AVX", "AVX2", "AVX512F", "FMA3", "SHA", "VMX"):
        result[f"feature.node.kubernetes.io/cpu-cpuid.{feature}"] = "true"
    return dict(sorted(result.items()))


def managed_fields():
    names = {f"f:{key}": {} for key in labels()}
    resources = {
        f"f:{key}": {} for key in ("cpu", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi", "memory", "pods")
    }
    condition = {".": {}, "f:lastHeartbeatTime": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {},
                 "f:status": {}, "f:type": {}}
    conditions = {
        f'k:{{"type":"{kind}"}}': condition for kind in ("DiskPressure", "MemoryPressure", "PIDPressure", "Ready")
    }
    rows = [
        (
            "kubelet",
            {
                "f:metadata": {
                    "f:annotations": {".": {}, "f:volumes.kubernetes.io/controller-managed-attach-detach": {}},
                    "f:labels": {".": {}, **names},
                },
                "f:spec": {"f:providerID": {}},
            },
            None,
        ),
        (
            "kube-controller-manager",
            {
                "f:metadata": {"f:annotations": {"f:node.alpha.kubernetes.io/ttl": {}}},
                "f:spec": {"f:podCIDR": {}, "f:podCIDRs": {".": {}, 'v:"10.128.@RACK@.0/24"': {}}},
            },
            None,
        ),
        ("nfd-master", {"f:metadata": {"f:annotations": {"f:nfd.node.kubernetes.io/feature-labels": {}}}}, None),
        (
            "kubelet",
            {
                "f:status": {
                    "f:allocatable": {".": {}, **resources},
                    "f:capacity": {".": {}, **resources},
                    "f:conditions": conditions,
                    "f:images": {},
                    "f:nodeInfo": {"f:bootID": {}, "f:kernelVersion": {}},
                }
            },
            "status",
        ),
    ]
    result = []
    for manager, fields, subresource in rows:
        entry = {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            "manager": manager,
            "operation": "Update",
        }
        if subresource:
            entry["subresource"] = subresource
        entry["time"] = "2026-01-14T09:21:33Z"
        result.append(entry)
    return result


def node():
    resources = {"cpu": "16", "ephemeral-storage": "209702892Ki", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
                 "memory": "64389292Ki", "pods": "250"}
    conditions = []
    for kind, reason, message in (
            ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            ("Ready", "KubeletReady", "kubelet is posting ready status")):
        conditions.append({"lastHeartbeatTime": "2026-01-14T09:21:33Z", "lastTransitionTime": "2026-01-02T03:04:05Z",
                           "message": message, "reason": reason, "status": "True" if kind == "Ready" else "False",
                           "type": kind})
    images = []
    for index in range(32):
        path = f"registry.example.com/platform/component-{index:02}"
        images.append({"names": [f"{path}@sha256:{hex_of('image', index)}", f"{path}:v1.{index}.3"],
                       "sizeBytes": 987654321 - 13577531 * index})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {
                "csi.volume.kubernetes.io/nodeid": '{"ebs.csi.example.com":"i-@HEX@"}',
                "machine.example.com/currentConfig": "rendered-worker-@HEX@",
                "nfd.node.kubernetes.io/feature-labels": ",".join(key.split("/")[-1] for key in labels()),
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": labels(),
            "managedFields": managed_fields(),
            "name": "@NAME@",
            "resourceVersion": "@VERSION@",
            "uid": "@UID@",
        },
        "spec": {
            "podCIDR": "10.128.@RACK@.0/24",
            "podCIDRs": ["10.128.@RACK@.0/24"],
            "providerID": "aws:///@ZONE@/i-@HEX@",
            "taints": "@TAINTS@",
        },
        "status": {
            "addresses": [
                {"address": "10.0.@RACK@.17", "type": "InternalIP"},
                {"address": "@NAME@", "type": "Hostname"},
            ],
            "allocatable": resources,
            "capacity": resources,
            "conditions": conditions,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": images,
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "@BOOT@",
                "containerRuntimeVersion": "cri-o://1.31.4",
                "kernelVersion": "@KERNEL@",
                "kubeProxyVersion": "v1.31.6",
                "kubeletVersion": "v1.31.6",
                "machineID": "@MACHINE@",
                "operatingSystem": "linux",
                "osImage": "Example Enterprise CoreOS 418.94.202601071234-0",
                "systemUUID": "@SYSTEM@",
            },
        },
    }


def facts_of(index):
    pool = POOLS[index * 7 % len(POOLS)]
    return {
        "@NAME@": f"worker-{index:06}.fleet.example.com",
        "@POOL@": pool,
        "@ZONE@": ZONES[index % 3],
        "@RACK@": str(index // 40 % 250),
        "@HEX@": hex_of("machine", index)[:17],
        "@VERSION@": str(81000000 + index * 13),
        "@UID@": uuid_of("uid", index),
        "@BOOT@": uuid_of("boot", index),
        "@MACHINE@": hex_of("id", index)[:32],
        "@SYSTEM@": uuid_of("system", index),
        "@KERNEL@": KERNELS[index * 5 % len(KERNELS)],
    }, pool in ("gpu", "infra")


TAINTS = [{"effect": "NoSchedule", "key": "node.example.com/dedicated", "value": "@POOL@"}]


def write_parts(path, head, tail, separator, plain, tainted, count):
    """One text per node: the template with its facts filled in."""
    pieces = {flag: split(text) for flag, text in ((False, plain), (True, tainted))}
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(head)
        for index in range(count):
            facts, has_taint = facts_of(index)
            out.write(separator if index else "")
            out.write("".join(facts.get(piece, piece) for piece in pieces[has_taint]))
        out.write(tail)


def split(text):
    parts = text.split("@")
    # Marks are @NAME@; an image's digest has a lone @ too.
    result, at = [], 0
    while at < len(parts):
        mark = at + 1 < len(parts) - 1 and parts[at + 1].isupper() and parts[at + 1].isalpha()
        result.append(parts[at])
        if mark:
            result.append(f"@{parts[at + 1]}@")
            at += 2
        else:
            if at + 1 < len(parts):
                result.append("@")
            at += 1
    return result


def yaml_lines(value, indent, lines, first):
    """kubectl's YAML of a tree: block style, lists at their parent's indentation. `first` starts the first line."""
    pad = " " * indent
    if isinstance(value, dict):
        for key, member in value.items():
            start = first if first is not None else pad
            first = None
            name = key if plain(key) else json.dumps(key) if '"' not in key else f"'{key}'"
            if isinstance(member, (dict, list)) and member:
                lines.append(f"{start}{name}:")
                yaml_lines(member, indent + 2 if isinstance(member, dict) else indent, lines, None)
            else:
                lines.append(f"{start}{name}: {scalar(member)}")
    else:
        for item in value:
            if isinstance(item, (dict, list)):
                yaml_lines(item, indent + 2, lines, pad + "- ")
            else:
                lines.append(f"{pad}- {scalar(item)}")


MARK = re.compile("@(NAME|POOL|ZONE|UID|BOOT|KERNEL|SYSTEM)@")


def plain(text):
    return (
        text[:1].isalpha() and all(c.isalnum() or c in "._/-:@" for c in text) and text.lower() not in ("true", "false")
    )


def scalar(value):
    if not isinstance(value, str):
        return json.dumps(value)
    if plain(value.replace(" ", "").replace(",", "")) or MARK.fullmatch(value):
        return value
    return json.dumps(value) if '"' not in value else f"'{value}'"


def yaml_item(tree):
    lines = []
    yaml_lines(tree, 2, lines, "- ")
    return "\n".join(lines) + "\n"


def yaml_document(tree):
    lines = []
    yaml_lines(tree, 0, lines, None)
    return "\n".join(lines) + "\n"


def json_item(tree):
    return "\n".join("        " + line for line in json.dumps(tree, indent=4, ensure_ascii=False).splitlines())


def module(index):
    selector = [
        {"node-role.kubernetes.io/worker": ""},
        {"node.example.com/pool": POOLS[index % len(POOLS)]},
        {"node.example.com/pool": POOLS[index % len(POOLS)], "topology.kubernetes.io/zone": ZONES[index % 3]},
        {"feature.node.kubernetes.io/pci-15b3.present": "true"},
        {"node.example.com/rack": f"r{index}"},
    ][index % 5]
    mappings = [{"literal": KERNELS[(index + step) % len(KERNELS)],
                 "containerImage": f"registry.example.com/kmods/driver-{index:02}:v2-${{KERNEL_FULL_VERSION}}"}
                for step in range(3)]
    mappings += [
        {"regexp": regexp, "containerImage": ""}
        for regexp in (r"^5\.14\.0-43[0-9]\..*\.x86_64$", r"^.*\.el9_[0-4]\.x86_64$", r"^6\.8\.0-[0-9]+-generic$")
    ]
    tolerations = [{"key": "node.example.com/dedicated", "operator": "Exists"}] if index % 2 else []
    spec = {"moduleLoader": {"container": {
        "containerImage": f"registry.example.com/kmods/driver-{index:02}:${{KERNEL_FULL_VERSION}}",
        "kernelMappings": mappings, "modprobe": {"moduleName": f"driver_{index:02}"}}},
        "selector": selector}
    if tolerations:
        spec["tolerations"] = tolerations
    return {"apiVersion": "kmm.sigs.x-k8s.io/v1beta1", "kind": "Module",
            "metadata": {"name": f"driver-{index:02}", "namespace": "drivers"}, "spec": spec}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--no-yaml", action="store_true")
    args = parser.parse_args()
    args.directory.mkdir(parents=True, exist_ok=True)
    trees = []
    for taints in (None, TAINTS):
        tree = node()
        if taints:
            tree["spec"]["taints"] = taints
        else:
            del tree["spec"]["taints"]
        trees.append(tree)
    write_parts(args.directory / "nodes.json", '{\n    "apiVersion": "v1",\n    "items": [\n',
                '\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n', ",\n",
                *map(json_item, trees), args.nodes)
    if not args.no_yaml:
        write_parts(args.directory / "nodes.yaml", "apiVersion: v1\nitems:\n",
                    'kind: List\nmetadata:\n  resourceVersion: ""\n', "", *map(yaml_item, trees), args.nodes)
    modules = "---\n".join(yaml_document(module(index)) for index in range(50))
    (args.directory / "modules.yaml").write_text(modules, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
