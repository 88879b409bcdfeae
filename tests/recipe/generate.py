# SPDX-License-Identifier: Apache-2.0
"""Random values and templates from a grammar. The same seed gives the same."""

import random

WORDS = ["", "a", "abc", "Hello World", "foo-bar_baz", "HTTPServer2xx", "  lead", "trail  ", "x: y", "- item", "#c",
         "true", "yes", "null", "~",
         "1", "1.0", "010", "0x1F", "1e3", ".5", "1_000", "2020-01-02", "12:30", "a'b", 'a"b', "a\\b", "tab\there",
         "l1\nl2", "l1\nl2\n", "\nx",
         "é ß ñ", "日本", "<&>", "{a}", "[b]", "a,b,c", "*x", "&y", "!z", "%p", "@q", "`r", "|", ">", "?", "-", "--",
         "---", "...", ":", "a:", "a #b",
         "v1.2.3", "1.2.3-rc.1+b5", "/usr/lib/../x.txt", "http://u:p@h.example:80/p?q=1#f", "Zm9v", "k=v", "0", "-1",
         "+5", "1.5e-7", "x" * 90 + " y",
         "on", "N", "<<", "=", "key with spaces", "\u00a0", "\u2028", "\u0001", "0o17", "0b11", "-0", "1e400", ".inf",
         "NaN", "a  \nb", " \n "]
KEYS = ["name", "port", "list", "map", "flag", "real", "text", "none", "a10", "a9", "B", "_x", "k.k", "deep", "empty",
        "k k", "1", "true"]
FIELDS = [k for k in KEYS if k.replace("_", "a").isalnum() and not k[0].isdigit()]

