#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091
. "$KMM_SUPPORT/fake_recipe.sh"
registry=$1
# driver IMAGE: a chart whose driver container has this image
driver() {
  sed -i -e "s|image: .*, args|image: \"$1\", args|" \
    -e 's|^  annotations:|&\n    specialresource.openshift.io/state: driver-container|' \
    charts/demo-0.0.1/templates/1000-driver.yaml
}
try() {
  live -- kmm-upgrade start recipe demo -f resources.yaml --check-images --insecure "$@" || echo "exit $?"; have
}
driver "$registry/drivers/demo:9.9"
try
kmm-upgrade show || echo "exit $?"
driver "127.0.0.1:1/drivers/demo:6.1.0-99-demo"
try
driver "$registry/drivers/demo:6.1.0-99-demo"
try --dry-run
try -q
