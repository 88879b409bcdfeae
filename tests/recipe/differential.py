#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares lib/recipe with Helm's own library: equal bytes, or both refuse.

Usage: differential.py --build DIR --mine PROGRAM [--reference PROGRAM] [--only-build] [--count N] [--seed N]

Builds the reference (Go) into DIR, then renders the templates of cases.txt, the charts of charts.py, aliases.py and
broken.py, N random templates and N cases of focused.py with both. KMM_FULL=1 makes N 100,000. Exit 77 without Go or
without its modules. """

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import aliases
import broken
import charts
import focused
from generate import Generator

HERE = pathlib.Path(__file__).resolve().parent
HELPERS = ('{{ define "h1" }}[{{ . }}]{{ end }}{{ define "h2" }}{{ with .Values }}{{ .name }}{{ end }}{{ end }}'
           '{{- define "h3" -}} h3 {{- end -}}')
SHOWN = 15
GO_VERSION = re.compile(r"go1\.[0-9.]+")  # of .Capabilities.HelmVersion


def kubernetes_flags(go):
    """What Helm's Makefile gives the linker: releases take the version of client-go for that of a cluster."""
    command = [go, "list", "-f", "{{.Version}}", "-m", "k8s.io/client-go"]
    found = subprocess.run(command, cwd=HERE / "reference", capture_output=True, text=True, check=False).stdout
    major, minor = re.match(r"v(\d+)\.(\d+)\.", found or "v0.20.0").groups()
    name = "helm.sh/helm/v3/pkg/chartutil.k8sVersion"
    return f"-X {name}Major={int(major) + 1} -X {name}Minor={minor}"


def build_reference(build):
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.path.exists(go):
        print("SKIP: go is not installed")
        sys.exit(77)
    program = build.resolve() / "helm-reference"
    build.mkdir(parents=True, exist_ok=True)
    command = [go, "build", "-ldflags", kubernetes_flags(go), "-o", str(program), "."]
    result = subprocess.run(command, cwd=HERE / "reference", capture_output=True, text=True, check=False)
    if result.returncode != 0:
        print(result.stderr[-2000:], file=sys.stderr)
        sys.exit(77 if "dial tcp" in result.stderr or "no such host" in result.stderr else 1)
    return program


class Renderer:
    def __init__(self, program):
        self.program = program
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [str(self.program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def send(self, requests):
        """All at once: the answers are read while the other program works."""
        self.pending = list(requests)
        self.write()

    def write(self):
        try:
            self.process.stdin.write("".join(json.dumps(one) + "\n" for one in self.pending).encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def receive(self):
        line = self.process.stdout.readline()
        self.pending.pop(0)
        if line:
            return json.loads(line)
        # A template that ends the program: the next ones go to a new one.
        code = self.process.wait()
        self.start()
        self.write()
        return {"out": "", "error": "the program ended with %s" % code}


def bare(template, values):
    return {
        "files": {
            "Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.2.3\nappVersion: \"4.5\"\n",
            "templates/_h.tpl": HELPERS,
            "templates/t.yaml": template,
            "files/a.txt": "one\ntwo\n",
            "files/b.conf": "k: v",
        },
        "values": [json.dumps(values)],
        "release": "rel",
        "namespace": "ns",
        "bare": True,
    }


def fixed_cases():
    values = json.loads((HERE / "values.json").read_text())
    for line in (HERE / "cases.txt").read_text().splitlines():
        if line and not line.startswith("#!"):
            yield bare(line.replace("\\n", "\n") if line.startswith("\\n") else line, values)


def random_cases(count, seed):
    for number in range(count):
        generator = Generator(seed * 1_000_003 + number)
        yield bare(generator.template(), generator.values())


def same(ours, theirs):
    if theirs["error"]:
        return bool(ours["error"]) and not ours["error"].startswith(("crash", "the program"))
    # What cannot be the same, or is left out, is refused by ours: addresses, random results, complex numbers.
    if any(
        word in ours["error"] for word in ("not-deterministic", "complex numbers", "unsupported-", "recipe-too-large")
    ):
        return True
    return not ours["error"] and GO_VERSION.sub("go", ours["out"]) == GO_VERSION.sub("go", theirs["out"])


def describe(request, ours, theirs):
    files = request["files"]
    print("--- template:", files.get("templates/t.yaml", "\n".join("%s: %r" % item for item in files.items())))
    print("    values:  ", request["values"])
    print("    helm:    ", repr(theirs["out"])[:1500], "ERROR " + theirs["error"][:400] if theirs["error"] else "")
    print("    ours:    ", repr(ours["out"])[:1500], "ERROR " + ours["error"][:400] if ours["error"] else "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--mine", required=True)
    parser.add_argument("--reference")
    parser.add_argument("--only-build", action="store_true")
    parser.add_argument("--count", type=int, default=100_000 if os.environ.get("KMM_FULL") else 2_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    reference = options.reference or build_reference(options.build)
    if options.only_build:
        return 0
    mine, theirs = Renderer(options.mine), Renderer(reference)
    counted = {"same": 0, "refused": 0, "different": 0}
    batch = []

    def run():
        mine.send(batch)
        theirs.send(batch)
        for request in batch:
            a, b = mine.receive(), theirs.receive()
            if same(a, b):
                counted["refused" if b["error"] else "same"] += 1
            else:
                counted["different"] += 1
                if counted["different"] <= SHOWN:
                    describe(request, a, b)
        batch.clear()

    for source in (
        fixed_cases(),
        charts.cases(),
        aliases.cases(),
        broken.cases(),
        random_cases(options.count, options.seed),
        focused.cases(options.count, options.seed, bare),
    ):
        for request in source:
            batch.append(request)
            if len(batch) >= 4:
                run()
    run()
    print("%(same)d the same, %(refused)d refused by both, %(different)d different" % counted)
    return 1 if counted["different"] or not counted["same"] else 0


if __name__ == "__main__":
    sys.exit(main())
