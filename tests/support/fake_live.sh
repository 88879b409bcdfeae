# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced after fake_fleet.sh: the nodes of that fleet on an API server. `live [OPTION...] -- COMMAND...` runs a command
# against it, with options of fake_api.py, and leaves the objects in dump.json and the requests in the file requests.
mkdir -p api
for node in node-a node-b node-c; do
  cat >"api/$node.json" <<NODE
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "$node", "labels": {"role": "worker"}},
 "status": {"nodeInfo": {"architecture": "amd64", "bootID": "boot-1", "kernelVersion": "6.1.0-56-amd64"}}}
NODE
done
cat >api/kube-system.json <<NAMESPACE
{"apiVersion": "v1", "kind": "Namespace",
 "metadata": {"name": "kube-system", "uid": "11111111-2222-4333-8444-555555555555"}}
NAMESPACE
cat >api/module.json <<'MODULE'
{"apiVersion": "kmm.sigs.x-k8s.io/v1beta1", "kind": "Module", "metadata": {"name": "kmm-hello", "namespace": "drivers"},
 "spec": {"selector": {"role": "worker"},
  "moduleLoader": {"container": {"version": "v1", "modprobe": {"moduleName": "kmm_hello"},
  "kernelMappings": [{"regexp": "^6\\.1\\.", "containerImage": "registry.example/kmm-hello:v1"}]}}}}
MODULE

# `keep VERSION TAG`: the next `live` begins where the last one ended, but with another Module.
keep() {
  rm -f api/*
  jq --arg version "$1" --arg image "registry.example/kmm-hello:$2" '
    {kind: "List", items: [.main[] | if .kind == "Module" then
    .spec.moduleLoader.container.version = $version
    | .spec.moduleLoader.container.kernelMappings[0].containerImage = $image
    else . end]}' dump.json >api/all.json
}

live() { python3 "$KMM_SUPPORT/fake_api.py" --log requests --dump dump.json main=api "$@"; }

# pod NODE NAMESPACE/NAME CONTROLLER [SPEC]: a running Pod; CONTROLLER is KIND/NAME or none.
pod() {
  controller='[]'
  [ "$3" = none ] ||
    controller='[{"apiVersion": "apps/v1", "kind": "'${3%/*}'", "name": "'${3#*/}'", "uid": "1", "controller": true}]'
  cat >"api/pod-${2#*/}.json" <<POD
{"apiVersion": "v1", "kind": "Pod",
 "metadata": {"name": "${2#*/}", "namespace": "${2%/*}", "labels": {"app": "${3#*/}"},
  "ownerReferences": $controller}, "spec": {"nodeName": "$1"${4:+, $4}}, "status": {"phase": "Running"}}
POD
}

# budget NAMESPACE/NAME EXPECTED ALLOWED SPEC: a PodDisruptionBudget over the Pods with that label app.
budget() {
  cat >"api/budget-${1#*/}.json" <<BUDGET
{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "${1#*/}", "namespace": "${1%/*}"},
 "spec": {"selector": {"matchLabels": {"app": "${1#*/}"}}, $4},
 "status": {"expectedPods": $2, "desiredHealthy": $2, "currentHealthy": $2, "disruptionsAllowed": $3}}
BUDGET
}

# daemon_set NAMESPACE/NAME
daemon_set() {
  cat >"api/ds-${1#*/}.json" <<SET
{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "${1#*/}", "namespace": "${1%/*}"}}
SET
}

# cordons: of every node in dump.json, whether it is cordoned and by whom.
cordons() {
  jq -r '.main[] | select(.kind == "Node") | .metadata.name + " " + (.spec.unschedulable // false | tostring) + " " +
    (.metadata.annotations["kmmtools.dev/cordoned-by"] // "-")' dump.json
}

# with_operator VERSION: KMM's operator has a Pod, and the nodes are labelled for VERSION,
# so that `live --operator ''` installs it.
with_operator() {
  cat >api/operator.json <<'POD'
{"apiVersion": "v1", "kind": "Pod",
 "metadata": {"name": "kmm-operator-controller-0", "namespace": "kmm-operator-system",
  "labels": {"app.kubernetes.io/part-of": "kmm", "app.kubernetes.io/component": "kmm"}},
 "spec": {"nodeName": "node-z"}, "status": {"phase": "Running"}}
POD
  for node in node-a node-b node-c; do
    jq --arg version "$1" '.metadata.labels["kmm.node.kubernetes.io/version-module.drivers.kmm-hello"] = $version' \
      "api/$node.json" >api/new
    mv api/new "api/$node.json"
  done
  live --operator '' -- true
  keep v2 v2
}
