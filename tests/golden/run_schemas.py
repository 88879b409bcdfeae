#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the JSON documents that the golden cases print with the schemas of docs/schema, one a kind, and the kinds of
the sources with those that have a schema. Each member of a schema has a description.

Usage: run_schemas.py BIN_DIR SOURCE_DIR
"""
import copy
import json
import pathlib
import re
import subprocess
import sys

FORMAT = "kmmtools/v1"
# Kinds of files and of requests, which no verb prints.
UNPRINTED = {"ImagePolicy", "KubernetesNodeBackup", "NodeJob", "NodeJobResult"}
PRINTED = re.compile(
    r'kmmtools/v1"\},\s*\{"kind", "(\w+)"|\b(?:document|document_of|headed)\("(\w+)"\)|"(Kubernetes(?:Health|Check))"'
    r'|\{"kind", (?:\{\}, )?"(KubernetesVersion)"|"(Images)"|Value::string\("(Recipe)"\)'
)
LEAST = 80  # documents in the golden cases


def documents(text):
    """The JSON documents of our format in what a case prints; each begins a line."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        if at and text[at - 1] != "\n":
            at += 1
            continue
        try:
            document, length = decoder.raw_decode(text[at:])
        except ValueError:
            at += 1
            continue
        at += length
        if document.get("apiVersion") == FORMAT:
            yield document


def open_objects(schema, path="#"):
    """Where a schema has objects that take any member."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "additionalProperties" not in schema:
            yield path
        for key, value in schema.items():
            yield from open_objects(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from open_objects(value, f"{path}/{index}")


def read_schema(path, faults):
    """The schema. A member that stands twice in an object is a fault: readers take the last."""

    def mapping(pairs):
        names = [name for name, _ in pairs]
        twins = sorted({name for name in names if names.count(name) > 1})
        faults.extend(f"{path.name}: {name} twice in one object" for name in twins)
        return dict(pairs)

    return json.loads(path.read_text(), object_pairs_hook=mapping)


def undescribed(schema, root, path="#"):
    """Where a schema has members that it does not describe, neither there nor in the definition that they refer to.
    Kind and apiVersion of the document need no words."""
    if isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from undescribed(value, root, f"{path}/{index}")
    if not isinstance(schema, dict):
        return
    for name, member in schema.get("properties", {}).items():
        if schema is root and name in ("apiVersion", "kind"):
            continue
        words = member.get("description") if isinstance(member, dict) else None
        if isinstance(member, dict) and set(member) == {"$ref"}:
            words = root["$defs"][member["$ref"].rpartition("/")[2]].get("description")
        if not isinstance(words, str) or not words.strip():
            yield f"{path}/{name}"
        yield from undescribed(member, root, f"{path}/{name}")
    for key, value in schema.items():
        if key != "properties":
            yield from undescribed(value, root, f"{path}/{key}")


def with_unknown(document):
    """The document with a member that nobody knows, in its root and in its first object below."""
    root, deep = copy.deepcopy(document), copy.deepcopy(document)
    root["unknownMember"] = 1
    yield root
    for value in deep.values():
        inner = value[0] if isinstance(value, list) and value else value
        if isinstance(inner, dict) and "code" in inner:
            inner["unknownMember"] = 1
            yield deep
            return


def printed_kinds(source):
    found = set()
    for room in ("lib", "tools"):
        for path in sorted((source / room).rglob("*.cpp")):
            found |= {name for match in PRINTED.finditer(path.read_text()) for name in match.groups() if name}
    return found - UNPRINTED


def main():
    try:
        import jsonschema
    except ImportError:
        print("SKIP: no python3-jsonschema")
        return 77
    bin_dir, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    faults, schemas, count = [], {}, {}
    index = (source / "docs/schema/README.md").read_text()
    for path in sorted((source / "docs/schema").glob("*.json")):
        schema = read_schema(path, faults)
        jsonschema.Draft202012Validator.check_schema(schema)
        schemas[path.stem], count[path.stem] = jsonschema.Draft202012Validator(schema), 0
        faults += [f"{path.name}: {place} takes any member" for place in open_objects(schema)]
        faults += [f"{path.name}: {place} has no description" for place in undescribed(schema, schema)]
        if f"({path.name})" not in index:
            faults.append(f"docs/schema/README.md does not list {path.name}")
    kinds = printed_kinds(source)
    faults += [f"kind {kind} is printed and has no schema" for kind in sorted(kinds - schemas.keys())]
    faults += [f"kind {kind} has a schema and nothing prints it" for kind in sorted(schemas.keys() - kinds)]

    printed = [
        (
            f"{tool} explain",
            subprocess.run(
                [bin_dir / tool, "explain", "-o", "json"], capture_output=True, text=True, check=True
            ).stdout,
        )
        for tool in ("kmm-plan", "kmm-upgrade", "kmm-worker")
    ]
    printed += [(f"{path.parent.parent.name}/{path.parent.name}", re.sub(r": <\w+>", ": 1", path.read_text()))
                for path in sorted((source / "tests/golden").glob("kmm-*/*/expect.out"))]
    for name, text in printed:
        for document in documents(text):
            kind = document.get("kind")
            if kind not in schemas:
                faults.append(f"{name}: kind {kind} has no schema")
                continue
            count[kind] += 1
            for error in schemas[kind].iter_errors(document):
                faults.append(f"{name}: {kind} {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
            for broken in with_unknown(document):
                if schemas[kind].is_valid(broken):
                    faults.append(f"{name}: the schema of {kind} takes an unknown member")
    faults += [f"kind {kind} is in no golden case" for kind, number in count.items() if number == 0]
    print(*faults, f"{sum(count.values())} documents of {len(count)} kinds, {len(faults)} faults", sep="\n")
    return 1 if faults or sum(count.values()) < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
