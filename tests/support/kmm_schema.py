# SPDX-License-Identifier: Apache-2.0
"""Reads lib/schema/kmm.schema and makes CustomResourceDefinitions of a release out of it, for an API server to judge
objects by."""
import re

QUANTITY = (r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
            r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$")
SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
SCALARS = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "time": {"type": "string", "format": "date-time"},
    "quantity": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY,
    },
    "subdomain": {"type": "string", "pattern": SUBDOMAIN},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "empty": {"type": "object"},
}
MAIN = 7  # v2.7, which main is to become
MEMBER = re.compile(r"(\w+)(>=2\.\d+)?(<2\.\d+)?(!(?:>=2\.\d+)?(?:<2\.\d+)?)?$")


def known(since, until, minor):
    """Whether a part that is there from `since` on and before `until` (">=2.3", "<2.4" or None) is there in
    v2.`minor`."""
    return (not since or minor >= int(since[4:])) and (not until or minor < int(until[3:]))


def parse(text):
    """(kinds, types): lists of (kind, group/version, scope, since, members) and a map from a type's name to its members
    and rules."""
    kinds, types, members, rules = [], {}, None, None
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("kind "):
            words = line.split()
            members = []
            kinds.append((words[1], words[2], words[3], words[4] if len(words) > 4 else None, members))
        elif not line.startswith(" "):
            members, rules = [], []
            types[line.strip()] = (members, rules)
        else:
            key, value = line.strip().split(": ", 1)
            if key.startswith("one-of "):
                rules.append(value.split())
            elif not key.startswith(("hint ", "code ")):
                for word in value.split():
                    name, since, until, required = MEMBER.match(word).groups()
                    members.append((name, key, since, until, required))
    return kinds, types


def schema_of(types, name, minor):
    if name in SCALARS:
        return dict(SCALARS[name])
    if match := re.match(r"enum\((.*)\)$", name):
        return {"type": "string", "enum": match[1].split()}
    if match := re.match(r"\{(.*)\}$", name):
        return {"type": "object", "additionalProperties": schema_of(types, match[1], minor)}
    if match := re.match(r"\[(\w+)\](?:(\d+)\+)?(?:\.\.(\d+))?(?:by\((.*)\))?$", name):
        schema = {"type": "array", "items": schema_of(types, match[1], minor)}
        if match[2]:
            schema["minItems"] = int(match[2])
        if match[3]:
            schema["maxItems"] = int(match[3])
        if match[4]:
            schema["x-kubernetes-list-type"] = "map"
            schema["x-kubernetes-list-map-keys"] = match[4].split()
        return schema
    return object_of(types, *types[name], minor)


def object_of(types, members, rules, minor):
    schema = {"type": "object", "properties": {}}
    for name, type_, since, until, required in members:
        if not known(since, until, minor):
            continue
        schema["properties"][name] = schema_of(types, type_, minor)
        if required and known(*re.match(r"!(>=[\d.]+)?(<[\d.]+)?$", required).groups(), minor):
            schema.setdefault("required", []).append(name)
    for rule in rules:
        if all(name in schema["properties"] for name in rule):
            both = " && ".join(f"has(self.{name})" for name in rule)
            schema.setdefault("x-kubernetes-validations", []).append({"rule": f"!({both})"})
    return schema


def definitions(text, minor=MAIN, only=None):
    """The definitions that KMM v2.`minor` installs, one a kind, without prose. `only`: the names of kinds, None for
    all."""
    kinds, types = parse(text)
    made = {}
    for kind, version, scope, since, members in kinds:
        if (only is not None and kind not in only) or not known(since, None, minor):
            continue
        group, version = version.split("/")
        plural = kind.lower() + ("" if kind.endswith("OCP") else "s")
        definition = made.setdefault(
            kind,
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{group}"},
                "spec": {
                    "group": group,
                    "scope": scope,
                    "versions": [],
                    "names": {"kind": kind, "listKind": kind + "List", "plural": plural, "singular": kind.lower()},
                },
            },
        )
        root = object_of(types, members, [], minor)
        root["properties"].update(
            {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
        )
        for earlier in definition["spec"]["versions"]:
            earlier["storage"] = False
        definition["spec"]["versions"].append(
            {
                "name": version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": root},
            }
        )
    return list(made.values())


def case_object(case, version):
    """The object that a case of schema_cases.json is about; see schema_test.cpp, which makes the same one."""
    kind = case.get("kind", "Module")
    thing = {"apiVersion": version, "kind": kind, "metadata": {"name": "m"}}
    if kind in ("Module", "ModuleImagesConfig", "ModuleBuildSignConfig", "BootModuleConfig"):
        thing["metadata"]["namespace"] = "n"
    if kind == "Module":
        container = {"modprobe": {"moduleName": "m"}, "kernelMappings": [{"regexp": ".", "containerImage": "i:1"}]}
        spec = {"selector": {}, "moduleLoader": {"container": dict(container, **case.get("loader", {}))}}
        if "plugin" in case or "resources" in case:
            plugin = {"image": "i", "resources": case["resources"]} if "resources" in case else {"image": "i"}
            spec["devicePlugin"] = dict({"container": plugin}, **case.get("plugin", {}))
        if "dra" in case:
            spec["dra"] = dict({"driverName": "d", "container": {"image": "i"}}, **case["dra"])
        thing["spec"] = dict(spec, **case.get("spec", {}))
    return dict(thing, **case.get("root", {}))
