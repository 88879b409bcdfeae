# SPDX-License-Identifier: Apache-2.0
"""Whole charts: values, sub-charts, hooks, schema, order. Each is rendered with both libraries."""

ROOT = "apiVersion: v2\nname: top\nversion: 1.0.0\n"
SHOW = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: %s}\ndata:\n  values: {{ toJson .Values | quote }}\n  chart: {{ .Chart.Name }}-{{ .Chart.Version }}\n"


def obj(kind, name, extra=""):
    return "apiVersion: v1\nkind: %s\nmetadata:\n  name: %s\n%s" % (kind, name, extra)


def sub(name, values="a: 1\n", extra="", version="0.1.0", base="charts/"):
    return {"%s%s/Chart.yaml" % (base, name): "apiVersion: v2\nname: %s\nversion: %s\n%s" % (name, version, extra),
            "%s%s/values.yaml" % (base, name): values, "%s%s/templates/s.yaml" % (base, name): SHOW % name}


def chart(files, values=(), sets=(), **more):
    made = {"Chart.yaml": ROOT, "values.yaml": "x: 1\n", "templates/show.yaml": SHOW % "top"}
    made.update(files)
    return dict(
        {
            "files": {k: v for k, v in made.items() if v is not None},
            "values": list(values),
            "set": list(sets),
            "release": "rel",
            "namespace": "ns",
        },
        **more
    )


def dependent(text):
    return {"Chart.yaml": ROOT + "dependencies:\n" + text}


