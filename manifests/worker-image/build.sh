#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Packs kmm-worker, or another of the three commands, with its libraries and the CA certificates into an image.
# The same files give the same digest. Nothing else is in the image: no shell, no package manager.
set -euo pipefail
export LC_ALL=C
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: build.sh OUT.tar [KMM-WORKER]      OUT.tar is an OCI archive; push it with:" \
    "skopeo copy oci-archive:OUT.tar docker://..." >&2
  exit 64
fi
out=$1
binary=${2:-$(command -v kmm-worker)} ||
  { echo "kmm-worker is not installed: name it as the second argument" >&2; exit 66; }
# A file of any name is a kmm-worker, but for those that are called like the other two.
case "${binary##*/}" in kmm-plan | kmm-upgrade) name=${binary##*/} ;; *) name=kmm-worker ;; esac
[ -r "$binary" ] || { echo "cannot read $binary" >&2; exit 66; }
# A device or pipe would be replaced by the archive.
if [ -e "$out" ] && [ ! -f "$out" ]; then echo "expected a file or nothing at $out" >&2; exit 73; fi
certificates=/etc/ssl/certs/ca-certificates.crt
[ -r "$certificates" ] || { echo "there is no $certificates: install ca-certificates" >&2; exit 66; }

work=$(mktemp -d)
trap 'rm -rf "$work" "$out.part"' EXIT
umask 022  # modes are a part of the image: of one that was made with umask 077 nobody but root could read anything
root=$work/root
mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/usr/lib64" "$root/etc/ssl/certs" \
  "$root/tmp" "$root/run" "$root/proc" "$root/sys" "$root/dev"
ln -s usr/bin "$root/bin"
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"
chmod 1777 "$root/tmp"

strip -o "$root/usr/bin/$name" "$binary"
cp "$certificates" "$root/etc/ssl/certs/ca-certificates.crt"
# Loaded when they are needed first, so that ldd does not name them.
loaded_later=()
for wanted in libcurl.so.4:libcurl4 libarchive.so.13:libarchive13; do
  file=${wanted%%:*}
  found=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | awk -v file="$file" '$1 == file && !found { print $NF; found = 1 }')
  [ -n "$found" ] || { echo "there is no $file: install ${wanted##*:}" >&2; exit 66; }
  cp -L "$found" "$root/usr/lib/$file"
  loaded_later+=("$found")
done
# "libx.so.1 => /path/libx.so.1 (0x...)" and "/lib64/ld-linux-x86-64.so.2 (0x...)"
ldd "$binary" "${loaded_later[@]}" |
  awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// && $1 !~ /:$/ { print $1 }' | while read -r library; do
  target=$root/usr/lib
  case "$library" in
    *ld-linux*) target=$root$(dirname "$(readlink -m "/usr$(dirname "$library")")/x"); mkdir -p "$target" ;;
  esac
  cp -L "$library" "$target/$(basename "$library")"
done

tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=go-w --format=posix \
  --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -cf "$work/layer" .
digest() { sha256sum "$1" | cut -d' ' -f1; }
size() { stat -c %s "$1"; }
blobs=$work/image/blobs/sha256
mkdir -p "$blobs"
store() { mv "$1" "$blobs/$(digest "$1")"; }

diff_id=$(digest "$work/layer")
gzip -n -6 "$work/layer"
layer=$(digest "$work/layer.gz") layer_size=$(size "$work/layer.gz")
store "$work/layer.gz"
case "$(uname -m)" in x86_64) architecture=amd64 ;; aarch64) architecture=arm64 ;; *) architecture=$(uname -m) ;; esac
# No blank stands between the pieces, so that each format is one word.
printf '{"created":"1970-01-01T00:00:00Z","architecture":"%s","os":"linux",'\
'"config":{"Entrypoint":["/usr/bin/%s"],'\
'"Env":["PATH=/usr/bin","SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],'\
'"Labels":{"org.opencontainers.image.title":"%s","org.opencontainers.image.licenses":"Apache-2.0"}},'\
'"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
  "$architecture" "$name" "$name" "$diff_id" >"$work/config"
config=$(digest "$work/config") config_size=$(size "$work/config")
store "$work/config"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",'\
'"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},'\
'"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:%s","size":%s}]}' \
  "$config" "$config_size" "$layer" "$layer_size" >"$work/manifest"
manifest=$(digest "$work/manifest") manifest_size=$(size "$work/manifest")
store "$work/manifest"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json",'\
'"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,'\
'"annotations":{"org.opencontainers.image.ref.name":"latest"}}]}' \
  "$manifest" "$manifest_size" >"$work/image/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$work/image/oci-layout"
tar -C "$work/image" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar -cf "$out.part" .
mv "$out.part" "$out"
echo "sha256:$manifest $((layer_size + config_size + manifest_size)) bytes"
