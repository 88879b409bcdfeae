# SPDX-License-Identifier: Apache-2.0
"""The containers of Pods that have a command of their own, for fake_api.py --kubelet: they run on this host.

Each Pod has an address of its own on the loopback network, where ports are shared. Its command finds busybox's applets
before all others, and nslookup asks the DNS of the cluster, which knows the Services. What a cluster can suffer from,
by the annotation test/network of a Node:

  cut         nobody reaches Pods there: what they listen on is another port than they think
  no-dns      the DNS does not answer there
  no-pull     images cannot be pulled there
  full        its kubelet takes no more Pods
  no-sandbox  its network add-on does not give Pods a network, which only an Event says
  stuck       Pods are deleted there only by force
"""
import itertools
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

ADDRESSES = itertools.count(2)
NSLOOKUP = """#!/usr/bin/env python3
import json, os, sys
known = json.loads(os.environ["TEST_SERVICES"])
name = sys.argv[1]
if known is None:
    sys.exit(";; connection timed out; no servers could be reached")
print("Server:\\t\\t10.96.0.10\\nAddress:\\t10.96.0.10:53\\n")
if name not in known:
    sys.exit(f"** server can't find {name}: NXDOMAIN")
print(f"Name:\\t{name}\\nAddress: {known[name]}\\n")
"""


def applets(directory):
    """A PATH with busybox's applets and the DNS of the cluster."""
    for name in ("nc", "grep", "sleep"):
        os.symlink("/bin/busybox", directory / name)
    program = directory / "nslookup"
    program.write_text(NSLOOKUP)
    program.chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"


def trouble_of(cluster, node):
    found = cluster.objects.get(("nodes", "", node), {})
    return found.get("metadata", {}).get("annotations", {}).get("test/network", "")


def services_of(cluster):
    return {f"{item['metadata']['name']}.{item['metadata']['namespace']}.svc.cluster.local.": item["spec"]["clusterIP"]
            for key, item in cluster.objects.items() if key[0] == "services"}


def is_wanted(cluster, key):
    with cluster.changed:
        pod = cluster.objects.get(key)
        return pod is not None and "deletionTimestamp" not in pod["metadata"]


def environment(container, pod_ip, services, path, trouble):
    variables = dict(os.environ, PATH=path, TEST_SERVICES=json.dumps(services))
    for each in container.get("env", []):
        field = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        variables[each["name"]] = pod_ip if field == "status.podIP" else each["value"]
    if trouble == "cut" and "listen" in container["name"]:
        variables["PORT"] = str(int(variables["PORT"]) + 10000)
    return variables


def run(cluster, key, pod, tell):
    """Runs it to its end, or until it is deleted. `tell(phase, state, **status)` writes its status."""
    container, node = pod["spec"]["containers"][0], pod["spec"]["nodeName"]
    trouble, number = trouble_of(cluster, node), next(ADDRESSES)
    if trouble == "no-pull":
        text = f'failed to pull image "{container["image"]}": no such host'
        tell("Pending", {"waiting": {"reason": "ErrImagePull", "message": text}})
        tell(
            "Pending",
            {"waiting": {"reason": "ImagePullBackOff", "message": f"Back-off pulling image: ErrImagePull: {text}"}},
        )
        return
    if trouble == "full":
        tell("Failed", {}, reason="OutOfpods", message="Pod was rejected: Node didn't have enough resource: pods")
        return
    if trouble == "no-sandbox":
        said = (("FailedCreatePodSandBox", "Warning", 'plugin type="bridge" failed (add): no such network'),
                ("SandboxChanged", "Normal", "Pod sandbox changed, it will be killed and re-created."))
        with cluster.changed:
            for number, (reason, kind, message) in enumerate(said):
                cluster.put({"apiVersion": "v1", "kind": "Event", "reason": reason, "type": kind, "message": message,
                             "metadata": {"name": f"{key[2]}.{number}", "namespace": key[1]},
                             "lastTimestamp": f"2026-01-01T00:00:0{number}Z",
                             "involvedObject": {"kind": "Pod", "uid": pod["metadata"]["uid"]}})
        return
    own = f"127.77.{number // 256}.{number % 256}"
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch, "bin")
        directory.mkdir()
        services = None if trouble == "no-dns" else services_of(cluster)
        with open(pathlib.Path(scratch, "log"), "w+", encoding="utf-8") as log:
            with subprocess.Popen(
                container["command"],
                env=environment(container, own, services, applets(directory), trouble),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            ) as child:
                begun = time.monotonic()
                is_going = tell("Running", {"running": {}}, podIP=own)
                while is_going and child.poll() is None and is_wanted(cluster, key):
                    if time.monotonic() - begun > pod["spec"].get("activeDeadlineSeconds", 3600):
                        break
                    time.sleep(0.05)
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                code = child.wait()
            log.seek(0)
            text = log.read().strip()[-4096:]
    message = text if code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError" else ""
    tell(
        "Succeeded" if code == 0 else "Failed",
        {
            "terminated": {
                "exitCode": code if code >= 0 else 128 - code,
                "reason": "Completed" if code == 0 else "Error",
                "message": message,
            }
        },
    )
    while trouble == "stuck" and key in cluster.objects:
        time.sleep(0.05)