def cases():
    kinds = [
        "Deployment",
        "Service",
        "Namespace",
        "Zebra",
        "Apple",
        "ConfigMap",
        "DaemonSet",
        "ClusterRole",
        "Secret",
        "CustomResourceDefinition",
        "Job",
    ]
    yield chart(
        {
            "templates/all.yaml": "---\n".join(obj(k, k.lower()) for k in kinds),
            "templates/z.yaml": obj("Apple", "second"),
        }
    )
    yield chart(
        {
            "templates/hooks.yaml": obj("Job", "h", '  annotations:\n    "helm.sh/hook": pre-install,post-install\n')
            + "---\n"
            + obj("Pod", "t", '  annotations: {"helm.sh/hook": test}\n')
            + "---\n"
            + obj("Pod", "u", '  annotations: {"helm.sh/hook": nonsense}\n')
            + "---\n"
            + obj("Pod", "v", "  annotations: {x: y}\n")
        }
    )
    yield chart({"templates/bad.yaml": obj("Pod", "v", "  annotations: {x: true}\n")})
    yield chart({"templates/bad.yaml": "a: b: c"})
    yield chart({"templates/bad.yaml": "- a\n- b\n"})
    yield chart(
        {
            "templates/docs.yaml": "# only a comment\n---\n\n---\n"
            + obj("A", "a")
            + "--- # trailing\n"
            + obj("B", "b")
            + "\n---\n---\n"
            + obj("C", "c")
            + "---"
        }
    )
    yield chart(
        {
            "templates/empty.yaml": "  \n{{ if false }}x{{ end }}\n",
            "templates/NOTES.txt": "notes {{ .Release.Name }}",
            "templates/_p.tpl": "partial",
        }
    )
    yield chart({"templates/n.yaml": "null", "templates/num.yaml": "---\n# c\n"})
    yield chart(
        {}, ["x: 2\ny: {z: 1}"], ["y.z=5,w=abc,l={a,b},l2[1].q=1,t=true,n=null,f=1.5,e=,big=0123,esc=a\\,b,dot\\.ted=1"]
    )
    for wrong in [
        "a",
        "a,b=1",
        "l={a",
        "a[x]=1",
        "a[-1]=2",
        "a.b",
        "=1",
        "x.y=1",
        "a[0]x=1",
        "a[70000]=1",
        "l[0][1]=x",
        "a..b=1",
        "a.=1",
        "l[0].a=1,l[1].b=2",
        "a={}",
        "a={,}",
        "n[0].a=",
        "n[0][1].a=",
        "n[0].a=,n[1].b=2",
        "n[0][0]=",
    ]:
        yield chart({}, [], [wrong])
    defaults = "a: 1\nb: {c: 2, d: {e: 3}}\nn: null\nl: [1]\nm: {k: null}\n"
    for given in [
        "a: null",
        "b: null",
        "b: {c: null}",
        "b: 5",
        "a: {x: 1}",
        "l: null",
        "n: 1",
        "m: {k: 2}",
        "b: {d: {e: null}}",
        "new: null",
        "b: {q: null}",
        "",
    ]:
        yield chart({"values.yaml": defaults}, [given])
        yield chart(
            {
                "values.yaml": "s: {a: 5, b: {c: 9}}\nglobal: {g: 1, t: {u: 2}}\n" + defaults,
                **sub("s", defaults + "global: {g: 0, h: 3, t: {v: 1}}\n"),
            },
            [given, "s: {%s}" % given if given else "{}"],
        )
    yield chart(sub("s"), ["s: 5"])
    yield chart(sub("s"), ["s: null"])
    yield chart(sub("s"), ["global: 5"])
    two = {**sub("one"), **sub("two", "b: 2\n", version="0.2.0")}
    listed = "- {name: one, version: 0.1.0, condition: 'one.on,x.on', tags: [t1]}\n- {name: two, version: '>=0.1', condition: two.on, tags: [t1, t2]}\n"
    for given in [
        "{}",
        "one: {on: false}",
        "two: {on: false}\ntags: {t1: false}",
        "tags: {t1: false}",
        "tags: {t1: false, t2: true}",
        "x: {on: false}",
        "one: {on: 5}",
        "tags: 5",
        "tags: {t1: null}",
    ]:
        yield chart({**two, **dependent(listed)}, [given])
    yield chart(
        {
            **two,
            **dependent(
                "- {name: one, version: 0.1.0, alias: first}\n- {name: one, version: 0.1.0, alias: second, condition: "
                "second.on}\n"
            ),
        },
        ["first: {a: 7}\nsecond: {on: false}"],
    )
    yield chart(
        {**two, **dependent("- {name: one, version: 0.1.0, alias: first}\n- {name: one, version: 0.1.0}\n")},
        ["first: {a: 7}"],
    )
    yield chart({**two, **dependent("- {name: absent, version: 0.1.0}\n")})
    yield chart({**two, **dependent("- {name: one, version: 9.0.0}\n")})
    exports = "exports: {data: {from: child, n: {m: 1}}}\ninner: {p: {q: 1}, x: 2}\n"
    yield chart(
        {
            **sub("one", exports),
            **dependent(
                "- {name: one, version: 0.1.0, import-values: [data, {child: inner.p, parent: here.p}, {child: inner, "
                "parent: .}, missing]}\n"
            ),
        },
        ["n: {m: 9}"],
    )
    yield chart(
        {
            **sub("one", exports),
            **dependent("- {name: one, version: 0.1.0, import-values: [data]}\n"),
            "values.yaml": "from: top\nn: null\n",
        }
    )
    yield chart(
        {
            **sub("one", "a: {}\n"),
            **sub("two", "b: {k: 1}\n"),
            **dependent(
                "- {name: one, version: 0.1.0, import-values: [{child: a, parent: a}]}\n"
                "- {name: two, version: 0.1.0, import-values: [{child: b, parent: a.b}]}\n"
            ),
        }
    )
    yield chart(
        {
            **sub("lib", "", "type: library\n"),
            "charts/lib/templates/_l.tpl": '{{ define "lib.x" }}from-lib {{ .Chart.Name }}{{ end }}',
            "templates/use.yaml": 'a: {{ include "lib.x" . }}',
        }
    )
    yield chart({"Chart.yaml": ROOT + "type: library\n"})
    yield chart(
        {
            **sub("s"),
            **sub("t", "deep: 1\n", base="charts/s/charts/"),
            "templates/subs.yaml": "a: {{ .Subcharts.s.Values.a }}\nb: {{ .Subcharts.s.Subcharts.t.Values | toJson "
            "}}\n",
        },
        ["s: {t: {deep: 2}}\nglobal: {a: b}"],
    )
    yield chart(
        {
            "crds/b.yaml": "kind: CustomResourceDefinition\nn: b",
            "crds/a.yml": "kind: CustomResourceDefinition\nn: a\n",
            "crds/README.md": "x",
            **sub("s"),
            "charts/s/crds/c.yaml": "kind: C\n",
        },
        includeCRDs=True,
    )
    yield chart({"Chart.yaml": ROOT + "kubeVersion: '>=1.25.0-0'\n"})
    yield chart(
        {
            "Chart.yaml": ROOT + "kubeVersion: '>=1.25.0-0'\n",
            "templates/v.yaml": "v: {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.Minor }} {{ "
            ".Capabilities.APIVersions.Has \"my/v1\" }}",
        },
        kubeVersion="v1.27.10+k3s1",
        apiVersions=["my/v1"],
    )
    for wrong in [
        "name: top\n",
        "version: 1.0.0\n",
        "apiVersion: v2\nname: top\nversion: 1.0\n",
        "apiVersion: v2\nname: a/b\nversion: 1.0.0\n",
        "name: top\nversion: x\n",
        "- a\n",
        "name: [",
        ROOT + "type: other\n",
        ROOT + "appVersion: 1.5\n",
        ROOT + "annotations: {a: 1}\n",
        ROOT + "dependencies: [null]\n",
        ROOT + "keywords: x\n",
        ROOT + "description: \"a\\tb\"\nNAME: z\n",
    ]:
        yield chart({"Chart.yaml": wrong})
    yield chart({"Chart.yaml": None})
    yield chart({"values.yaml": "a: [1"})
    yield chart({"values.yaml": "- a\n"})
    yield chart(
        {"values.yaml": "a: &x {b: 1, c: 2}\nd: *x\ne: {<<: *x, b: 5}\nf: {b: 7, <<: *x}\ng: {<<: [*x, {z: 1}]}\n"}
    )
    yield chart(
        {
            "values.yaml": "a: 1\na: 2\n1: x\ntrue: y\n1.5: z\nyes: q\n0x10: h\n'o': p\ndate: 2020-01-02\nb: !!binary "
            "aGk=\ns: !!str 5\nf: !!float 5\nu: !foo 1\nv: 0o17\nw: 017\nx: 1_000\ny: 12:30:45\nz: .inf2\n"
        }
    )
    yield chart({"values.yaml": "a: .inf\n"})
    yield chart(
        {
            "values.yaml": "a: |\n  x\n  y\nb: >\n  x\n  y\n\n  z\nc: 'it''s'\nd: \"\\u00e9\\n\"\ne: |-\n   keep\nf: "
            ">+\n  z\n\n"
        }
    )
    schema = '{"type": "object", "required": ["x"], "properties": {"x": {"type": "integer", "minimum": 1, "maximum": 9}, "s": {"enum": ["a", "b"]}, "l": {"type": "array", "items": {"type": "string", "pattern": "^a"}, "minItems": 1, "uniqueItems": true}}, "additionalProperties": false}'
    for given in [
        "{}",
        "x: 0",
        "x: 10",
        "x: 1.5",
        "x: '1'",
        "x: null",
        "s: c",
        "s: a",
        "l: []",
        "l: [ab, b]",
        "l: [a, a]",
        "l: [a]",
        "other: 1",
        "x: 5",
    ]:
        yield chart({"values.schema.json": schema}, [given])
    more = '{"definitions": {"p": {"type": ["string", "null"], "minLength": 2}}, "properties": {"a": {"$ref": "#/definitions/p"}, "b": {"oneOf": [{"type": "string"}, {"const": 5}]}, "c": {"not": {"type": "number"}}, "d": {"if": {"type": "string"}, "then": {"maxLength": 2}, "else": {"multipleOf": 2}}}}'
    for given in [
        "a: x",
        "a: xx",
        "a: null",
        "b: 5",
        "b: 6",
        "b: q",
        "c: 1",
        "c: x",
        "d: abc",
        "d: ab",
        "d: 3",
        "d: 4",
    ]:
        yield chart({"values.schema.json": more}, [given])
    yield chart({"values.schema.json": "{"})
    old = '"$schema": "http://json-schema.org/draft-04/schema#", '
    for one in [
        '"type": "strin"',
        '"type": []',
        '"type": 5',
        '"properties": []',
        '"required": "x"',
        '"required": ["q"]',
        '"required": ["x", "x"]',
        '"required": []',
        '"multipleOf": 0',
        '"minLength": -1',
        '"maxItems": 1.5',
        '"maxItems": 1.0',
        '"pattern": "("',
        '"patternProperties": {"(": {}}',
        '"allOf": []',
        '"items": [{}]',
        '"items": {}',
        '"items": 5',
        '"additionalItems": 5',
        '"$schema": "x"',
        '"not": 5',
        '"not": {}',
        '"exclusiveMinimum": true',
        '"minimum": "1"',
        '"$ref": "#/definitions/x"',
        '"$ref": 5',
        '"properties": {"a": {"enum": 5}}',
        '"enum": []',
        '"enum": [1, 1]',
        '"const": [1]',
        '"if": 1',
        '"then": 1',
        '"title": 5',
        '"uniqueItems": 1',
        '"examples": 1',
        '"dependencies": {"x": 1}',
        '"dependencies": {"x": ["q"]}',
        '"dependentRequired": {"x": ["q"]}',
        '"dependentRequired": {"x": 1}',
        '"$defs": 5',
        '"definitions": {"a": 5}',
        '"prefixItems": []',
        '"contains": 1',
        '"propertyNames": 1',
        '"format": 1',
        '"unknown": 1',
        '"default": 1',
        '"description": 1',
        '"$comment": 1',
        '"$id": 5',
        '"$anchor": 5',
        '"minContains": -1',
        '"readOnly": "x"',
        '"deprecated": 1',
        '"additionalProperties": 1',
        '"additionalProperties": true',
        '"contentEncoding": 1',
    ]:
        yield chart({"values.schema.json": "{%s}" % one})
        yield chart({"values.schema.json": "{%s%s}" % (old, one)})
        yield chart({"values.schema.json": "{%s%s}" % (old.replace("04", "07"), one)})
    for given in ["l: []", "l: [1]", "l: [1, 2, 3]", "l: [a]"]:
        yield chart(
            {
                "values.schema.json": '{"properties": {"l": {"contains": {"type": "integer"}, "minContains": 1, '
                '"maxContains": 2}, "const": {}, "if": {"type": "array"}}}'
            },
            [given],
        )
        yield chart(
            {
                "values.schema.json": '{%s"properties": {"l": {"contains": {"type": "integer"}, "minContains": 2}}}'
                % old.replace("04", "07")
            },
            [given, "const: 1"],
        )
    for url in [
        "http://json-schema.org/schema#",
        "https://json-schema.org/schema",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-06/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema#",
        "http://json-schema.org/draft-07/schema#/x",
        "json-schema.org/schema",
        "http://json-schema.org/draft-03/schema#",
        "http://json-schema.org/draft-08/schema#",
        "",
    ]:
        yield chart({"values.schema.json": '{"$schema": "%s", "const": {}}' % url})
        yield chart({"values.schema.json": '{"$schema": "%s", "exclusiveMinimum": true, "minimum": 1}' % url})
    for whole in ["[]", "5", "true", "false", "null", "{} x", "\ufeff{}"]:
        yield chart({"values.schema.json": whole})
    yield chart(
        {
            "templates/a.yaml": '{{ define "x" }}top{{ end }}a: {{ include "x" . }}',
            **sub("s"),
            "charts/s/templates/b.yaml": '{{ define "x" }}sub{{ end }}b: {{ include "x" . }}',
        }
    )
    yield chart(
        {
            "templates/a.yaml": '{{ $_ := set .Values "x" "changed" }}a: {{ .Values.x }}',
            "templates/b.yaml": "b: {{ .Values.x }}",
        }
    )
    yield chart(
        {
            "templates/a.yaml": '{{ include "loop" . }}',
            "templates/_l.tpl": '{{ define "loop" }}{{ include "loop" . }}{{ end }}',
        }
    )
    yield chart(
        {
            "templates/sub/deep/a.yaml": "a: {{ .Template.Name }} {{ .Template.BasePath }}\n",
            "templates/b.txt": "kind: X\n",
        }
    )
