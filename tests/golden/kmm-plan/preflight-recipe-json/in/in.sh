#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
for file in stdin; do sed "s/@REGISTRY@/$1/g" $file > $file.yaml; done
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images -o json -q < stdin.yaml || echo "exit $?"
