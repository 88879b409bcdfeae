#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to an ordered upgrade of a kernel module on three real kernels. usage: scripts/demo.sh [--keep]
#   --keep  leave the nodes running at the end, and say how to log in and play on
set -euo pipefail
export LC_ALL=C.UTF-8 PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
keep=false
case "${1:-}" in
  --keep) keep=true ;;
  "") ;;
  -h | --help) sed -n '3,4s/^# //p' "$0"; exit ;;
  *) sed -n '3,4s/^# //p' "$0" >&2; exit 64 ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh
# shellcheck source=scripts/lib/build.sh
. scripts/lib/build.sh

demo=$root/build/demo
lab() { python3 "$root/tests/vm/kmm_lab.py" --dir "$demo/lab" "$@"; }
stage() { printf '\n\033[1m== %s\033[0m  (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }
# The command as a user would type it, then the command.
typed() { printf '\n$ %s\n' "$*"; "$@"; }

finish() {
  local status=$?
  trap - EXIT
  if [ "$status" -ne 0 ] || [ "$keep" = false ]; then
    lab down || true
  fi
  [ "$status" -eq 0 ] || echo "the demo failed; consoles and logs of the nodes are in $demo/lab" >&2
  exit "$status"
}

stage "packages"
install_packages "${packages_build[@]}" "${packages_vm[@]}"

stage "build"
[ -f build/CMakeCache.txt ] || configure_programs build
cmake --build build --target kmm-plan kmm-upgrade kmm-worker

stage "three nodes with real kernels, and a registry"
mkdir -p "$demo"
trap finish EXIT
lab down
rm -rf "$demo/fleet" "$demo/state" "$demo/config"
lab up --worker build/bin/kmm-worker

# Where the cluster, the state and the nodes are; the commands below then need no options.
mkdir -p "$demo/config/kmm-tools"
cat >"$demo/config/kmm-tools/config.yaml" <<CONFIG
cluster: $demo/fleet
state-dir: $demo/state
ssh-config: $demo/lab/ssh_config
CONFIG
cat >"$demo/env" <<ENVIRONMENT
export PATH="$root/build/bin:\$PATH"
export XDG_CONFIG_HOME="$demo/config"
ENVIRONMENT
# shellcheck source=/dev/null
. "$demo/env"

stage "a directory cluster: three Nodes and a Module at version v1"
lab cluster "$demo/fleet" --version v1
(cd "$demo/fleet" && find . -name '*.yaml' | sort)
typed cat "$demo/fleet/modules/kmm-hello.yaml"

stage "first installation"
typed kmm-plan show
typed kmm-upgrade start module drivers/kmm-hello --to v1
typed kmm-upgrade delete

stage "the Module is edited: version v2, another image"
cp "$demo/fleet/modules/kmm-hello.yaml" "$demo/kmm-hello.v1.yaml"
lab cluster "$demo/fleet" --version v2
diff -u "$demo/kmm-hello.v1.yaml" "$demo/fleet/modules/kmm-hello.yaml" | tail -n +3 || true
typed kmm-plan show

stage "the ordered upgrade, one node at a time"
typed kmm-upgrade start module drivers/kmm-hello --to v2
typed kmm-upgrade show

stage "proof: what each kernel says it has loaded"
wanted=$(modinfo -F srcversion "$demo/lab/modules/v2/kmm_hello.ko")
echo "kmm_hello.ko of v2 has srcversion $wanted"
for node in node-a node-b node-c; do
  live=$(lab ssh "$node" 'cat /sys/module/kmm_hello/srcversion /sys/module/kmm_hello/version | tr "\n" " "')
  kernel=$(lab ssh "$node" uname -r)
  printf '%s  kernel %s  srcversion %s version %s\n' "$node" "$kernel" "${live%% *}" "$(cut -d' ' -f2 <<<"$live")"
  [ "${live%% *}" = "$wanted" ] || { echo "$node does not run v2" >&2; exit 1; }
done

stage "what happened"
typed kmm-upgrade delete
typed kmm-upgrade history

if [ "$keep" = true ]; then
  stage "the nodes stay up"
  cat <<NEXT
. $demo/env                                   # the tools, and where the cluster is
kmm-plan show
\$EDITOR $demo/fleet/modules/kmm-hello.yaml    # back to v1, or to v2-failinit, v2-unknown, v2-badmagic
kmm-upgrade start module drivers/kmm-hello --to v1
ssh -F $demo/lab/ssh_config node-a
tests/vm/kmm_lab.py --dir $demo/lab images    # what the registry has
tests/vm/kmm_lab.py --dir $demo/lab down      # stop everything
NEXT
else
  stage "done"
fi
