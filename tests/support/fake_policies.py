# SPDX-License-Identifier: Apache-2.0
"""ValidatingAdmissionPolicies of fake_api.py: once a binding is there, its policy refuses Helm releases; nothing of CEL
is evaluated."""
GROUP = "admissionregistration.k8s.io"
KINDS = [("validatingadmissionpolicies", GROUP, "v1", "ValidatingAdmissionPolicy", False),
         ("validatingadmissionpolicybindings", GROUP, "v1", "ValidatingAdmissionPolicyBinding", False)]
LATE = 2  # a binding has no effect on that many requests yet
refused = {"late": LATE}


def serve(kinds, by_kind):
    kinds += KINDS
    by_kind.update({kind: (plural, group, version, namespaced) for plural, group, version, kind, namespaced in KINDS})


def refusal(cluster, plural, body):
    """Why a write is refused, "" if it is not."""
    names = sorted(key[2] for key in cluster.objects if key[0] == "validatingadmissionpolicybindings")
    if not names or not isinstance(body, dict):
        return ""
    labels = body["metadata"].get("labels") or {}
    is_release = (plural == "secrets" and body.get("type") == "helm.sh/release.v1"
                  or plural == "configmaps" and labels.get("owner") == "helm")
    if not is_release:
        return ""
    refused["late"] -= 1
    if refused["late"] >= 0:
        return ""
    return f'{plural} "{body["metadata"]["name"]}" is forbidden: ValidatingAdmissionPolicy \'{names[0]}\' with binding \'{names[0]}\' denied request: frozen'