# Functions by result: (name, kinds of the arguments). s text, i int constant, n any number, b bool, l list, m map, a
# anything.
FUNCTIONS = {
    "s": [("upper", "s"), ("lower", "s"), ("title", "s"), ("untitle", "s"), ("trim", "s"), ("trunc", "is"),
          ("quote", "a"), ("squote", "a"),
          ("indent", "is"), ("nindent", "is"), ("replace", "sss"), ("trimSuffix", "ss"), ("trimPrefix", "ss"),
          ("trimAll", "ss"), ("repeat", "is"),
          ("substr", "iis"), ("nospace", "s"), ("initials", "s"), ("snakecase", "s"), ("kebabcase", "s"),
          ("camelcase", "s"), ("swapcase", "s"),
          ("wrap", "is"), ("wrapWith", "iss"), ("cat", "aaa"), ("plural", "ssi"), ("toString", "a"), ("join", "sl"),
          ("b64enc", "s"), ("b64dec", "s"),
          ("b32enc", "s"), ("b32dec", "s"), ("sha1sum", "s"), ("sha256sum", "s"), ("sha512sum", "s"),
          ("adler32sum", "s"), ("toYaml", "a"),
          ("toJson", "a"), ("toPrettyJson", "a"), ("toRawJson", "a"), ("mustToJson", "a"), ("toToml", "m"),
          ("toYamlPretty", "a"), ("printf", "Fa"), ("printf", "Faa"),
          ("print", "aaa"), ("println", "aa"), ("html", "s"), ("js", "s"), ("urlquery", "s"), ("base", "s"),
          ("dir", "s"), ("clean", "s"),
          ("ext", "s"), ("typeOf", "a"), ("kindOf", "a"), ("abbrev", "is"), ("abbrevboth", "iis"), ("regexFind", "Rs"),
          ("regexReplaceAll", "Rss"),
          ("regexReplaceAllLiteral", "Rss"), ("regexQuoteMeta", "s"), ("seq", "i"), ("seq", "ii"), ("get", "ms"),
          ("required", "sa"), ("include", "Ta"),
          ("tpl", "Ea"), ("date", "Dn"), ("duration", "a"), ("durationRound", "s"), ("urlJoin", "U"),
          ("ternary", "ssb"), ("default", "sa"),
          ("coalesce", "aaa"), ("first", "l"), ("index", "mK"), ("index", "li")],
    "n": [("add", "nn"), ("add", "nnn"), ("sub", "nn"), ("mul", "nn"), ("div", "nn"), ("mod", "nn"), ("max", "nnn"),
          ("min", "nn"), ("add1", "n"),
          ("int", "a"), ("int64", "a"), ("float64", "a"), ("len", "a"), ("floor", "n"), ("ceil", "n"), ("round", "ni"),
          ("addf", "nn"), ("subf", "nn"),
          ("mulf", "nn"), ("divf", "nn"), ("maxf", "nn"), ("minf", "nn"), ("atoi", "s"), ("toDecimal", "s"),
          ("default", "na"), ("add1f", "n")],
    "b": [("eq", "ja"), ("eq", "ss"), ("eq", "jjj"), ("ne", "ss"), ("lt", "jj"), ("le", "ss"), ("gt", "jj"),
          ("ge", "ii"), ("and", "aa"), ("or", "aa"), ("not", "a"),
          ("contains", "ss"), ("hasPrefix", "ss"), ("hasSuffix", "ss"), ("hasKey", "ms"), ("has", "al"), ("empty", "a"),
          ("kindIs", "Sa"),
          ("typeIs", "Sa"), ("deepEqual", "aa"), ("regexMatch", "Rs"), ("semverCompare", "Cs"), ("semverCompare", "CV"),
          ("all", "aa"), ("any", "aa"), ("isAbs", "s")],
    "l": [("list", "aaa"), ("list", "s"), ("tuple", "nn"), ("append", "la"), ("prepend", "la"), ("concat", "ll"),
          ("uniq", "l"), ("without", "la"),
          ("reverse", "l"), ("rest", "l"), ("initial", "l"), ("compact", "l"), ("slice", "li"), ("slice", "lii"),
          ("splitList", "ss"), ("sortAlpha", "l"),
          ("until", "i"), ("untilStep", "iii"), ("toStrings", "l"), ("chunk", "il"), ("regexFindAll", "Rsi"),
          ("regexSplit", "Rsi"), ("fromJsonArray", "s"),
          ("fromYamlArray", "s"), ("pluck", "smm")],
    "m": [("dict", "sasa"), ("dict", "sa"), ("dict", "sas"), ("merge", "mm"), ("mergeOverwrite", "mm"), ("pick", "mss"),
          ("omit", "ms"), ("set", "msa"),
          ("unset", "ms"), ("split", "ss"), ("splitn", "sis"), ("deepCopy", "m"), ("fromYaml", "s"), ("fromJson", "s"),
          ("urlParse", "U2"), ("dig", "Ksm")],
}
FORMATS = ["%s", "%d", "%v", "%5s|", "%-5s|", "%05d", "%q", "%x", "%X", "%+d", "%.2f", "%t", "%T", "%e", "%g", "%8.3f|",
           "%#v", "%+v", "%c", "%U", "%o",
           "%b", "%%", "%z", "%s-%s", "%[2]v %[1]v", "%*d", "%.3s", "% d", "%#x", "%#q", "%+q", "%6.2f%%", "%s %s %s",
           "no verb", "%!", "%", "%[3]d", "%-08d|",
           "%O", "%#o", "% x", "%G", "%.0f", "%20v|", "%v %v"]
REGEXES = ["a", "[a-z]+", "^.", "(a)(b)?", "\\\\d+", "x*", "", "[", "b|c", "(?i)HELLO", "\\\\s+", "(?P<n>o)"]
CONSTRAINTS = [">=1.2.0", "^1.2", "~1.2.3", "1.x", "*", ">1 <3", "1.2 - 2", "!=1.2.3", ">=1.0.0-0", "=1", "<2 || >3",
               "bad", "~0", "^0.2.3", ">=1.20-0, <2.0.0-0"]
VERSIONS = ["1.2.3", "v1.20.0", "1.2.3-rc.1", "0.2.5", "3", "2.0", "x", "1.27.10+k3s1", "0.0.0"]
KINDS = ["string", "int", "int64", "float64", "bool", "map", "slice", "invalid", "map[string]interface {}",
         "[]interface {}", "[]string"]


def literal(text):
    out = '"'
    for c in text:
        out += {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}.get(c,
                                                                        c if c >= " " and c not in "\u2028\u00a0"
                                                                        else "\\u%04x" % ord(c))
    return out + '"'


