#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
sed "s/@REGISTRY@/$1/g" stdin > stdin.yaml
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-99-demo --check-images < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --kernel 6.1.0-100-demo < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --kernel-devel fits < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --kernel-devel differs < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-101-demo --check-images < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images -o name < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --kernel 6.1.0-98-demo --fact kernels=6.1.0-98-demo < stdin.yaml 2>&1 || echo "exit $?"
# Whether the modules of the images that are there fit cannot be found out.
sed "s#repository: $1/#repository: '{{ if eq .Values.kernelFullVersion \"6.1.0-100-demo\" }}$1{{ else }}registry.invalid{{ end }}/#; s#\(registry.invalid.*\)#\1'#" stdin.yaml > unread.yaml
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --kernel-devel fits < unread.yaml 2>&1 || echo "exit $?"
# Known or not, what was not checked is not ready.
preflight() { kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --kernel 6.1.0-100-demo "$@" < stdin.yaml 2>&1; }
preflight --insecure --check-images -o json > known.json
preflight --insecure --check-images --baseline known.json && echo "exit $?"
preflight -o json > unasked.json
preflight --baseline unasked.json && echo "exit $?"
preflight --baseline unasked.json -o name && echo "exit $?"
