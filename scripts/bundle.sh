#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to kmm-worker as one file for nodes with other libraries. usage: scripts/bundle.sh [FILE]
#   FILE  what to write (default: kmm-worker.run)
set -euo pipefail
export LC_ALL=C.UTF-8 PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
case "${1:-}" in
  -h | --help) sed -n '3,4s/^# //p' "$0"; exit ;;
  -*) sed -n '3,4s/^# //p' "$0" >&2; exit 64 ;;
esac
out=$(realpath -m "${1:-kmm-worker.run}")
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh
# shellcheck source=scripts/lib/build.sh
. scripts/lib/build.sh
install_packages "${packages_build[@]}"
[ -f build/CMakeCache.txt ] || configure_programs build
cmake --build build --target kmm-worker
build/bin/kmm-worker bundle --out "$out"
