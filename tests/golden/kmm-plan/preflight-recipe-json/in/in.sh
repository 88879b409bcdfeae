#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
sed "s/@REGISTRY@/$1/g" stdin > stdin.yaml
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo \
  --check-images -o json -q < stdin.yaml || echo "exit $?"
