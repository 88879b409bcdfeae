#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""steady.py NODES DIR: writes the benchmark's second fleet, which KMM runs.

DIR/fleet.json  kubectl get nodes,nodemodulesconfigs,modules -A -o json: every Node has KMM's labels, every
NodeModulesConfig
                spec and status of what is loaded; no worker Pod, about 28 kB a node
DIR/fleet.yaml  the same as kubectl get -o yaml prints it (left out with --no-yaml)
50 Modules with versions, 41 kernels, 14 taints; one mapping in five has an image or settings of its own.
The same arguments give the same bytes.
"""

import argparse
import json
import pathlib
import re
import sys

import generate

MODULES = 50
KERNELS = [f"5.14.0-{427 + patch}.{13 + patch}.1.el9_{patch % 5}.x86_64" for patch in range(24)]
KERNELS += [f"6.8.0-{40 + patch}-generic" for patch in range(12)] + [
    f"6.12.0-{55 + patch}.el10.x86_64" for patch in range(5)
]
TAINTS = [{"effect": "NoSchedule", "key": "node.example.com/dedicated", "value": pool} for pool in generate.POOLS[1:]]
TAINTS += [
    {"effect": effect, "key": f"node.example.com/{key}"}
    for key, effect in (
        ("maintenance", "PreferNoSchedule"),
        ("degraded", "PreferNoSchedule"),
        ("spot", "NoSchedule"),
        ("vendor", "NoSchedule"),
        ("draining", "NoExecute"),
        ("quarantine", "NoExecute"),
    )
]
TAINTS += [{"effect": "NoSchedule", "key": "node.kubernetes.io/unschedulable"}]


def matchers(index):
    """Mappings of a Module: four literals, then three regular expressions; what takes each kernel is the first that
    fits."""
    literals = [KERNELS[(index * 7 + step * 5) % len(KERNELS)] for step in range(4)]
    return literals, [r"^5\.14\.0-.*\.x86_64$", r"^6\.8\.0-[0-9]+-generic$", r"^6\.12\.0-.*\.x86_64$"]


def mapping_of(index, kernel):
    literals, regexps = matchers(index)
    if kernel in literals:
        return literals.index(kernel)
    return len(literals) + next(row for row, regexp in enumerate(regexps) if re.search(regexp, kernel))


def has_override(index, row):
    return (index + row) % 5 == 0


def image_of(index, row):
    flavour = f"-m{row}" if has_override(index, row) and row % 2 == 0 else ""
    return f"registry.example.com/kmods/driver-{index:02}:{version_of(index)}-${{KERNEL_FULL_VERSION}}{flavour}"


def version_of(index):
    return f"v2.{index % 7}.{index % 3}"


def modprobe_of(index):
    modprobe = {"dirName": "/opt", "moduleName": f"driver_{index:02}"}
    if index % 3 == 0:
        modprobe["parameters"] = [f"queues={index % 8 + 1}", "debug=0"]
    if index % 4 == 0:
        modprobe["firmwarePath"] = f"/firmware/driver-{index:02}"
    return modprobe


def tolerations_of(index):
    result = [{"key": "node.example.com/dedicated", "operator": "Exists"}]
    if index % 2:
        result.append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})
    return result


def internal_tolerations(index):
    return tolerations_of(index) + [
        {"effect": "NoSchedule", "key": f"node.kubernetes.io/{key}-pressure", "operator": "Exists"}
        for key in ("disk", "memory", "pid")
    ]


def selector_of(index):
    if index == 0:
        return {"node-role.kubernetes.io/worker": ""}
    if index % 4:
        return {
            "node.example.com/pool": generate.POOLS[index % 8],
            "topology.kubernetes.io/zone": generate.ZONES[index % 3],
        }
    return {"node.example.com/pool": generate.POOLS[index % 8]}


def module(index):
    literals, regexps = matchers(index)
    mappings = [
        {"containerImage": image_of(index, row) if has_override(index, row) and row % 2 == 0 else "", "literal": text}
        for row, text in enumerate(literals)
    ]
    mappings += [
        {"containerImage": image_of(index, row) if has_override(index, row) and row % 2 == 0 else "", "regexp": text}
        for row, text in enumerate(regexps, len(literals))
    ]
    for row, mapping in enumerate(mappings):
        if has_override(index, row) and row % 2:
            mapping["inTreeModulesToRemove"] = [f"intree_{index:02}"]
    container = {"containerImage": image_of(index, -1), "imagePullPolicy": "IfNotPresent", "kernelMappings": mappings,
                 "modprobe": modprobe_of(index), "version": version_of(index)}
    return {
        "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
        "kind": "Module",
        "metadata": {
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "finalizers": ["kmm.node.kubernetes.io/module-finalizer"],
            "generation": 3,
            "name": f"driver-{index:02}",
            "namespace": "drivers",
            "resourceVersion": str(70000000 + index),
            "uid": generate.uuid_of("module", index),
        },
        "spec": {
            "moduleLoader": {"container": container, "serviceAccountName": "kmm-worker"},
            "selector": selector_of(index),
            "tolerations": tolerations_of(index),
        },
    }


def config_of(index, kernel):
    row = mapping_of(index, kernel)
    config = {
        "containerImage": image_of(index, row).replace("${KERNEL_FULL_VERSION}", kernel),
        "imagePullPolicy": "IfNotPresent",
    }
    if has_override(index, row) and row % 2:
        config["inTreeModulesToRemove"] = [f"intree_{index:02}"]
    config.update({"insecurePull": False, "kernelVersion": kernel, "modprobe": modprobe_of(index)})
    return config


def is_selected(index, labels):
    return all(labels.get(key) == text for key, text in selector_of(index).items())


def tolerates(index, taints):
    def fits(toleration, taint):
        return (toleration["key"] == taint["key"]) and toleration.get("effect", taint["effect"]) == taint["effect"]
    return all(
        any(fits(one, taint) for one in tolerations_of(index))
        for taint in taints
        if taint["effect"] != "PreferNoSchedule"
    )


def fleet_node(template, number):
    """The Node with its NodeModulesConfig: everything is loaded as the Modules want it."""
    facts, _ = generate.facts_of(number)
    kernel = KERNELS[number * 11 % len(KERNELS)]
    facts["@KERNEL@"] = kernel
    text = re.sub("@[A-Z]+@", lambda mark: facts.get(mark.group(), mark.group()), template)
    node = json.loads(text)
    taints = [TAINTS[number // 9 % len(TAINTS)]] if number % 9 == 0 else []
    if taints:
        node["spec"]["taints"] = taints
    labels = node["metadata"]["labels"]
    loaded = [index for index in range(MODULES) if is_selected(index, labels) and tolerates(index, taints)]
    configured = {}
    for index in loaded:
        name = f"drivers.driver-{index:02}"
        labels[f"kmm.node.kubernetes.io/version-module.{name}"] = version_of(index)
        for word in ("worker-pod", "schedule-pod"):
            labels[f"beta.kmm.node.kubernetes.io/version-{word}.{name}"] = version_of(index)
        labels[f"kmm.node.kubernetes.io/{name}.ready"] = ""
        labels[f"kmm.node.kubernetes.io/{name}.version.ready"] = version_of(index)
        for word in ("configured", "in-use"):
            configured[f"beta.kmm.node.kubernetes.io/{name}.module-{word}"] = ""
    node["metadata"]["labels"] = dict(sorted(labels.items()))
    entries = [
        {
            "config": config_of(index, kernel),
            "name": f"driver-{index:02}",
            "namespace": "drivers",
            "serviceAccountName": "kmm-worker",
            "tolerations": internal_tolerations(index),
            "version": version_of(index),
        }
        for index in loaded
    ]
    boot = facts["@BOOT@"]
    config = {
        "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
        "kind": "NodeModulesConfig",
        "metadata": {
            "creationTimestamp": "2026-01-02T03:05:06Z",
            "generation": 7,
            "labels": dict(sorted(configured.items())),
            "name": facts["@NAME@"],
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": "Node",
                    "name": facts["@NAME@"],
                    "uid": facts["@UID@"],
                }
            ],
            "resourceVersion": str(82000000 + number * 17),
            "uid": generate.uuid_of("config", number),
        },
        "spec": {"modules": entries},
        "status": {"modules": [{"bootId": boot, **entry} for entry in entries]},
    }
    return node, config


def all_items(count):
    """Items in kubectl's order: all of a kind, then the next."""
    template = generate.node()
    del template["metadata"]["managedFields"]  # kubectl get leaves them out
    template["spec"].pop("taints")
    template["status"]["images"] = template["status"]["images"][:8]
    template = json.dumps(template)
    for number in range(count):
        yield fleet_node(template, number)[0]
    for number in range(count):
        yield fleet_node(template, number)[1]
    for index in range(MODULES):
        yield module(index)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--no-yaml", action="store_true")
    args = parser.parse_args()
    args.directory.mkdir(parents=True, exist_ok=True)
    with open(args.directory / "fleet.json", "w", encoding="utf-8", newline="\n") as out:
        out.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number, item in enumerate(all_items(args.nodes)):
            out.write((",\n" if number else "") + generate.json_item(item))
        out.write('\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')
    if not args.no_yaml:
        with open(args.directory / "fleet.yaml", "w", encoding="utf-8", newline="\n") as out:
            out.write("apiVersion: v1\nitems:\n")
            for item in all_items(args.nodes):
                out.write(generate.yaml_item(item))
            out.write('kind: List\nmetadata:\n  resourceVersion: ""\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
