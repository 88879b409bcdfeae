#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Validates the reports of kmm-plan over the inputs of all its golden cases: SARIF against the standard, JUnit as XML
with right counts, Code Quality against what GitLab asks for; the places of SARIF are keys or values of the documents.

Usage: run_reports.py BIN_DIR GOLDEN_DIR [DIR]
  DIR: SARIF against the schema that OASIS publishes, too; it is fetched there unless the cache has it
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from html.parser import HTMLParser
from urllib.parse import unquote

import official_schema
import sarif_schema


def check_places(case, log):
    found = []
    for result in log["runs"][0]["results"]:
        for location in result.get("locations", []):
            place = location["physicalLocation"]
            region = place.get("region")
            path = case / unquote(place["artifactLocation"]["uri"])
            if region is None or not path.is_file():
                continue
            lines = path.read_bytes().split(b"\n")
            line = lines[region["startLine"] - 1] if region["startLine"] <= len(lines) else None
            column = region.get("startColumn", 1)
            if line is None or column > len(line) + 1:
                found.append(f"{result['ruleId']}: {path.name}:{region['startLine']}:{column} is outside the file")
            elif result["ruleId"] not in ("yaml-syntax", "json-syntax", "not-utf8") and not re.match(
                    rb"[^\s:,}\]]", line[column - 1:]):
                found.append(f"{result['ruleId']}: {path.name}:{region['startLine']}:{column} is neither key nor value")
    return found


def check_junit(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    cases, failures = root.findall("./testsuite/testcase"), root.findall("./testsuite/testcase/failure")
    suite = root.find("testsuite")
    good = (
        root.tag == "testsuites"
        and suite.get("tests") == str(len(cases))
        and suite.get("failures") == str(len(failures))
        and all(case.get("classname") and case.get("name") for case in cases)
    )
    return [] if good else ["junit: counts or names are wrong"]


def check_quality(path):
    issues = json.loads(path.read_text())
    good = all(
        issue["description"]
        and issue["check_name"]
        and issue["location"]["path"]
        and issue["location"]["lines"]["begin"] >= 1
        and issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        for issue in issues
    ) and len({issue["fingerprint"] for issue in issues}) == len(issues)
    return [] if good else ["code quality: an issue is not as GitLab wants it"]


class PageReader(HTMLParser):
    """Counts rows, and sees tags that are not closed and what would be loaded."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.bad = [], 0, []

    def handle_starttag(self, tag, attrs):
        self.rows += tag == "tr"
        if tag in ("script", "link", "img", "iframe") or any(name in ("src", "href", "onload") for name, _ in attrs):
            self.bad.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append("/" + tag)


def check_page(path, findings):
    page = PageReader()
    page.feed(path.read_text())
    good = not page.bad and not page.open and page.rows == (findings + 1 if findings else 0)
    return [] if good else [f"html: {page.bad} {page.open} {page.rows} rows"]


def main():
    bin_dir, golden = sys.argv[1], pathlib.Path(sys.argv[2])
    official, missing = None, ""
    if sys.argv[3:]:
        try:
            official = official_schema.validator(pathlib.Path(sys.argv[3]))
        except official_schema.binaries.Unavailable as error:
            missing = f"the official schema of SARIF is not here: {error}"
    faults, runs, results = [], 0, 0
    with tempfile.TemporaryDirectory() as top:
        for case in sorted(golden.glob("kmm-plan/*/in")):
            out = pathlib.Path(top)
            reports = f"sarif={out}/s,junit={out}/j,codequality={out}/q,md={out}/m,html={out}/h"
            done = subprocess.run([f"{bin_dir}/kmm-plan", "validate", ".", "--report", reports], cwd=case,
                                  capture_output=True, text=True, check=False)
            if done.returncode not in (0, 65, 66, 74):
                faults.append(f"{case.parent.name}: exit {done.returncode} {done.stderr}")
                continue
            log = json.loads((out / "s").read_text())
            found = sarif_schema.faults(log, sarif_schema.LOG)
            found = found or sarif_schema.cross_faults(log) + check_places(case, log)
            found += official_schema.faults(official, log) if official else []
            found += (
                check_junit(out / "j")
                + check_quality(out / "q")
                + check_page(out / "h", len(log["runs"][0]["results"]))
            )
            faults += [f"{case.parent.name}: {fault}" for fault in found]
            runs += 1
            results += len(log["runs"][0]["results"])
    # The check itself must see what is wrong.
    broken = json.loads(json.dumps(log))
    broken["runs"][0]["results"] = [{"ruleId": 1, "level": "bad", "message": {}, "extra": 0}]
    if len(sarif_schema.faults(broken, sarif_schema.LOG)) < 6:
        faults.append("the schema check does not see faults")
    if official and not official_schema.faults(official, broken):
        faults.append("the official schema does not see faults")
    print(*faults, f"{runs} inputs, {results} results, {len(faults)} faults", sep="\n")
    if faults or runs < 10 or results < 30:
        return 1
    if missing:
        # Where nothing may be skipped, that is an error.
        print(f"SKIP: {missing}")
        return 1 if os.environ.get("CI") == "true" else 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
