#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the alerts of manifests/monitoring with promtool, and that alerts and panels use metrics which the programs
write.

Usage: run_rules.py SOURCE_DIR. Exit 77 (skipped) after the comparison of names if there is no promtool.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

METRIC = re.compile(r"\bkmm_[a-z_]+\b")


def main():
    source = pathlib.Path(sys.argv[1])
    manifest = (source / "manifests/monitoring/prometheus-rule.yaml").read_text()
    dashboard = json.loads((source / "manifests/monitoring/grafana-dashboard.json").read_text())
    written = set(METRIC.findall((source / "lib/report/metrics.cpp").read_text()))
    asked = set()
    for line in manifest.splitlines():
        if line.strip().startswith("expr:"):
            asked.update(METRIC.findall(line))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            asked.update(METRIC.findall(target["expr"]))
    if not asked or asked - written:
        sys.exit(f"nothing writes {sorted(asked - written)}")
    cases = (source / "tests/monitoring/rules_test.yaml").read_text()
    alerts = re.findall(r"alert: (\w+)", manifest)
    for alert in alerts:
        fires = re.search(rf"alertname: {alert}\n", cases)
        quiet = f"alertname: {alert}, exp_alerts: []" in cases
        if not fires or not quiet:
            sys.exit(f"alert {alert} has no case in which it fires, or none in which it does not")
    promtool = shutil.which("promtool")
    if promtool is None:
        print("SKIP: promtool is missing (package prometheus)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        # A rule file of Prometheus is the spec of the object.
        spec = manifest[manifest.index("\nspec:\n") + len("\nspec:\n"):]
        (pathlib.Path(scratch) / "rules.yaml").write_text("".join(line[2:] + "\n" for line in spec.splitlines()))
        (pathlib.Path(scratch) / "rules_test.yaml").write_text(cases)
        subprocess.run([promtool, "check", "rules", "rules.yaml"], cwd=scratch, check=True)
        subprocess.run([promtool, "test", "rules", "rules_test.yaml"], cwd=scratch, check=True)
    print(f"{len(alerts)} alerts, {len(asked)} metrics")


if __name__ == "__main__":
    main()
