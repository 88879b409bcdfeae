# SPDX-License-Identifier: Apache-2.0
"""Nodes that only the API server knows."""
import concurrent.futures

KERNEL = "6.1.0-18-amd64"


def node(name, kernel=KERNEL, labels=None, ready=True, **options):
    """A Node object as a kubelet would register it; `annotations`, `taints`, `boot_id`, `arch`, `os_image` as
    options."""
    arch = options.get("arch", "amd64")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": options.get("annotations") or {},
            # With the two that a controller would add, at a moment of its own.
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": arch,
                "kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": arch,
                "beta.kubernetes.io/os": "linux",
                **(labels or {}),
            },
        },
        "spec": {"taints": options.get("taints") or []},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "capacity": {"cpu": "64", "memory": "256Gi", "pods": "250"},
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"},
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "reason": "Testbed",
                    "message": "fake",
                    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "nodeInfo": {
                "architecture": arch,
                "bootID": options.get("boot_id", f"boot-{name}"),
                "kernelVersion": kernel,
                "containerRuntimeVersion": "containerd://1.7.0",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.34.4",
                "machineID": f"machine-{name}",
                "operatingSystem": "linux",
                "systemUUID": f"uuid-{name}",
                "osImage": options.get("os_image", "Debian GNU/Linux 12 (bookworm)"),
            },
        },
    }


def create(api, nodes, threads=8):
    """Creates nodes, many at a time."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(api.create, nodes))


def reboot(api, name, boot_id):
    """What a reboot changes for the API server."""
    api.patch(f"/api/v1/nodes/{name}/status", {"status": {"nodeInfo": {"bootID": boot_id}}})
