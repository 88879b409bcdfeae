#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_threads.py BIN_DIR BENCH_DIR: kmm-plan prints the same, findings and faults too, whether it may use one
processor or all of them. The inputs are long enough for its threads: a fleet as kubectl prints it, the same in one
line, and both of them cut off and damaged at many places; recipes, whole and with faults in some of them."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile


def damaged(text, places):
    """The text, and the text with one fault each."""
    yield "whole", text
    for share in (0.1, 0.5, 0.97):
        yield f"cut at {share}", text[: int(len(text) * share)]
    for piece in (b'"', b"}", b"]", b"\xff", b"\n        {\n", b'"kind": "Pod",', b"\\", b'{"apiVersion": "v1"},'):
        at = places.randrange(len(text))
        yield f"{piece} at {at}", text[:at] + piece + text[at:]
    # Objects that are read, and have findings.
    for old, new in ((b'"containerImage"', b'"containerimage"'), (b'"kind": "Node"', b'"kind": "Noden"'),
                     (b'"bootId"', b'"bootID"'), (b'"name": "node-', b'"name": "Node_')):
        at = text.find(old, places.randrange(len(text) * 3 // 4))
        if at >= 0:
            yield f"{new} at {at}", text[:at] + new + text[at + len(old):]


def recipes(bench, directory):
    """Command lines of kmm-plan that render recipes, and how they exit: whole, with warnings, with errors in three."""
    sys.path.insert(0, str(bench))
    from recipe_bench import write_load  # pylint: disable=import-error,import-outside-toplevel

    write_load(directory, 12, 3)
    command = ["render", "recipe", "-f", directory / "resources.yaml", "--facts", directory / "facts.yaml"]
    yield "recipes", command, 0
    yield "recipes as JSON", [*command, "-o", "json"], 0
    yield "recipes as the operator does", [*command, "--compat", "sro"], 0
    for number in (4, 5, 11):
        chart = directory / "charts" / f"driver{number:03d}" / "templates"
        with (chart / "object20.yaml").open("a") as file:
            file.write("  no-value: {{ .Values.nothing }}-{{ .Values.kernelFullVersion }}\n")
    yield "recipes with warnings", command, 0
    yield "recipes with warnings, --strict", [*command, "--strict"], 65
    for number in (7, 6, 10):
        chart = directory / "charts" / f"driver{number:03d}" / "templates"
        (chart / f"object{30 - number}.yaml").write_text(f'{{{{ fail "number {number}" }}}}')
    yield "recipes with errors", command, 65


def run(command, processors):
    done = subprocess.run(command, capture_output=True, check=False,
                          preexec_fn=lambda: os.sched_setaffinity(0, processors))
    return done.returncode, done.stdout, done.stderr


def main():
    binary, bench = pathlib.Path(sys.argv[1]) / "kmm-plan", pathlib.Path(sys.argv[2])
    everything = os.sched_getaffinity(0)
    failed = 0
    places = random.Random(11)
    with tempfile.TemporaryDirectory(prefix="kmm-threads-") as name:
        directory = pathlib.Path(name)
        subprocess.run([sys.executable, bench / "steady.py", "300", directory, "--no-yaml"], check=True)
        pretty = (directory / "fleet.json").read_bytes()
        line = json.dumps(json.loads(pretty)).encode()
        if min(len(pretty), len(line)) < 4 << 20:
            sys.exit("the fleet is too small for threads")
        file = directory / "input.json"
        for form, text in (("pretty", pretty), ("line", line)):
            for what, changed in damaged(text, places):
                file.write_bytes(changed)
                for verb in (["show", "-o", "jsonl"], ["validate"]) if what == "whole" else (["show", "-o", "jsonl"],):
                    command = [binary, *verb, "-f", file]
                    alone, together = run(command, {min(everything)}), run(command, everything)
                    if alone != together or alone[0] < 0:
                        failed += 1
                        print(f"{form}, {what}, {verb[0]}: exit {alone[0]} with one processor, {together[0]} with all")
        recipe = directory / "recipes"
        recipe.mkdir()
        for what, arguments, code in recipes(bench, recipe):
            command = [binary, *arguments]
            alone, together = run(command, {min(everything)}), run(command, everything)
            if alone != together or alone[0] != code:
                failed += 1
                print(f"{what}: exit {alone[0]} with one processor, {together[0]} with all")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
