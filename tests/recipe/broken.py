# SPDX-License-Identifier: Apache-2.0
"""Broken charts, one fault each: metadata, values, schemas, templates, outputs, sub-charts, ignore files."""

import json

from broken_schemas import DRAFT4, DRAFT7, FORMATS, SCHEMAS
from broken_texts import KEYS, METADATA, OUTPUTS, PLACES, TEMPLATES, TOML, VALUES
from charts import ROOT, chart, dependent, sub

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"


def with_schema(schema, values="x: 1\n", given=(), **more):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return chart({"values.yaml": values, "values.schema.json": text}, given, **more)


def template(text, **files):
    return chart({"templates/broken.yaml": text, **files})


def subcharts():
    one = sub("one")
    yield chart({"charts/one/values.yaml": "a: 1\n"})
    yield chart({"charts/one/Chart.yaml": "name: one\n"})
    yield chart(
        {"charts/one/Chart.yaml": "apiVersion: v2\nname: other\nversion: 1.0.0\n", "charts/one/values.yaml": "a: 1\n"}
    )
    yield chart({"charts/one.tgz": "not an archive"})
    yield chart({"charts/one.zip": "not an archive"})
    yield chart({"charts/README.md": "text"})
    yield chart({"charts/.x/y": "text"})
    yield chart({"charts/_x/y": "text"})
    yield chart({"charts/one.tgz.prov": "text"})
    yield chart({"charts/x.tgz/Chart.yaml": "a: b"})
    yield chart({**one, "charts/one/values.schema.json": "{\"required\": [\"b\"]}"})
    yield chart({**one, "charts/one/values.schema.json": "{"})
    yield chart({**one, "charts/one/values.schema.json": "{\"required\": [\"b\"]}"}, ["one: {b: 1}"])
    yield chart({**one, "charts/one/values.yaml": "- a\n"})
    yield chart({**one, "charts/one/templates/s.yaml": "{{ .Values.x.y }}"})
    yield chart({**one, "charts/one/templates/s.yaml": "{{ template \"absent\" }}"})
    yield chart({**one, "Chart.lock": "{"})
    yield chart({**one, "Chart.lock": "dependencies: 5\n"})
    yield chart(
        {**one, "Chart.lock": "dependencies: [{name: other, version: 9.9.9}]\ndigest: x\ngenerated: yesterday\n"}
    )
    yield chart({**one, "Chart.lock": "generated: \"2020-01-01T00:00:00Z\"\n"})
    yield chart({**one, "Chart.lock": "- a\n"})
    yield chart({**one, "Chart.lock": ""})
    yield chart({**one, "requirements.lock": "{"})
    yield chart({**one, "requirements.yaml": "dependencies: [{name: absent, version: 1.0.0}]\n"})
    yield chart({**one, "requirements.yaml": "dependencies: 5\n"})
    yield chart({**one, "requirements.yaml": "- a\n"})
    yield chart(
        {**one, "requirements.yaml": "dependencies: [{name: one, version: 0.1.0, condition: one.on}]\n"},
        ["one: {on: false}"],
    )
    yield chart(
        {
            **one,
            "requirements.yaml": "dependencies: [{name: one, version: 0.1.0, condition: one.on}]\n",
            "Chart.yaml": ROOT.replace("v2", "v1"),
        },
        ["one: {on: false}"],
    )
    for line in [
        "condition: [a]",
        "condition: 5",
        "condition: ''",
        "condition: ','",
        "condition: ' one.on '",
        "condition: one.on",
        "condition: one.absent",
        "condition: one",
        "condition: one.a",
        "condition: x.on, one.on",
        "tags: a",
        "tags: [1]",
        "tags: [a, b]",
        "enabled: false",
        "enabled: x",
        "alias: a.b",
        "alias: 'a b'",
        "alias: ''",
        "alias: 5",
        "alias: one",
        "alias: UPPER",
        "alias: a/b",
        "repository: 5",
        "repository: not a url",
        "repository: 'file://../one'",
        "repository: '@alias'",
        "import-values: data",
        "import-values: [5]",
        "import-values: [null]",
        "import-values: [{}]",
        "import-values: [{child: a}]",
        "import-values: [{child: a, parent: b}]",
        "import-values: [{child: 5, parent: b}]",
        "import-values: [{child: [a], parent: b}]",
        "import-values: [[a]]",
        "import-values: [absent]",
        "import-values: ['']",
        "import-values: [{child: '', parent: ''}]",
    ]:
        for given in ["{}", "one: {on: false}\ntags: {a: false}", "one: {on: 'false'}"]:
            yield chart({**one, **dependent("- {name: one, version: 0.1.0}\n".replace("}", ", %s}" % line))}, [given])
    for version in [
        "'*'",
        "'>=0.1.0'",
        "0.2.0",
        "''",
        "nonsense",
        "'>=0.1'",
        "latest",
        "1",
        "'^0'",
        "'0.1.0 - 0.2.0'",
        "~",
    ]:
        yield chart({**one, **dependent("- {name: one, version: %s}\n" % version)})
        yield chart({**sub("one", version="0.1.0-rc.1"), **dependent("- {name: one, version: %s}\n" % version)})
        yield chart({**sub("one", version="bad"), **dependent("- {name: one, version: %s}\n" % version)})
    yield chart({**one, **dependent("- {name: one}\n")})
    yield chart({**one, **dependent("- {name: one, version: 0.1.0}\n- {name: one, version: 0.1.0}\n")})
    yield chart(
        {**one, **dependent("- {name: one, version: 0.1.0}\n- {name: two, version: 0.1.0, condition: two.on}\n")},
        ["two: {on: false}"],
    )
    yield chart({**one, **dependent("- {name: one, version: 0.1.0, alias: top}\n")})
    yield chart(
        {**one, **sub("two"), **dependent("- {name: one, version: 0.1.0, alias: two}\n- {name: two, version: 0.1.0}\n")}
    )
    yield chart({**one, **sub("lib", "", "type: library\n"), "charts/lib/templates/x.yaml": "kind: A\n"})
    yield chart({**sub("lib", "", "type: nonsense\n")})
    yield chart({**sub("old", "", "").copy(), "charts/old/Chart.yaml": "name: old\nversion: 0.1.0\ntype: library\n"})
    yield chart({**sub("k", "", "kubeVersion: '>=1.99.0'\n")})
    for values in [
        "one: 5",
        "one: text",
        "one: [a]",
        "one: null",
        "one: true",
        "global: {a: 1}\none: {global: 5}",
        "one: {global: {a: 2}}\nglobal: {a: {b: 1}}",
    ]:
        yield chart(one, [values])
        yield chart({**one, "values.yaml": values})


