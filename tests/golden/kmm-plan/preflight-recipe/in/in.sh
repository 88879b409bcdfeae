#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
sed "s/@REGISTRY@/$1/g" stdin > stdin.yaml
# preflight KERNEL [OPTION...]: checks what stands in the file $input.
input=stdin.yaml
preflight() {
  kernel=$1
  shift
  kmm-plan preflight -f - --facts facts.yaml --chart demo=demo --chart plain=demo --kernel "$kernel" "$@" < $input 2>&1
}
preflight 6.1.0-100-demo --insecure --check-images || echo "exit $?"
preflight 6.1.0-99-demo --insecure --check-images || echo "exit $?"
preflight 6.1.0-100-demo || echo "exit $?"
preflight 6.1.0-100-demo --insecure --kernel-devel fits || echo "exit $?"
preflight 6.1.0-100-demo --insecure --kernel-devel differs || echo "exit $?"
preflight 6.1.0-101-demo --insecure --check-images || echo "exit $?"
preflight 6.1.0-100-demo --insecure --check-images -o name || echo "exit $?"
preflight 6.1.0-98-demo --fact kernels=6.1.0-98-demo || echo "exit $?"
# Whether the modules of the images that are there fit cannot be found out.
by_kernel="{{ if eq .Values.kernelFullVersion \"6.1.0-100-demo\" }}$1{{ else }}registry.invalid{{ end }}"
sed "s#repository: $1/#repository: '$by_kernel/#; s#\(registry.invalid.*\)#\1'#" stdin.yaml > unread.yaml
input=unread.yaml
preflight 6.1.0-100-demo --insecure --kernel-devel fits || echo "exit $?"
input=stdin.yaml
# Known or not, what was not checked is not ready.
preflight 6.1.0-100-demo --insecure --check-images -o json > known.json
preflight 6.1.0-100-demo --insecure --check-images --baseline known.json && echo "exit $?"
preflight 6.1.0-100-demo -o json > unasked.json
preflight 6.1.0-100-demo --baseline unasked.json && echo "exit $?"
preflight 6.1.0-100-demo --baseline unasked.json -o name && echo "exit $?"
