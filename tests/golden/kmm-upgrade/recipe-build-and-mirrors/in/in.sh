#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The registry has the image for the old kernel alone: the other is built before its driver is applied. Mirrors are
# asked in place of a registry that is not there.
# shellcheck disable=SC1091,SC2154
. "$KMM_SUPPORT/fake_recipe.sh"
registry=$1
chart=charts/demo-0.0.1/templates
# driver REPOSITORY: a chart whose driver containers have images of this repository, one for each kernel
driver() {
  demo 0.0.1 driver '"modules loaded"'
  sed -i -e "s|image: .*, args|image: \"$1:{{ .Values.kernelFullVersion }}\", args|" -e 's|^  annotations:|&\
    specialresource.openshift.io/state: driver-container\
    specialresource.openshift.io/driver-container-vendor: demo|' "$chart/1000-driver.yaml"
}
cat >"build.yaml" <<'JOB'
apiVersion: batch/v1
kind: Job
metadata:
  name: build
  annotations:
    specialresource.openshift.io/wait: "true"
    specialresource.openshift.io/kernel-affine: "true"
    specialresource.openshift.io/driver-container-vendor: demo
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "registry.example/build"}]}}}
JOB
cat >mirrors.yaml <<MIRRORS
apiVersion: config.openshift.io/v1
kind: ImageTagMirrorSet
metadata: {name: lab}
spec: {imageTagMirrors: [{source: registry.invalid/drivers, mirrors: ["$registry/drivers"],
  mirrorSourcePolicy: NeverContactSource}]}
MIRRORS
start() {
  live -- kmm-upgrade start recipe demo -f resources.yaml --check-images --insecure "$@" || echo "exit $?"; have
}

driver "$registry/drivers/demo"
echo '== nothing builds the image that is missing'
start -q
cp build.yaml "$chart/0000-build.yaml"
echo '== it is built first'
start
echo '== the requests that made builds and drivers'
grep -E '(jobs|daemonsets)/(build|driver)' requests | grep -v GET | sed 's/?.*//' | sort -u
rm -r state
driver registry.invalid/drivers/demo
echo '== a registry that is not there'
start -q
echo '== its mirror alone, which lacks one image'
start --dry-run -f mirrors.yaml
rm "$chart/0000-build.yaml"
echo '== the mirror, for nodes with the old kernel alone'
node node-b "$old"
start -q -f mirrors.yaml
