# SPDX-License-Identifier: Apache-2.0
# secret NAMESPACE TYPE KEY PASSWORD: the pull Secret of the driver
secret() {
  login=$(printf 'user:%s' "$4" | base64)
  logins="{\"$address\": {\"auth\": \"$login\"}}"
  [ "$3" = .dockercfg ] || logins="{\"auths\": $logins}"
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata: {name: pull, namespace: %s}\ntype: %s\ndata: {%s: %s}\n' \
    "$1" "$2" "$3" "$(printf '%s' "$logins" | base64 -w0)"
}
address=$1
# asked TITLE: with the Secret on standard input
asked() {
  echo "$1:"
  { cat resource.yaml; cat; } | sed "s/@REGISTRY@/$address/" >all.yaml
  kmm-plan show recipe demo -f all.yaml --facts facts.yaml --chart demo --check-images --insecure 2>&1 |
    grep 'warning\|1000'
}
: | asked 'none'
secret demo kubernetes.io/dockerconfigjson .dockerconfigjson good | asked 'a login'
secret demo kubernetes.io/dockercfg .dockercfg good | asked 'an old login'
secret demo kubernetes.io/dockerconfigjson .dockerconfigjson wrong | asked 'a wrong login'
secret other kubernetes.io/dockerconfigjson .dockerconfigjson good | asked 'in another namespace'
secret demo Opaque .dockerconfigjson good | asked 'of another type'
secret demo kubernetes.io/dockercfg .dockerconfigjson good | asked 'of the type of another key'
