#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: check_install.sh CMAKE BUILD_DIR LIST : installs below a temporary DESTDIR and compares the files with LIST.
set -euo pipefail
cmake=$1 build=$2 list=$3
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
DESTDIR=$top "$cmake" --install "$build" --prefix /usr >/dev/null
(cd "$top" && find . -type f -printf '%m %P\n' -o -type l -printf '%m %P -> %l\n' | LC_ALL=C sort -k2) >"$top/found"
if [ "${KMM_ACCEPT:-}" = 1 ]; then grep -v ' found$' "$top/found" >"$list"; fi
diff -u "$list" <(grep -v ' found$' "$top/found")
# the installed programs start and say who they are
for tool in kmm-plan kmm-upgrade kmm-worker; do
  "$top/usr/bin/$tool" --version | grep -q "^$tool [0-9]"
done
# as plugins of kubectl they are the same programs
for tool in plan upgrade; do
  "$top/usr/bin/kubectl-kmm_$tool" --version | grep -q "^kmm-$tool [0-9]"
done
echo "$(wc -l <"$list") files"