def read_twice():
    """requirements.yaml is decoded over Chart.yaml; fields are found in any case."""
    show = {"templates/c.yaml": "kind: C\nc: {{ toJson .Chart | quote }}\n"}
    one = sub("one")
    for keys in ["apiversion: v1", "Description: a\nDESCRIPTION: b", "DESCRIPTION: a\nDescription: ~"]:
        yield chart({**show, "Chart.yaml": ROOT + keys + "\n"})
    filled = "annotations: {a: b}\nmaintainers: [{name: a, email: b}]\nkeywords: [a, b]\nsources: [a]\n"
    for over in [
        "annotations: {c: d}", "annotations: ~", "maintainers: [{url: x}]", "maintainers: []", "maintainers: ~",
        "keywords: [~]", "keywords: []", "keywords: ~",
        "sources: [~, b, ~]", "Keywords: [c]", "version: x", "kubeVersion: '>9'",
        "type: library",
    ]:
        yield chart({**show, "Chart.yaml": ROOT + filled, "requirements.yaml": over + "\n"})
    for over in [
        "[{name: one, version: 0.1.0}]", "[{nam: a}]", "[{alias: three}]", "[{}, {name: one, version: 0.1.0}]", "[]",
        "[{name: one, tags: [~]}]", "[{import-values: []}]", "[{import-values: ~, tags: ~}]",
        "[{condition: one.on}, {name: absent}]", "[{name: absent}]", "[{alias: a.b}]",
    ]:
        for version in ["v1", "v2"]:
            root = ROOT.replace("v2", version) + "dependencies: [{name: one, version: 0.1.0, alias: two, tags: [a]}]\n"
            yield chart({**show, **one, "Chart.yaml": root, "requirements.yaml": "dependencies: " + over + "\n"},
                        ["two: {on: false}\none: {on: false}\n"])


def ignored():
    for rules in [
        "*.yaml",
        "templates/",
        "/templates",
        "templates/*.yaml",
        "!templates/show.yaml",
        "**/x",
        "[",
        "# c\n\n",
        "show.yaml",
        "a[",
        "Chart.yaml",
        "values.yaml",
        "\\",
        "*",
        "*/",
        "?how.yaml",
        "[st]how.yaml",
        "[^s]how.yaml",
        "charts/",
        "charts",
        "templates/show.yaml/",
        "./templates/show.yaml",
    ]:
        yield chart({".helmignore": rules, **sub("one")})


def cases():
    for text in METADATA:
        yield chart({"Chart.yaml": text})
    for text in KEYS:
        yield chart({"values.yaml": text})
    for text in VALUES:
        yield chart({"values.yaml": text})
        yield chart({"values.yaml": "x: 1\n"}, [text])
        yield chart(
            {
                "templates/t.yaml": OBJECT + "data:\n  t: {{ .Files.Get \"t.yaml\" | fromYaml | toJson | quote }}\n",
                "t.yaml": text,
            }
        )
    for schema, values in SCHEMAS:
        yield with_schema(schema, values)
    for name, texts in FORMATS.items():
        for text in texts:
            for draft in [DRAFT7, {}] if text == texts[1 if len(texts) > 1 else 0] else [DRAFT7]:
                yield with_schema({**draft, "properties": {"x": {"format": name}}}, json.dumps({"x": text}))
        yield with_schema({**DRAFT4, "properties": {"x": {"format": name}}}, "x: 5")
    for text in TEMPLATES:
        yield template(text)
        yield template(OBJECT + "data:\n  x: " + text + "\n")
    for text in OUTPUTS:
        yield template(text)
        yield template(OBJECT.replace("name: a", "name: z") + "---\n" + text)
    for text in TOML:
        print_it = "{{ $t := .Files.Get \"t.toml\" | fromToml }}"
        print_it += "t: {{ if hasKey $t \"Error\" }}fault{{ else }}{{ toJson $t | quote }}{{ end }}\n"
        yield chart({"templates/t.yaml": print_it, "t.toml": text})
    for place in PLACES:
        yield chart({place: "{{ .Values.x.y }}"})
        yield chart({place: "a: b: c"})
        yield chart({place: OBJECT})
    yield from subcharts()
    yield from read_twice()
    yield from ignored()
