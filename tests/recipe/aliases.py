# SPDX-License-Identifier: Apache-2.0
"""Charts whose dependencies are used under several names, with sub-charts of their own that Helm shares between the
copies."""

import json
import random

from charts import chart, dependent, sub

VALUES = ["a: 1\n", "a: 1\nexports: {data: {q: 1}}\nv: {k: 2}\n", "on: true\na: 3\n",
          "p: {on: false}\nx: {on: false}\n"]
GIVEN = [{}, {"first": {"p": {"on": False}, "x": {"on": False}}}, {"second": {"inner": {"on": False}, "on": False}},
         {"tags": {"t1": False}}, {"first": {"inner": {"a": 9, "deep": {"a": 8}}}, "second": {"p": {"a": 5}}},
         {"mid": {"on": False, "p": {"on": True}}}, {"global": {"g": 1}}]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def entries(self, names, aliases):
        r = self.random
        made = ""
        for name in names:
            for _ in range(r.choice([0, 1, 1, 2])):
                entry = "name: %s, version: 0.1.0" % name
                if r.random() < 0.7:
                    entry += ", alias: " + r.choice(aliases)
                if r.random() < 0.3:
                    entry += ", condition: " + r.choice(["on", name + ".on", "first.on", "x.on", "p.on"])
                if r.random() < 0.2:
                    entry += ", tags: [t1]"
                if r.random() < 0.3:
                    entry += ", import-values: [%s]" % r.choice(["data", "{child: v, parent: w}"])
                made += "- {%s}\n" % entry
        return made

    def listed(self, names, aliases, chance):
        r = self.random
        entries = self.entries(names, aliases) if r.random() < chance else ""
        return "dependencies:\n" + entries if entries else r.choice(["", "dependencies: []\n"])

    def chart(self):
        r = self.random
        crds = {"charts/mid/charts/inner/crds/c.yaml": "kind: CustomResourceDefinition\n"} if r.random() < 0.3 else {}
        files = {**crds, **sub("deep", r.choice(VALUES), base="charts/mid/charts/inner/charts/"),
                 **sub("inner", r.choice(VALUES), self.listed(["deep"], ["z", "w"], 0.5), base="charts/mid/charts/")}
        names = ["inner"]
        if r.random() < 0.5:
            names.append("other")
            files.update(sub("other", r.choice(VALUES), base="charts/mid/charts/"))
        files.update(sub("mid", r.choice(VALUES), self.listed(names, ["p", "q"], 0.7)))
        top = self.entries(["mid", "mid"], ["first", "second", "third"])
        files.update(dependent(top) if top else {})
        return chart(files, [json.dumps(r.choice(GIVEN))], includeCRDs=True)


def cases():
    for seed in range(300):
        yield Maker(seed).chart()