class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.variables = []
        self.depth = 0

    def value(self, depth=0):
        r = self.r
        kind = r.choice("sssnnbzlm" if depth < 3 else "sssnnbz")
        if kind == "s":
            return r.choice(WORDS)
        if kind == "n":
            return r.choice([0, 1, -1, 7, 8080, 1000000, 123456789, 2**31, 2**53, 2**63, -2**63, 0.5, 1.0, 1e21, 1e20,
                             1e-7, 0.1, 3.14159, 1e6, 100, 99.99,
                             123456789.5, 1e300, 5e-324, r.randint(-1000, 1000), r.random()])
        if kind == "b":
            return r.random() < 0.5
        if kind == "z":
            return None
        if kind == "l":
            return [self.value(depth + 1) for _ in range(r.randint(0, 4))]
        return {r.choice(KEYS): self.value(depth + 1) for _ in range(r.randint(0, 5))}

    def values(self):
        r = self.r
        made = {"name": r.choice(WORDS), "port": r.choice([80, 8080, 1.5, 1000000]),
                "list": [self.value(1) for _ in range(r.randint(0, 4))],
                "map": {r.choice(KEYS): self.value(1) for _ in range(r.randint(0, 5))}, "flag": r.random() < 0.5,
                "real": r.random() * 1000,
                "text": r.choice(WORDS), "none": None, "deep": {"map": {"name": self.value(2),
                                                                        "list": [self.value(2)]}}, "empty": {}}
        for _ in range(2):
            made[r.choice(["a10", "a9", "B", "_x", "k.k", "k k", "1", "true"])] = self.value()
        if r.random() < 0.1:
            made[r.choice(KEYS)] = self.value()
        return made

    def path(self, kind):
        r = self.r
        known = {"s": [".Values.name", ".Values.text", ".Release.Name", ".Chart.Name", ".Values.deep.map.name",
                       ".Chart.Version"],
                 "n": [".Values.port", ".Values.real", ".Release.Revision"],
                 "b": [".Values.flag", ".Release.IsInstall"],
                 "l": [".Values.list", ".Values.deep.map.list"],
                 "m": [".Values.map", ".Values.deep", ".Values.empty", ".Values.deep.map", ".Values"]}
        if kind == "a" or r.random() < 0.02:
            return "$.Values." + r.choice(FIELDS) + (("." + r.choice(FIELDS)) if r.random() < 0.03 else "")
        return "$" + r.choice(known[kind])

    def operand(self, kind, depth):
        """One argument: a literal, a path, a variable or a call in parentheses."""
        r = self.r
        if kind == "j":
            return r.choice(["0", "1", "8080", "(int " + self.operand("n", depth) + ")",
                             "(len " + self.operand("s", depth) + ")"])
        if r.random() < 0.01:
            kind = r.choice("snblma")
        special = {"F": FORMATS, "R": REGEXES, "C": CONSTRAINTS, "V": VERSIONS, "S": KINDS, "K": FIELDS,
                   "T": ["h1", "h2", "h3"],
                   "D": ["2006-01-02", "Jan 2 15:04:05", "Monday 3PM .000", "2006-01-02T15:04:05Z07:00"]}
        if kind == "R":
            return '"' + r.choice(REGEXES) + '"'
        if kind in special:
            return literal(r.choice(special[kind]))
        if kind == "E":
            return "`" + r.choice(["x{{ .name }}y", "{{ .Values.name | quote }}", "{{ . }}", "{{ $x := 1 }}{{ $x }}",
                                   "{{ include \"h1\" . }}", "plain",
                                   "{{ if .x }}a{{ else }}b{{ end }}", "{{",
                                   "{{ define \"z\" }}q{{ end }}{{ include \"z\" . }}"]) + "`"
        if kind in ("U", "2"):
            return '(urlParse "http://u:p@h:1/p?q#f")' if kind == "U" else ""
        if kind == "i":
            return str(r.choice([0, 1, 2, 3, 5, 10, -1, 20]))
        choice = r.random()
        if depth < 3 and choice < 0.35:
            return "(" + self.pipeline(kind, depth + 1) + ")"
        known = [name for name, of in self.variables if of == kind or kind == "a"]
        if known and choice < 0.45:
            return r.choice(known)
        if choice < 0.75 or kind in "lm":
            return self.path(kind)
        if kind == "s":
            return literal(r.choice(WORDS)) if r.random() < 0.9 else "`raw \\n`"
        if kind == "n":
            return r.choice(["0", "1", "2", "10", "-3", "1.5", "0x10", "1e3", "'a'", "0b11", "1_000", "3.0", "0.1",
                             "07"])
        if kind == "b":
            return r.choice(["true", "false"])
        return r.choice(["nil", "true", "1", '"x"', "1.5", ".", "$", self.path("a")])

    def call(self, kind, depth, piped=""):
        """A function with result `kind`; with `piped`, the kind that comes through the pipe, without its last
        argument."""
        r = self.r
        wanted = kind if kind in FUNCTIONS else r.choice("snblm")
        choices = [f for f in FUNCTIONS[wanted] if not piped or f[1][-1] in (piped, "a")]
        name, kinds = r.choice(choices)
        if name == "urlParse":
            return "urlParse " + literal(r.choice(WORDS))
        given = [self.operand(k, depth) for k in (kinds[:-1] if piped else kinds)]
        if name in ("set", "unset", "merge", "mergeOverwrite") and given:
            # A dictionary that contains itself kills Go when it is printed.
            given[0] = "(deepCopy %s)" % given[0]
        if r.random() < 0.003:
            given = given[1:]
        return " ".join([name] + given)

    def pipeline(self, kind="a", depth=0):
        r = self.r
        stages = r.choice([0, 0, 0, 1, 1, 2]) if kind in FUNCTIONS else 0
        first = r.choice("snblm") if stages else kind
        if depth >= 3 or r.random() < 0.3:
            text = self.operand(first, 3)
            if text == "nil":
                text = "true"
        else:
            text = self.call(first, depth)
        for stage in range(stages):
            following = kind if stage + 1 == stages else r.choice("snblm")
            text += " | " + self.call(following, depth, first)
            first = following
        return text

    def statement(self):
        r = self.r
        self.depth += 1
        left, right = r.choice(["{{ ", "{{ ", "{{- "]), r.choice([" }}", " }}", " -}}"])
        choice = r.random() if self.depth < 4 else 0.0
        mark = len(self.variables)
        if choice < 0.45:
            text = left + self.pipeline(r.choice("ssssnblma")) + right
        elif choice < 0.6:
            text = left + "if " + self.pipeline("b") + right + self.body()
            if r.random() < 0.4:
                text += "{{ else if " + self.pipeline("b") + " }}" + self.body()
            if r.random() < 0.5:
                text += "{{ else }}" + self.body()
            text += left + "end" + right
        elif choice < 0.75:
            names = r.choice([[], ["$v"], ["$i", "$v"]])
            kind = r.choice("llmmi")
            over = self.operand(kind, 1)
            names = names if kind != "i" else names[:1]
            text = left + "range " + (", ".join(names) + " := " if names else "") + over + right
            self.variables += [(name, "a") for name in names]
            text += self.body() + (r.choice(["{{ break }}", "{{ if $.Values.flag }}{{ continue }}{{ end }}", "", "",
                                             ""]))
            del self.variables[mark:]
            text += ("{{ else }}none" if r.random() < 0.4 else "") + "{{ end }}"
        elif choice < 0.85:
            text = left + "with " + self.pipeline(r.choice("sma")) + right + self.body() + "{{ else }}nothing{{ end }}"
        elif choice < 0.92:
            name = r.choice(["$a", "$b", "$c"])
            kind = r.choice("snblm")
            text = left + name + " := " + self.pipeline(kind) + right
            self.variables.append((name, kind))
            self.depth -= 1
            return text
        elif choice < 0.95 and self.variables:
            name, kind = r.choice(self.variables)
            text = left + name + " = " + self.pipeline(kind if kind != "a" else "s") + right
        elif choice < 0.98:
            text = "{{ template " + r.choice(['"h1" .', '"h2" $', '"h3"']) + " }}"
        else:
            text = "{{/* a comment */}}"
        del self.variables[mark:]
        self.depth -= 1
        return text

    def body(self):
        mark = len(self.variables)
        text = "".join(self.r.choice(["x", "\n", "  k: ", " ", ""]) + self.statement()
                       for _ in range(self.r.randint(1, 2)))
        del self.variables[mark:]
        return text

    def template(self):
        self.variables, self.depth = [], 0
        return "".join(self.r.choice(["a: ", "\n- ", " ", "\n", "text "]) + self.statement()
                       for _ in range(self.r.randint(1, 4))) + "\n"
