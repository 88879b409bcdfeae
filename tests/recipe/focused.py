# SPDX-License-Identifier: Apache-2.0
"""Random cases about one thing each: texts as YAML and JSON, printf, versions, times, merging, charts with
sub-charts."""

import json
import random

from charts import SHOW

PIECES = ["a", "b: ", "c", ":", "- ", "-", "  ", " ", "\n", "\n  ", "\n- ", "{", "}", "[", "]", ",", ", ", "'", '"',
          "#", " # c", "&x ", "*x", "!", "!!str ", "!!int ", "|", ">", "|-", ">+", "|2",
          "?", "? ", "%", "@", "`", "\t", "\\", "\\n", "\\x41", "\\u00e9", "~", "null", "true", "no", "yes", "1", "0",
          "-1", "1.5", "0x1f", "0o7", "017", "1_0", ".5", "1e3", "1e400", ".inf", ".nan", "---",
          "...", "--- ", "2020-01-02", "2020-01-02T03:04:05Z", "12:30", "<<: ", "<<", "=", "é", "日本", "\u0085",
          "\u2028", "\u00a0", "\ufeff", "\x01", "\x7f", "key: value", "k: [1, 2]", "k: {a: b}", "%YAML 1.2\n---\n",
          "%YAML 1.1\n---\n", "word " * 20, "it's", 'say "x"', "a: b", "x\r\ny", "\r", "|\n  text\n  more\n",
          ">\n  text\n  more\n\n  end\n"]
JSON_PIECES = ["{", "}", "[", "]", ",", ":", '"a"', '"b"', "1", "-0", "1.5e3", "1e400", "-1e999", "01", "1.", ".5",
               "true", "nul", "null", '"\\u0041"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\q"', '"x', " ",
               "\n", "'", "é", "\x01", '{"a": 1}', "[1, 2]", '{"k": [true, null]}', "NaN", "/", '"<&>"']
VERBS = "vdsqxXobOeEfFgGtTcUz%p"
LAYOUTS = ["2006-01-02", "02 Jan 06 15:04 MST", "Mon Jan _2 15:04:05 2006", "2006-01-02T15:04:05.999999999Z07:00",
           "3:04PM", "Monday", "002", ".000", "05.00", "Z0700", "-07", "January 2", "1/2/06", "x2006y", "__2"]
TIMES = ["2017-12-31", "31 Dec 17 23:59 UTC", "Sun Dec 31 23:59:59 2017", "2017-12-31T23:59:59.5Z",
         "2017-12-31T23:59:59+02:00", "3:04PM", "", "x", "2017-13-01", "2016-02-29", "2015-02-29"]
VERSIONS = ["1.2.3", "v1.20.0", "1.2.3-rc.1", "0.2.5", "3", "2.0", "x", "1.27.10+k3s1", "0.0.0", "1.2.3-alpha.10",
            "1.2.3-alpha.9", "1.2.3-0", "01.2.3", "1.2.3.4", "1.2.3-", "v1.2.3-gke.100", "99999999999999999999.0.0"]
OPERATORS = ["", "=", "!=", ">", "<", ">=", "<=", "~", "^", "~>", "=>", "=<", "== "]
PARTIAL = ["1", "1.2", "1.2.3", "1.x", "1.2.x", "*", "x", "v1.2", "0", "0.2", "0.0.3", "1.2.3-rc.1", "1.20-0",
           "2.0.0-0", "X", "1.*.3", ""]
KEYS = ["a", "b", "c", "s", "t", "global", "tags", "on"]


def literal(text):
    return json.dumps(text).replace("\\ud83d\\ude00", "\U0001F600")


