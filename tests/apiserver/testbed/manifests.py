# SPDX-License-Identifier: Apache-2.0
"""The YAML files of this tree on the server, which reads YAML itself: only what a path needs is looked at here."""
import re

from lab.common import wait_for

STRICT = {"fieldValidation": "Strict"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def documents(path):
    """(stub, text) of each document of a file: its apiVersion, kind, name and namespace, as block style writes them."""
    for text in re.split(r"^---\s*$", path.read_text(), flags=re.M):
        if not re.search(r"^kind:", text, re.M):
            continue
        block = re.search(r"^metadata:\n((?: +.*\n|\n)+)", text, re.M)[1]
        field = {name: re.search(rf"^{name}: *(\S+)", text, re.M)[1] for name in ("apiVersion", "kind")}
        meta = {m[1]: m[2].strip("\"'") for m in re.finditer(r"^  (name|namespace): *(\S+)", block, re.M)}
        yield dict(field, metadata=meta), text


def apply(api, path, manager="testbed", **query):
    """Applies all documents of a file or a directory, by server-side apply with strict field validation."""
    applied = []
    files = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
    for file in files:
        if file.name == "kustomization.yaml":
            continue
        for stub, text in documents(file):
            applied.append(api.request("PATCH", api.path_of(stub), text, "application/apply-patch+yaml",
                                       dict(STRICT, fieldManager=manager, force="true", **query)))
    return applied


def install_definitions(api, root, directory="manifests/crd"):
    """The kinds of a directory, served when this returns."""
    for definition in apply(api, root / directory):
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"

        def established(path=path):
            conditions = api.get(path).get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
        wait_for(f"{path} to be established", established, 300, 0.05)
        spec = definition["spec"]
        served = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        wait_for(f"{served} to be served", lambda served=served: api.raw("GET", served)[0] == 200, 300, 0.05)
