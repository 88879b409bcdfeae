# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by golden cases of kmm-upgrade: a directory cluster of three nodes behind a scripted ssh. `module VERSION TAG`
# writes the Module, `unversioned TAG` one without versions; `installed VERSION` makes the nodes run that version
# already, as an earlier upgrade left them.
export PATH="$KMM_SUPPORT/fake_ssh:$PATH" KMM_CLUSTER=fleet KMM_STATE_DIR=state
mkdir -p fleet/nodes fleet/modules nodes
for node in node-a node-b node-c; do
  cat >"fleet/nodes/$node.yaml" <<NODE
apiVersion: v1
kind: Node
metadata:
  name: $node
  labels:
    role: worker
status:
  nodeInfo:
    architecture: amd64
    bootID: boot-1
    kernelVersion: 6.1.0-56-amd64
NODE
done

module() {
  cat >fleet/modules/kmm-hello.yaml <<MODULE
apiVersion: kmm.sigs.x-k8s.io/v1beta1
kind: Module
metadata:
  name: kmm-hello
  namespace: drivers
spec:
  moduleLoader:
    container:
      version: $1
      modprobe:
        moduleName: kmm_hello
      kernelMappings:
        - regexp: '^6\.1\.'
          containerImage: registry.example/kmm-hello:$2
  selector:
    role: worker
MODULE
}

installed() {
  module "$1" "$1"
  kmm-upgrade start module drivers/kmm-hello --to "$1" -q >/dev/null
  kmm-upgrade delete -q >/dev/null
}

unversioned() {
  module gone "$1"
  sed -i '/version: gone/d' fleet/modules/kmm-hello.yaml
}

# labels: of every node, those of KMM; then what its NodeModulesConfig says and what is live.
labels() {
  for node in node-a node-b node-c; do
    of_node=$(sed -n 's/^    \(.*kmm.node.*\)/\1/p' "fleet/nodes/$node.yaml" | tr '\n' ' ')
    echo "$node $of_node$(cat "nodes/$node" 2>/dev/null || echo none)"
  done
}
