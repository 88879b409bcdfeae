# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced after fake_fleet.sh: the nodes of that fleet on an API server. `live [OPTION...] -- COMMAND...` runs a command against
# it, with options of fake_api.py, and leaves the objects in dump.json and the requests in the file requests.
mkdir -p api
for node in node-a node-b node-c; do
  cat >"api/$node.json" <<NODE
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "$node", "labels": {"role": "worker"}},
 "status": {"nodeInfo": {"architecture": "amd64", "bootID": "boot-1", "kernelVersion": "6.1.0-56-amd64"}}}
NODE
done
cat >api/kube-system.json <<NAMESPACE
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "11111111-2222-4333-8444-555555555555"}}
NAMESPACE
cat >api/module.json <<'MODULE'
{"apiVersion": "kmm.sigs.x-k8s.io/v1beta1", "kind": "Module", "metadata": {"name": "kmm-hello", "namespace": "drivers"},
 "spec": {"selector": {"role": "worker"}, "moduleLoader": {"container": {"version": "v1", "modprobe": {"moduleName": "kmm_hello"},
  "kernelMappings": [{"regexp": "^6\\.1\\.", "containerImage": "registry.example/kmm-hello:v1"}]}}}}
MODULE

# `keep VERSION TAG`: the next `live` begins where the last one ended, but with another Module.
keep() {
  rm -f api/*
  jq --arg version "$1" --arg image "registry.example/kmm-hello:$2" '{kind: "List", items: [.main[] | if .kind == "Module" then
    .spec.moduleLoader.container.version = $version | .spec.moduleLoader.container.kernelMappings[0].containerImage = $image
    else . end]}' dump.json >api/all.json
}

live() { python3 "$KMM_SUPPORT/fake_api.py" --log requests --dump dump.json main=api "$@"; }
