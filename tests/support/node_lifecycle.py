# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes' node lifecycle controller does to Nodes, for fake_api.py."""

CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def taint_cordon(node):
    """As the node lifecycle controller does: a cordon's taint comes and goes with spec.unschedulable."""
    spec = node.get("spec") or {}
    taints = [taint for taint in spec.get("taints") or [] if taint["key"] != CORDON_TAINT["key"]]
    if spec.get("unschedulable"):
        taints.append(dict(CORDON_TAINT))
    if taints:
        spec["taints"] = taints
    else:
        spec.pop("taints", None)
