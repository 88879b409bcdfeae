#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
sed "s/@REGISTRY@/$1/g" stdin > stdin.yaml
preflight() {
  kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --kernel 6.1.0-100-demo "$@" \
    < stdin.yaml 2>&1
}
preflight --insecure --check-images --status clusteroperator -q || echo "exit $?"
preflight --insecure --check-images --status operatorcondition/drivers/kmm -q -o json || echo "exit $?"
preflight --status clusteroperator || echo "exit $?"
preflight --insecure --check-images --status daemonset || echo "exit $?"
preflight --insecure --check-images --status clusteroperator/a/b || echo "exit $?"
preflight --insecure --check-images --status operatorcondition/drivers/Kmm_Tools || echo "exit $?"
preflight --insecure --check-images --status operatorcondition || echo "exit $?"
preflight --insecure --check-images -q -o json > known.json || echo "exit $?"
for narrower in some-module --namespace=drivers --selector=a=b --baseline=known.json; do
  kmm-plan preflight -f - --facts facts.yaml --insecure --kernel 6.1.0-100-demo --check-images \
    --status clusteroperator "$narrower" < stdin.yaml 2>&1 || echo "exit $?"
done
