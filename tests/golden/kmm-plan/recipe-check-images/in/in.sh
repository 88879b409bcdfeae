#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
sed "s/@REGISTRY@/$1/g" stdin > stdin.yaml
kmm-plan show recipe -f - --facts facts.yaml --chart demo=demo --chart needs-demo=demo --chart plain=demo \
  --check-images --insecure < stdin.yaml
kmm-plan show recipe demo -f - --facts facts.yaml --chart demo --check-images --insecure -o wide -q < stdin.yaml
kmm-plan render recipe demo -f - --facts facts.yaml --chart demo --check-images --insecure -q < stdin.yaml |
  grep -A4 '^# kernel'
kmm-plan show recipe plain -f - --facts facts.yaml --chart demo -o name < stdin.yaml
kmm-plan show recipe plain -f - --facts facts.yaml --chart demo -o jsonl < stdin.yaml
kmm-plan show recipe demo -f - --facts facts.yaml --chart demo --fact updateVendor=demo < stdin.yaml
