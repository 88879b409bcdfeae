#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
sed "s/@REGISTRY@/$1/g" stdin > stdin.yaml
kmm-plan show recipe -f stdin.yaml --facts facts.yaml --chart demo=demo --chart plain=demo -q --metrics show.prom \
  -o name > /dev/null
cat show.prom
kmm-plan preflight -f stdin.yaml --facts facts.yaml --chart demo=demo --chart plain=demo --insecure \
  --kernel 6.1.0-100-demo --kernel-devel differs -q --metrics - -o name
echo "exit $?"
kmm-plan preflight -f stdin.yaml --facts facts.yaml --chart demo=demo --chart plain=demo --insecure \
  --kernel 6.1.0-100-demo --kernel-devel fits -q --metrics - -o name
kmm-plan show -f modules.yaml -q -o name --metrics absent/x.prom || echo "exit $?"
kmm-plan show -f modules.yaml -q -o name --metrics -
kmm-plan preflight -f modules.yaml --kernel 6.1.0-98-demo --metrics absent.prom && grep "^kmm_" absent.prom