class Focused:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def text(self, pieces, most):
        return "".join(self.r.choice(pieces) for _ in range(self.r.randint(1, most)))

    def leaf(self):
        return self.r.choice([None, True, False, 0, 1, -7, 1.5, 1000000, 1e21, "", "x", "1", "yes", "a b", [], {},
                              [1, "x"], {"k": 1}, [None], self.text(PIECES, 4)])

    def tree(self, depth=0):
        if depth > 2 or self.r.random() < 0.4:
            return self.leaf()
        return {self.r.choice(KEYS): self.tree(depth + 1) for _ in range(self.r.randint(0, 4))}

    def table(self):
        return {self.r.choice(KEYS): self.tree(1) for _ in range(self.r.randint(0, 4))}

    def template(self):
        """(template, values)."""
        r = self.r
        kind = r.randrange(10)
        values = {"t": "", "a": self.table(), "b": self.table(), "c": self.table(),
                  "l": [self.leaf() for _ in range(4)]}
        if kind == 0:
            values["t"] = self.text(PIECES, 8)
            return r.choice(["{{ $y := fromYaml .Values.t }}{{ if hasKey $y \"Error\" }}E{{ else }}{{ toJson $y }}{{ end }}",
                             "{{ $y := fromYamlArray .Values.t }}{{ if and $y (kindIs \"string\" (first $y)) }}{{ else }}{{ toJson $y }}{{ end }}"]), values
        if kind == 1:
            values["t"] = self.text(PIECES, 6)
            values["a"] = {self.text(PIECES, 2): self.text(PIECES, 5),
                           "z": [self.text(PIECES, 4), {self.text(PIECES, 2): self.text(PIECES, 3)}]}
            return r.choice(["{{ toYaml .Values.t }}", "{{ toYaml .Values.a }}", "{{ toYaml .Values.l }}",
                             "{{ toYamlPretty .Values.a }}", "x: {{ toYaml .Values.a | nindent 2 }}"]), values
        if kind == 2:
            values["t"] = self.text(JSON_PIECES, 7)
            return r.choice(["{{ fromJson .Values.t | toJson }}", "{{ fromJsonArray .Values.t | toJson }}",
                             "{{ fromJson .Values.t }}", "{{ toPrettyJson (fromJson .Values.t) }}"]), values
        if kind == 3:
            form = "".join(r.choice(["", "x", " "]) + "%" + "".join(r.choice("#0+- ") for _ in range(r.choice([0, 0, 1,
                2]))) + r.choice(["", "", "5", "12", "1", "*", "[1]"]) +
                           r.choice(["", "", ".0", ".2", ".5", ".", ".*"]) + r.choice(VERBS)
                           for _ in range(r.randint(1, 2)))
            given = [r.choice(["1", "-5", "0", "255", "1.5", "0.0", "-0.5", "1e21", "1e-7", "3.0", '"s"', '"é\\n"',
                               "nil", "true", "(list 1 \"a\" nil)", "(dict \"k\" 1.5)", "(int64 7)", "'x'", "(until 2)",
                               ".Values.a", ".Values.l", "(b64enc \"x\")", "123456789.0", "(float64 \"NaN\")",
                               "(float64 \"-Inf\")", "0x1p-1074"]) for _ in range(r.randint(0, 3))]
            return "{{ printf %s %s }}" % (literal(form), " ".join(given)), values
        if kind == 4:
            constraint = r.choice([" ", ", ", " || ", ","]).join(r.choice(OPERATORS) + r.choice(["", "", " "])
                                                                 + r.choice(PARTIAL) for _ in range(r.choice([1, 1,
                                                                     2])))
            if r.random() < 0.1:
                constraint = r.choice(PARTIAL) + " - " + r.choice(PARTIAL)
            version = r.choice(VERSIONS)
            return r.choice(["{{ semverCompare %s %s }}" % (literal(constraint), literal(version)),
                             "{{ $v := semver %s }}{{ $v.Major }} {{ $v.Prerelease }} {{ $v.Metadata }} {{ $v.Original }} {{ $v }} {{ $v.Compare (semver %s) }}" % (literal(version), literal(r.choice(VERSIONS)))]), values
        if kind == 5:
            layout, text = r.choice(LAYOUTS), r.choice(TIMES)
            return r.choice(["{{ toDate %s %s }}" % (literal(layout), literal(text)),
                             "{{ mustToDate %s %s }}" % (literal(layout), literal(text)),
                             "{{ date %s (toDate \"2006-01-02\" \"2017-12-31\") }}" % literal(layout),
                             "{{ dateInZone %s (int64 %d) \"UTC\" }}"
                             % (literal(layout), r.choice([0, 1, 1500000000, -1, 951782400])),
                             "{{ dateModify %s (toDate \"2006-01-02\" \"2016-02-29\") }}"
                             % literal(r.choice(["1h", "-1.5h", "24h", "x", "", "1d", "+5m", "1ns", "-720h"])),
                             "{{ duration %s }}|{{ durationRound %s }}"
                             % (literal(r.choice(["95", "0", "-5", "x", "3600"])),
                                literal(r.choice(["2h10m5s", "400h", "1ns", "-90m", "x", "9000h", "0"])))]), values
        if kind == 6:
            a, b, c = (r.choice(["(deepCopy .Values.a)", "(deepCopy .Values.b)", "(dict)",
                                 "(dict \"a\" (dict \"k\" 1) \"n\" nil)", ".Values.c"]) for _ in range(3))
            return "{{ %s %s %s%s | toJson }}" % (r.choice(["merge", "mergeOverwrite", "mustMerge",
                                                            "mustMergeOverwrite"]),
                                                            a if a != ".Values.c" else "(deepCopy .Values.c)", b,
                                                            r.choice(["", " " + c])), values
        if kind == 7:
            word = literal(r.choice(["http://u:p@h:80/p;x?q=1#f", "//h/p", "mailto:a@b", "h:80", "http://[::1]:8/",
                                     "%zz", "a b", "?q", "#f", "http://h/%20x", "", "x://", "http://h:x/",
                                     "http://h/a/../b"]))
            return r.choice(["{{ urlParse %s }}" % word, "{{ urlJoin (urlParse %s) }}" % word,
                             "{{ base %s }} {{ dir %s }} {{ clean %s }} {{ ext %s }}"
                             % (word, word, word, word)]), values
        if kind == 8:
            return r.choice(["{{ toToml .Values.a }}", "{{ toToml (dict \"x\" .Values.l) }}",
                             "{{ .Values.a }} {{ .Values.l }}", "{{ toJson .Values.a }}",
                             "{{ toString .Values.l }} {{ join \",\" .Values.l }}", "{{ quote .Values.l }}",
                             "{{ dig \"a\" \"k\" \"d\" (deepCopy .Values.a) }}",
                             "{{ range $k, $v := .Values.a }}{{ $k }}={{ $v }};{{ end }}",
                             "{{ uniq .Values.l }} {{ compact .Values.l }} {{ without .Values.l nil \"x\" }}",
                             "{{ $l := list }}{{ range until 4 }}{{ $l = append $l . }}{{ end }}{{ $m := append $l 9 }}{{ $n := append $l 8 }}{{ $l }}{{ $m }}{{ $n }}{{ concat $l $m $l }}{{ prepend $l 1 }}"]), values
        number = r.choice(["1", "2.5", "-2.5", "1e9", "0.1", "9007199254740993", "\"1.5\"", "\"x\"", "\"0x10\"",
                           "\"1_000\"", "1e300", "\"12.0\"", "true", "nil", "-0.0", "1e18", "9.3e18"])
        other = r.choice(["0", "1", "2", "3.7", "-1", "\"2\"", "10"])
        return "{{ %s }}" % " }}|{{ ".join(r.choice(["int %s", "int64 %s", "float64 %s", "toString %s", "add %s 1",
                                                     "floor %s", "ceil %s", "round %s 1", "toDecimal %s", "quote %s",
                                                     "toJson %s", "printf \"%%v\" %s", "max %s 2",
                                                     "mul %s 3", "kindOf %s", "typeOf %s", "empty %s",
                                                     "div %s " + other, "mod %s " + other, "addf %s " + other,
                                                     "divf %s 3", "sub %s " + other]) % number
                                                     for _ in range(2)), values

    def chart(self):
        """The request of a whole chart with sub-charts."""
        r = self.r
        files = {"values.yaml": json.dumps(self.table()), "templates/show.yaml": SHOW % "top"}
        names = r.sample(["s", "t", "u"], r.randint(0, 3))
        listed = []
        for name in names:
            self.sub_chart(files, "charts/" + name, name, 0)
            if r.random() < 0.7:
                listed.append(self.dependency(name))
                if r.random() < 0.15:
                    listed.append(dict(self.dependency(name), alias="second"))
        more = {"type": r.choice(["application", "application", "application", "library"])} if r.random() < 0.1 else {}
        files["Chart.yaml"] = json.dumps(dict({"apiVersion": r.choice(["v2", "v2", "v1"]), "name": "top",
                                               "version": "1.0.0", "dependencies": listed}, **more))
        if r.random() < 0.2:
            files["templates/NOTES.txt"] = r.choice(["notes {{ .Release.Name }}", "{{ .Values.absent.x }}",
                                                     "{{ fail \"no\" }}"])
        if r.random() < 0.2:
            files["templates/hook.yaml"] = ("kind: Job\napiVersion: batch/v1\nmetadata:\n  name: h\n  annotations: {\"helm.sh/hook\": \"%s\", \"helm.sh/hook-weight\": \"%s\"}\n" %
                                            (r.choice(["pre-install", "post-install", "test", "pre-install, test",
                                                       "nonsense", "PRE-INSTALL"]), r.choice(["1", "-5", "x", ""])))
        if r.random() < 0.2:
            files["templates/broken.yaml"] = r.choice(["a: {{ .Values.a.b.c }}", "{{ include \"absent\" . }}",
                                                       "{{ if }}", "{{ end }}", "x: [", "kind: {}\n", "metadata: []\n",
                                                       "- a\n", "text", "{{ required \"r\" .Values.zz }}", "kind: 5\n",
                                                       "a: b: c\n", "{{/* c */}}", "\ta: 1\n", "kind: A\nkind: B\n",
                                                       "metadata: {name: 5}\n", "metadata: {annotations: {a: {}}}\n",
                                                       "{{ toYaml .Values }}", "--- a\n---\nb: c\n",
                                                       "{{ .Files.Get \"absent\" }}"])
        given = [json.dumps(self.table()) for _ in range(r.choice([0, 1, 1, 2]))]
        sets = [r.choice(["a=1", "a.b=x", "s.a=null", "t.on=false", "tags.x=true", "global.g=1", "a={1,2}", "s.on=true",
                          "b[1]=x", "a=null"]) for _ in range(r.choice([0, 0, 1]))]
        return {"files": files, "values": given, "set": sets, "release": "rel", "namespace": "ns"}

    def dependency(self, name):
        r = self.r
        made = {"name": name, "version": r.choice(["0.1.0", ">=0.1.0", "*", "~0.1", "0.x", "9.9.9", ""]
                                                  if r.random() < 0.3 else ["0.1.0"])}
        if r.random() < 0.4:
            made["condition"] = r.choice(["%s.on" % name, "%s.on,on" % name, "on", "global.on", "a.b",
                                          "absent.x, %s.on" % name])
        if r.random() < 0.4:
            made["tags"] = r.sample(["x", "y", "on"], r.randint(1, 2))
        if r.random() < 0.2:
            made["alias"] = r.choice(["other", "b"])
        if r.random() < 0.4:
            made["import-values"] = r.sample(["data", {"child": "a", "parent": "a"}, {"child": "b", "parent": "c"},
                                              {"child": "global", "parent": "a.b"}, {"child": "a.b", "parent": "."},
                                              "absent"], r.randint(1, 2))
        return made

    def sub_chart(self, files, base, name, depth):
        r = self.r
        values = self.table()
        if r.random() < 0.5:
            values["exports"] = {"data": self.table()}
        if r.random() < 0.3:
            values["on"] = r.choice([True, False])
        files[base + "/values.yaml"] = json.dumps(values)
        files[base + "/templates/s.yaml"] = SHOW % name
        listed = []
        if depth == 0 and r.random() < 0.3:
            self.sub_chart(files, base + "/charts/b", "b", 1)
            if r.random() < 0.6:
                listed.append(self.dependency("b"))
        files[base + "/Chart.yaml"] = json.dumps({"apiVersion": "v2", "name": name, "version": "0.1.0",
                                                  "dependencies": listed,
                                                  "type": "library" if r.random() < 0.05 else "application"})


