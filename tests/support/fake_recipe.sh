# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced: two nodes with a kernel each on an API server, and the SpecialResource
# demo, which needs base. `live [OPTION...] -- COMMAND...` runs a command against
# it, with options of fake_api.py, and leaves the objects in dump.json.
unset KMM_CLUSTER
export KMM_STATE_DIR=state
mkdir -p api
old=5.14.0-427.40.1.el9_4.x86_64 new=5.14.0-570.12.1.el9_6.x86_64

# node NAME KERNEL
node() {
  cat >"api/$1.json" <<NODE
{"apiVersion": "v1", "kind": "Node",
 "metadata": {"name": "$1", "labels": {"role": "worker", "feature.node.kubernetes.io/kernel-version.full": "$2"}},
 "status": {"nodeInfo": {"architecture": "amd64", "bootID": "boot-1", "kernelVersion": "$2",
  "osImage": "Red Hat Enterprise Linux CoreOS 417.94.202410211619-0 (Plow)"}}}
NODE
}
node node-a "$old"
node node-b "$new"
cat >api/kube-system.json <<'NAMESPACE'
{"apiVersion": "v1", "kind": "Namespace",
 "metadata": {"name": "kube-system", "uid": "11111111-2222-4333-8444-00000000000a"}}
NAMESPACE

# resource NAME DEPENDENCIES
resource() {
  cat <<RESOURCE
apiVersion: sro.openshift.io/v1beta1
kind: SpecialResource
metadata: {name: $1}
spec:
  namespace: $1
  chart: {name: $1, version: 0.0.1, repository: {name: local, url: "file://charts"}}
  nodeSelector: {role: worker}
  dependencies: $2
---
RESOURCE
}
{ resource base '[]'
  resource demo '[{chart: {name: base, version: 0.0.1, repository: {name: local, url: "file://charts"}}}]'
} >resources.yaml

# chart NAME VERSION: charts/NAME-VERSION, made from charts/NAME if that is there
chart() {
  mkdir -p "charts/$1-$2/templates"
  printf 'apiVersion: v2\nname: %s\nversion: %s\n' "$1" "$2" >"charts/$1-$2/Chart.yaml"
}
chart base 0.0.1
cat >charts/base-0.0.1/templates/0100-prepare.yaml <<'JOB'
apiVersion: batch/v1
kind: Job
metadata: {name: prepare, annotations: {specialresource.openshift.io/wait: "true"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.example/prepare}]}}}
JOB

# demo VERSION IMAGE LOG: the chart of demo
demo() {
  chart demo "$1"
  cat >"charts/demo-$1/templates/1000-driver.yaml" <<DRIVER
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: driver
  annotations:
    specialresource.openshift.io/wait: "true"
    specialresource.openshift.io/wait-for-logs: "modules? loaded"
    specialresource.openshift.io/kernel-affine: "true"
spec:
  selector: {matchLabels: {app: driver}}
  template:
    metadata: {labels: {app: driver}}
    spec: {containers: [{name: driver, image: "registry.example/$2", args: [$3]}]}
DRIVER
  cat >"charts/demo-$1/templates/settings.yaml" <<SETTINGS
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {version: "$1"}
SETTINGS
}
demo 0.0.1 driver '"modules loaded"'

live() { python3 "$KMM_SUPPORT/fake_api.py" --controllers --log requests --dump dump.json main=api "$@"; }
# keep: the next `live` begins where the last one ended.
keep() {
  rm -f api/*
  jq '{kind: "List", items: .main}' dump.json >api/all.json
}
# have: objects of the last `live` that a recipe made, and labels of its states.
have() {
  jq -r '.main[] | select(.metadata.labels["kmmtools.dev/recipe"])
    | .kind + " " + (.metadata.namespace // "-") + "/" + .metadata.name' dump.json
  jq -r '.main[] | select(.kind == "Secret")
    | .kind + " " + .metadata.name + " " + (.data.release | @base64d | fromjson | .status + " " + .version)' dump.json
  jq -r '.main[] | select(.kind == "Node") | .metadata.name as $node | .metadata.labels | to_entries[] |
    select(.key | startswith("special")) |
    $node + " " + .key + "=" + .value' dump.json
}
