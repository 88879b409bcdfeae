#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
for file in tag tag-longest tag-border digest icsp bad; do sed "s/@REGISTRY@/$1/g" $file > $file.yaml; done
for file in tag tag-longest tag-border digest icsp bad; do
  kmm-plan show recipe -f - --facts facts.yaml --fact kernels=6.1.0-99-demo --chart demo --check-images --insecure \
    < $file.yaml 2>&1 || echo "exit $?"
done
