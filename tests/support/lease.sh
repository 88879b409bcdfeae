# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by what a golden case runs within `live` of fake_live.sh: the Leases of LEASE_NAMESPACE,
# drivers if it is not set, past kmm-upgrade.
# lease METHOD PATH [BODY]
lease() {
  server=$(jq -r '.clusters[0].cluster.server' "$KUBECONFIG")
  python3 - "$1" "$server/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE:-drivers}/leases$2" "${3:-}" <<'PY'
import sys, urllib.request
method, url, body = sys.argv[1:]
print(urllib.request.urlopen(urllib.request.Request(url, body.encode() or None, method=method)).read().decode())
PY
}
