#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is needed on a Debian 12, builds, and runs every test. usage: scripts/test.sh [ctest option...]
# With CI=true a skipped test is a failure. Everything it makes is in build/, build-asan/ and build-tsan/.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '3,4s/^# //p' "$0"; exit ;; esac
exec </dev/null
export LC_ALL=C.UTF-8 PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh
# shellcheck source=scripts/lib/build.sh
. scripts/lib/build.sh

stage() { printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

stage "packages"
install_packages "${packages_build[@]}" "${packages_vm[@]}" "${packages_kernels[@]}" "${packages_test[@]}"
# The servers of tests/apiserver are compiled beside our own code, more eagerly where
# that is allowed: their tests come one after the other and wait for them. The test
# apiserver.build waits too, or builds them itself, and says then what is missing.
mkdir -p build/apiserver
KMM_TESTBED_NICE=-5 python3 tests/apiserver/kmm_cluster.py --dir build/apiserver/cluster --build build/apiserver \
  build --real >build/apiserver/build.log 2>&1 &

stage "build"
configure build RelWithDebInfo -DKMM_WERROR=ON -DKMM_TESTS=ON -DKMM_SANITIZE=OFF -DKMM_ASAN_DIR="$root/build-asan" \
  -DKMM_TSAN_DIR="$root/build-tsan"
configure build-asan Debug -DKMM_WERROR=ON -DKMM_TESTS=ON -DKMM_SANITIZE=ON
configure build-tsan Debug -DKMM_WERROR=ON -DKMM_TESTS=ON -DKMM_SANITIZE_THREAD=ON
cmake --build build

stage "tests"
results=$root/build/results.xml
rm -f "$results"
status=0
# More than there are processors: kernels that boot, servers and nodes are waited for.
# The build with sanitizers is a test, too.
ctest --test-dir build -j "$(($(nproc) + 4))" --output-on-failure --no-tests=error --output-junit "$results" "$@" ||
  status=$?
if [ "$status" -eq 0 ] && [ "${CI:-}" = true ] && grep -qE 'status="(notrun|disabled)"|<skipped' "$results"; then
  echo "tests were skipped, which CI=true forbids:" >&2
  grep -B1 -E 'status="(notrun|disabled)"|<skipped' "$results" | grep -o 'testcase name="[^"]*"' >&2
  status=1
fi
exit "$status"
