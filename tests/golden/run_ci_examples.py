#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the script parts of docs/ci as the CI systems would: once with good manifests, once with a fault in them.

Usage: run_ci_examples.py BIN_DIR SOURCE_DIR
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import sarif_schema


def github_steps(text):
    """The run blocks of the steps, but not of the one that installs."""
    for name, block in re.findall(
        r"^    - name: (.*)\n(?:      if: .*\n)?      run: \|\n((?:        .*\n)+)", text, re.MULTILINE
    ):
        if not name.startswith("Install"):
            yield name, re.sub(r"^ {8}", "", block, flags=re.MULTILINE)


def gitlab_steps(text):
    script = re.search(r"^  script:\n((?:    - .*\n)+)", text, re.MULTILINE)[1]
    return [(line, line) for line in re.findall(r"^    - (.*)$", script, re.MULTILINE)]


def variables_of(text):
    return dict(re.findall(r"^ +(NEXT_KERNEL): (\S+)$", text, re.MULTILINE))


def set_up(top, source, good):
    fleet = source / "manifests/examples/fleet"
    shutil.copytree(fleet / "modules", top / "manifests")
    (top / "ci").mkdir()
    documents = sorted([*fleet.glob("nodes/*.yaml"), *fleet.glob("nodemodulesconfigs/*.yaml")])
    (top / "ci/cluster.yaml").write_text("---\n".join(path.read_text() for path in documents))
    if not good:
        for path in top.rglob("manifests/**/*.yaml"):
            path.write_text(path.read_text().replace("kernelMappings:", "kernelMapings:"))


def run_steps(steps, top, bin_dir, extra, shell):
    environment = {"PATH": f"{bin_dir}:{os.environ['PATH']}", "HOME": str(top), "LC_ALL": "C.UTF-8", **extra}
    results = []
    for name, script in steps:
        done = subprocess.run([*shell, script], cwd=top, env=environment, capture_output=True, text=True, check=False)
        results.append((name, done))
    return results


def check_github(top, results, good, faults):
    first = results[0][1]
    log = json.loads((top / "kmm.sarif").read_text())
    faults += sarif_schema.faults(log, sarif_schema.LOG)
    summary = (top / "summary").read_text()
    if good:
        faults += [f"{name}: exit {done.returncode} {done.stderr}" for name, done in results if done.returncode != 0]
        if (
            "| kernel | nodes |" not in summary
            or "6.12.0-1-amd64" not in summary
            or "```diff\n--- observed/" not in summary
        ):
            faults.append("the step summary lacks matrix or diff")
    elif first.returncode != 65 or "::error file=manifests/" not in first.stdout or not log["runs"][0]["results"]:
        faults.append(f"a fault is not told: exit {first.returncode} {first.stdout}")


def check_gitlab(top, results, good, faults):
    first = results[0][1]
    suite = xml.etree.ElementTree.parse(top / "gl-junit-report.xml").getroot()
    issues = json.loads((top / "gl-code-quality-report.json").read_text())
    if good:
        faults += [f"{name}: exit {done.returncode} {done.stderr}" for name, done in results if done.returncode != 0]
        if "<table>" not in (top / "matrix.html").read_text() or suite.get("failures") != "0" or any(
                issue["severity"] != "info" for issue in issues):
            faults.append("the reports of good manifests are wrong")
    elif first.returncode != 65 or not issues or suite.get("failures") == "0":
        faults.append(f"a fault is not told: exit {first.returncode}")


def main():
    bin_dir, source = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    faults = []
    for good in (True, False):
        for name, steps_of, extra, shell, check in (
            (
                "github-actions.yml",
                github_steps,
                {"GITHUB_ACTIONS": "true"},
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"],
                check_github,
            ),
            ("gitlab-ci.yml", gitlab_steps, {"GITLAB_CI": "true"}, ["bash", "-eo", "pipefail", "-c"], check_gitlab),
        ):
            text = (source / "docs/ci" / name).read_text()
            with tempfile.TemporaryDirectory() as directory:
                top = pathlib.Path(directory)
                set_up(top, source, good)
                extra = {
                    **extra,
                    **variables_of(text),
                    "GITHUB_STEP_SUMMARY": str(top / "summary"),
                    "GITHUB_OUTPUT": str(top / "output"),
                }
                (top / "summary").touch()
                steps = list(steps_of(text))
                found = [] if len(steps) == 3 else [f"{len(steps)} steps found, expected 3"]
                check(top, run_steps(steps, top, bin_dir, extra, shell), good, found)
                faults += [f"{name} ({'good' if good else 'bad'} manifests): {fault}" for fault in found]
    print(*faults, f"{len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
