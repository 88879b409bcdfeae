#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the worker image twice: the same bytes, at most 30 MB, and the program in it runs with nothing but it.
# usage: worker_image.sh SOURCE_DIR KMM-WORKER
set -euo pipefail
source=$1 binary=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; exit 1; }

first=$("$source/manifests/worker-image/build.sh" "$work/1.tar" "$binary")
# Who builds it, and how, makes no difference.
second=$(umask 077 && "$source/manifests/worker-image/build.sh" "$work/2.tar" "$binary")
[ "$first" = "$second" ] || fail "two builds differ: $first, $second"
cmp "$work/1.tar" "$work/2.tar"
! grep -qaF "$source/" "$binary" ||
  fail "the program has the path in it where it was built, so that another clone makes another image"
bytes=$(stat -c %s "$work/1.tar")
[ "$bytes" -le 30000000 ] || fail "the image has $bytes bytes, at most 30000000 were expected"
skopeo inspect "oci-archive:$work/1.tar" >/dev/null

mkdir "$work/image" "$work/root"
tar -C "$work/image" -xf "$work/1.tar"
manifest=$(jq -r '.manifests[0].digest' "$work/image/index.json" | cut -d: -f2)
layer=$(jq -r '.layers[0].digest' "$work/image/blobs/sha256/$manifest" | cut -d: -f2)
tar -C "$work/root" -xzf "$work/image/blobs/sha256/$layer"
enter=(chroot)
[ "$(id -u)" -eq 0 ] || enter=(unshare -r chroot)
said=$("${enter[@]}" "$work/root" /usr/bin/kmm-worker --version)
[ "$said" = "$("$binary" --version)" ] || fail "in the image it says '$said'"
"${enter[@]}" "$work/root" /usr/bin/kmm-worker explain ENODEV >/dev/null
echo "$first"
