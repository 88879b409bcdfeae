#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rendering recipes costs, beside Helm's own library.

Writes N charts of 30 files and a SpecialResource for each, and renders all of them for K kernels: `kmm-plan render
recipe`, and a Go program that loads each chart once and renders it K times with Helm's library, in one process. Then
one chart, from start to last byte.

usage: recipe_bench.py --bin DIR --peer HELM_REFERENCE [--charts 200] [--kernels 20] [--check]
With --check, the ratio of processor times may be 0.5 at most, and one chart may take 60 ms of it, twice the goal: the
build may be one for tests.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HELPERS = """{{- define "c.name" -}}{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- define "c.fullname" -}}
{{- $name := include "c.name" . -}}
{{- if contains $name .Release.Name -}}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- end -}}
{{- define "c.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "c.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
"""
VALUES = """image: {repository: registry.example/driver, tag: "1.2.3", pullPolicy: IfNotPresent}
nameOverride: ""
env: [{name: LEVEL, value: info}, {name: MODE, value: "strict"}, {name: EXTRA, value: "a b c"}]
resources: {limits: {cpu: 500m, memory: 128Mi}, requests: {cpu: 50m, memory: 64Mi}}
tolerations: [{key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}]
nodeSelector: {}
rbac: {create: true}
ports: [8080, 9090]
config: {level: info, "interval": 30, features: {a: true, b: false}}
"""
DAEMON_SET = """{{- if .Values.rbac.create }}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ include "c.fullname" . }}-@N@
  labels:
    {{- include "c.labels" . | nindent 4 }}
  annotations:
@AFFINE@    checksum/config: {{ toJson .Values.config | sha256sum }}
spec:
  selector:
    matchLabels:
      app: {{ include "c.name" . }}-@N@
  template:
    metadata:
      labels:
        app: {{ include "c.name" . }}-@N@
        {{- include "c.labels" . | nindent 8 }}
    spec:
      serviceAccountName: {{ include "c.fullname" . }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
      - name: driver
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}-{{ @KERNEL@ }}"
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        env:
        {{- range $i, $e := .Values.env }}
        - name: {{ $e.name }}
          value: {{ $e.value | quote }}
        {{- end }}
        ports:
        {{- range .Values.ports }}
        - containerPort: {{ int . }}
        {{- end }}
        resources:
          {{- toYaml .Values.resources | nindent 10 }}
        securityContext:
          privileged: true
{{- end }}
"""
CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "c.fullname" . }}-@N@
  labels:
    {{- include "c.labels" . | nindent 4 }}
data:
  config.yaml: |
    {{- toYaml .Values.config | nindent 4 }}
  ports: {{ join "," .Values.ports | quote }}
"""
ROLE = """apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "c.fullname" . }}-@N@
  labels:
    {{- include "c.labels" . | nindent 4 }}
rules:
- apiGroups: [""]
  resources: ["pods", "nodes"]
  verbs: ["get", "list", "watch"]
- apiGroups: ["apps"]
  resources: ["daemonsets"]
  verbs: ["get", "list", "watch", "create", "delete"]
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "c.fullname" . }}-@N@
spec:
  selector: {app: {{ include "c.name" . }}}
  ports:
  {{- range $port := .Values.ports }}
  - name: p{{ $port }}
    port: {{ int $port }}
  {{- end }}
"""
STATES = 4  # of 27 templates with objects


def write_chart(top, name):
    files = {
        "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 0.1.0\nappVersion: \"1\"\n",
        "values.yaml": VALUES,
        "templates/_helpers.tpl": HELPERS,
    }
    for number in range(27):
        text = (DAEMON_SET, CONFIG_MAP, ROLE)[number % 3] if number >= STATES else DAEMON_SET
        affine = '    specialresource.openshift.io/kernel-affine: "true"\n' if number < STATES else ""
        text = text.replace("@N@", str(number)).replace("@AFFINE@", affine)
        text = text.replace("@KERNEL@", ".Values.kernelFullVersion" if number < STATES else '"any"')
        files[f"templates/{number:04d}-state.yaml" if number < STATES else f"templates/object{number}.yaml"] = text
    assert len(files) == 30
    for path, text in files.items():
        target = top / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def resource(name, charts):
    return (
        f"apiVersion: sro.openshift.io/v1beta1\nkind: SpecialResource\nmetadata: {{name: {name}}}\nspec:\n  "
        f"namespace: {name}\n"
        f"  chart: {{name: {name}, version: 0.1.0, repository: {{name: local, url: \"file://{charts}/{name}\"}}}}\n  "
        f"set: {{kind: Values, apiVersion: sro.openshift.io/v1beta1}}\n---\n"
    )


def write_load(top, charts, kernels):
    names = [f"driver{number:03d}" for number in range(charts)]
    for name in names:
        write_chart(top / "charts", name)
    (top / "resources.yaml").write_text("".join(resource(name, top / "charts") for name in names))
    lines = [
        f"- {{kernelFullVersion: 5.14.0-{100 + number}.el9.x86_64, osImage: \"Red Hat Enterprise Linux CoreOS "
        f"417.94.202410211619-0 (Plow)\"}}"
        for number in range(kernels)
    ]
    (top / "facts.yaml").write_text(
        "kernels:\n" + "\n".join(lines) + "\nkubeVersion: v1.31.0\nclusterVersion: 4.17.3\n"
    )


def measure(command, runs):
    """(least seconds by the clock, processor seconds of that run)."""
    best = None
    for _ in range(runs):
        before = os.times()
        begin = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - begin
        after = os.times()
        processor = after.children_user - before.children_user + after.children_system - before.children_system
        best = min(best, (seconds, processor)) if best else (seconds, processor)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--charts", type=int, default=200)
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not os.path.exists(options.peer):
        print("SKIP: no", options.peer)
        return 77
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        write_load(top, options.charts, options.kernels)
        tool = f"{options.bin}/kmm-plan"
        ours = measure(
            [tool, "render", "recipe", "-f", top / "resources.yaml", "--facts", top / "facts.yaml", "-q"], options.runs
        )
        theirs = measure([options.peer, "bench", top / "charts", str(options.kernels)], options.runs)
        first = measure(
            [tool, "render", "chart", top / "charts/driver000", "--set", "kernelFullVersion=5.14.0-100.el9.x86_64"],
            5 * options.runs,
        )
        helm_first = measure([options.peer, "bench", top / "charts", "1"], 1)
    ratio = ours[0] / theirs[0]
    print(f"{options.charts} charts of 30 files, {options.kernels} kernels:")
    print(f"  kmm-plan render recipe  {ours[0]:.3f} s, processor {ours[1]:.3f} s")
    print(f"  Helm's library          {theirs[0]:.3f} s, processor {theirs[1]:.3f} s")
    print(f"  ratio                   {ratio:.3f} (goal 0.5), processor {ours[1] / theirs[1]:.3f}")
    print(f"  one chart, once         {first[0] * 1000:.1f} ms (goal 30), processor {first[1] * 1000:.0f} ms")
    print(f"  Helm's library, once    {helm_first[0] * 1000:.1f} ms for all charts, one kernel")
    return 1 if options.check and (ours[1] > 0.5 * theirs[1] or first[1] > 0.06) else 0


if __name__ == "__main__":
    sys.exit(main())