SET_KEYS = ["a", "b", "a.b", "a[0]", "a[1].b", "a[0][1]", "b.c.d", "l[2]", " a", "a\\.b", "", "a[", "a[x]", "a[-1]",
            "a[0", ".a", "a.", "a..b", "a[0]x", "l", "l[0].a", "a[+1]", "é", "a b", "m.l[1]"]
SET_VALUES = ["1", "x", "{a,b}", "{a", "{}", "null", "TRUE", "0123", "", "a\\,b", "\\", "{a\\,b,1}", "{a}x", "{a},",
              "-5", "+5", "9223372036854775808", "a=b", "é", '"x"', "{,}", "{{a},b}", "tRue"]
SET_JSON = ["1", '"x"', '{"q": [1,2]}', '[1, {"a":null}]', "null", "", " ", "1e400", "01", "1 2", "x", '"a', "true ",
            '{"a":1', "[1,]", "-", "-0", "1.50", '"\\u00e9\\ud800"', '{"a":1,"a":2}', '"a,b"', " 1 ",
            "9007199254740993", "\u00a01", "1x=2", "{} b=3"]


def set_forms(r, bare):
    """--set and its siblings over values of a chart and of a file."""
    flags = []
    for _ in range(r.choice([1, 1, 2, 3])):
        form = r.choice(["json", "set", "string", "literal"])
        texts = SET_JSON if form == "json" else SET_VALUES
        one = ",".join(r.choice(SET_KEYS) + r.choice(["=", "=", "=", "=", ""]) + r.choice(texts)
                       for _ in range(r.choice([1, 1, 2, 3])))
        # A whole object is what Helm 4 takes, too.
        flags += [] if form == "json" and one.strip().startswith("{") else [form, one]
    made = bare("{{ toJson .Values }}", {})
    made["files"]["values.yaml"] = r.choice(["", "a: {b: 1, z: 2}\nl: [1, 2]\n"])
    made["values"] = [r.choice(["{}", "a: [x, {b: 2}]", "a: 5"])]
    made["flags"] = flags
    return made


def cases(count, seed, bare):
    for number in range(count):
        made = Focused(seed * 7_000_003 + number)
        if number % 8 == 7:
            yield set_forms(made.r, bare)
        elif number % 4 == 3:
            yield made.chart()
        else:
            template, values = made.template()
            yield bare(template, values)
