# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How the scripts build. Sourced by them, with the working directory at the root of the tree.

# configure DIRECTORY TYPE OPTION...: quick to compile rather than quick to run; eight source files make one unit, which
# costs a quarter of the time. Half the compile time of -O2 -g again, and fast enough. No debug information, which takes a sixth of
# the time with sanitizers; build trees to debug in: CMakePresets.json. With paths seen from the build tree, what two build trees
# compile alike, the tests' own code, is compiled once.
configure() {
  local directory=$1 type=$2
  shift 2
  export CCACHE_BASEDIR=$PWD
  cmake -G Ninja -S . -B "$directory" -DCMAKE_BUILD_TYPE="$type" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 \
    -DCMAKE_CXX_FLAGS_DEBUG=-O1 -DCMAKE_UNITY_BUILD=ON "$@" >/dev/null
}
