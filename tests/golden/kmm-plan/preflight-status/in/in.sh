#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
sed "s/@REGISTRY@/$1/g" stdin > stdin.yaml
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images --status clusteroperator -q < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images --status operatorcondition/drivers/kmm -q -o json < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --kernel 6.1.0-100-demo --status clusteroperator < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images --status daemonset < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images --status clusteroperator/a/b < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images --status operatorcondition/drivers/Kmm_Tools < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images --status operatorcondition < stdin.yaml 2>&1 || echo "exit $?"
kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --insecure --kernel 6.1.0-100-demo --check-images -q -o json < stdin.yaml > known.json 2>&1 || echo "exit $?"
for narrower in some-module --namespace=drivers --selector=a=b --baseline=known.json; do
  kmm-plan preflight -f - --facts facts.yaml --insecure --kernel 6.1.0-100-demo --check-images --status clusteroperator "$narrower" < stdin.yaml 2>&1 || echo "exit $?"
done
