#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
sed "s/@REGISTRY@/$1/g" stdin >module.yaml
sum() {
  what=$1; shift
  kmm-plan preflight -f module.yaml --kernel 6.1.0-99-demo -q -o json "$@" | jq -r .inputs >"$what.sum" || :
  cmp -s first.sum "$what.sum" && echo "$what: the same" || echo "$what: another"
}
sum first --kernel-devel devel
cp -r devel elsewhere
sum again --kernel-devel elsewhere
cp -r devel forced
mkdir -p forced/include/config
printf 'CONFIG_MODULES=y\nCONFIG_MODULE_SIG=y\nCONFIG_MODULE_SIG_FORCE=y\n' >forced/include/config/auto.conf
sum configuration --kernel-devel forced
cp -r devel reserved
sed -i 's/EXPORT_SYMBOL\t/EXPORT_SYMBOL_GPL\t/' reserved/Module.symvers
sum exports --kernel-devel reserved
sum enforced --kernel-devel devel --sig-enforce
sed -i 's/{moduleName: demo}/{moduleName: demo, parameters: [a=b]}/' module.yaml
sum parameters --kernel-devel devel
