# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# The Debian 12 packages that building, testing and the demo need, and how they are installed. Sourced by the scripts.

packages_build=(
  g++ make cmake ninja-build ccache pkg-config
  libarchive-dev libcli11-dev libcurl4-openssl-dev libfmt-dev libisal-dev libkmod-dev liblzma-dev libre2-dev
  libsimdjson-dev libssl-dev libyaml-cpp-dev libyaml-dev libzstd-dev zlib1g-dev
)
packages_vm=(
  qemu-system-x86 seabios linux-image-amd64 linux-headers-amd64 kmod busybox-static dropbear-bin openssh-client
  docker-registry skopeo umoci openssl ca-certificates python3
)
# A second kernel for machines that boot from a disk, and their boot loader.
packages_kernels=(linux-image-cloud-amd64 linux-headers-cloud-amd64 grub-pc-bin grub-common)
packages_test=(
  doctest-dev libcpp-httplib-dev bats shellcheck faketime strace cpio procps man-db groff file jq git
  python3-pip python3-jsonschema e2fsprogs libseccomp-dev libseccomp2 libyajl2 chromium prometheus
  dnf rpm createrepo-c debootstrap
)

# Never installed: unpacked into the disk of the nodes of tests/apiserver that have a real kubelet.
packages_machine=(containerd crun containernetworking-plugins)

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# install_packages NAME...: installs what is missing; asks the mirrors for new lists only if the known ones do not do.
install_packages() {
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "installing: ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  local install=("${apt[@]}" install --no-install-recommends)
  if ! as_root "${install[@]}" "${missing[@]}" >/dev/null 2>&1; then
    as_root "${apt[@]}" update >/dev/null || { echo "apt-get update failed" >&2; return 1; }
    as_root "${install[@]}" "${missing[@]}" >/dev/null || { echo "could not install: ${missing[*]}" >&2; return 1; }
  fi
  # The tests start registries of their own, and of prometheus they run promtool:
  # the system services that the packages enable are not wanted.
  for name in docker-registry prometheus; do
    case " ${missing[*]} " in
      *" $name "*)
        if [ -d /run/systemd/system ]; then as_root systemctl disable --now "$name" >/dev/null 2>&1 || true; fi ;;
    esac
  done
}

# download_packages DIR NAME...: leaves the packages there, as files, and installs nothing.
download_packages() {
  local directory=$1
  shift
  local download=(apt-get -q -o Acquire::Retries=3 -o APT::Sandbox::User=root download)
  (cd "$directory" && "${download[@]}" "$@" >/dev/null 2>&1) && return 0
  as_root apt-get -q update >/dev/null || { echo "apt-get update failed" >&2; return 1; }
  (cd "$directory" && "${download[@]}" "$@" >/dev/null) || { echo "could not download: $*" >&2; return 1; }
}
