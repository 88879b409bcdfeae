#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
for file in tag tag-longest tag-border digest icsp bad; do sed "s/@REGISTRY@/$1/g" $file > $file.yaml; done
kmm-plan show recipe -f - --facts facts.yaml --fact kernels=6.1.0-99-demo --chart demo --check-images --insecure < tag.yaml 2>&1 || echo "exit $?"
kmm-plan show recipe -f - --facts facts.yaml --fact kernels=6.1.0-99-demo --chart demo --check-images --insecure < tag-longest.yaml 2>&1 || echo "exit $?"
kmm-plan show recipe -f - --facts facts.yaml --fact kernels=6.1.0-99-demo --chart demo --check-images --insecure < tag-border.yaml 2>&1 || echo "exit $?"
kmm-plan show recipe -f - --facts facts.yaml --fact kernels=6.1.0-99-demo --chart demo --check-images --insecure < digest.yaml 2>&1 || echo "exit $?"
kmm-plan show recipe -f - --facts facts.yaml --fact kernels=6.1.0-99-demo --chart demo --check-images --insecure < icsp.yaml 2>&1 || echo "exit $?"
kmm-plan show recipe -f - --facts facts.yaml --fact kernels=6.1.0-99-demo --chart demo --check-images --insecure < bad.yaml 2>&1 || echo "exit $?"
