#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints DaemonSets and DeviceClasses as an API server gives them back: with a name of its own, status and defaults.

Usage: kmm-plan render device-plugin dra -o json | as_served.py [FROM=TO...] > served.json
Each FROM=TO replaces a text in the result, once; it must be there.
"""

import json
import sys


def container_defaults(container):
    image = container["image"]
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    container.setdefault("imagePullPolicy", "Always" if tag in ("", "latest") else "IfNotPresent")
    container.setdefault("resources", {})
    container.update(terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    for variable in container.get("env", []):
        if "fieldRef" in variable.get("valueFrom", {}):
            variable["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    if "livenessProbe" in container:
        container["livenessProbe"]["successThreshold"] = 1


def daemon_set_defaults(item, number):
    metadata, spec = item["metadata"], item["spec"]
    metadata.update(
        name=metadata["generateName"] + f"x{number:04}",
        uid=f"00000000-0000-0000-0000-{number:012}",
        generation=3,
        resourceVersion="4711",
        creationTimestamp="2026-01-01T00:00:00Z",
        annotations={"deprecated.daemonset.template.generation": "3"},
    )
    spec.update(
        revisionHistoryLimit=10,
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    )
    template = spec["template"]
    template["metadata"].update(
        creationTimestamp=None, annotations={"kubectl.kubernetes.io/restartedAt": "2026-01-02T00:00:00Z"}
    )
    pod = template["spec"]
    pod.update(restartPolicy="Always", dnsPolicy="ClusterFirst", schedulerName="default-scheduler", securityContext={},
               terminationGracePeriodSeconds=30)
    if "serviceAccountName" in pod:
        pod["serviceAccount"] = pod["serviceAccountName"]
    for container in pod["containers"] + pod.get("initContainers", []):
        container_defaults(container)
    for volume in pod.get("volumes", []):
        if "hostPath" in volume:
            volume["hostPath"].setdefault("type", "")
    item["status"] = {
        "currentNumberScheduled": 1,
        "desiredNumberScheduled": 1,
        "numberMisscheduled": 0,
        "numberReady": 1,
    }


def main():
    # kubectl prints one List; kmm-plan prints one, too, or a single object.
    given = json.load(sys.stdin)
    items = given["items"] if given["kind"] == "List" else [given]
    for number, item in enumerate(items, 1):
        if item["kind"] == "DaemonSet":
            daemon_set_defaults(item, number)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1)
    for change in sys.argv[1:]:
        before, _, after = change.partition("=")
        if before not in text:
            sys.exit(f"as_served.py: nothing says {before}")
        text = text.replace(before, after, 1)
    print(text)


if __name__ == "__main__":
    main()
