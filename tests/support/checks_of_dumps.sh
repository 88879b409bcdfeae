# SPDX-License-Identifier: Apache-2.0
# For goldens of kmm-upgrade check kubernetes: what it says of a cluster that differs in one thing.
dump="$KMM_SUPPORT/kubeadm_dump.py"

# check ID TARGET [NODES] [EDIT]: the line of one check, and the exit code
check() {
    $dump ${3:-cp1=v1.34.4/v1.34.4 w1=v1.34.4} -e "${4:-}" > dump.json
    if kmm-upgrade check kubernetes "$2" -f dump.json > out.txt; then rc=0; else rc=$?; fi
    echo "$(grep "^$1 " out.txt) (exit $rc)"
}
