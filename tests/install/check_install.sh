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
# the unit finds kmm-worker wherever the prefix has put it
if grep -n '^Exec[A-Za-z]*=/' "$top/usr/share/kmm-tools/manifests/kvc/kmm-worker-kvc@.service"; then exit 1; fi
# every link of an installed page leads to an installed file, but for those into the scripts of the source tree
pages=$top/usr/share/doc/kmm-tools
for page in "$pages"/*.md "$pages"/docs/*.md; do
  while read -r link; do
    [ -e "$(dirname "$page")/${link%%#*}" ] || { echo "$page: no $link" >&2; exit 1; }
  done < <(grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | grep -v '^$\|^https\?:\|^scripts/' || true)
done
echo "$(wc -l <"$list") files"
