# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How the scripts build. Sourced by them, with the working directory at the root of the tree.

# configure DIRECTORY TYPE OPTION...: quick to compile rather than quick to run; the source files of a room make one
# unit. Half the compile time of -O2 -g again, and fast enough. No debug information, which takes a sixth of
# the time with sanitizers; build trees to debug in: CMakePresets.json. With paths seen
# from the build tree, what two build trees compile alike, the tests' own code, is compiled
# once. The linker gold, of the same package as the other one, takes half its time.
configure() {
  local directory=$1 type=$2 linker=() memory flags=${CXXFLAGS:-}
  shift 2
  if command -v ld.gold >/dev/null; then linker=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold); fi
  # Collecting garbage takes the compiler 6 % of its time. Eight at once then need 12 GiB.
  memory=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)
  if [ "${memory:-0}" -ge 16000000 ]; then flags+=" --param=ggc-min-expand=1000 --param=ggc-min-heapsize=4000000"; fi
  export CCACHE_BASEDIR=$PWD
  cmake -G Ninja -S . -B "$directory" -DCMAKE_BUILD_TYPE="$type" -DCMAKE_CXX_FLAGS="$flags" \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -DCMAKE_CXX_FLAGS_DEBUG=-O1 -DCMAKE_UNITY_BUILD=ON \
    "${linker[@]}" "$@" >/dev/null
}

# configure_programs DIRECTORY: the programs as users install them, at their full speed, but for the debug information.
configure_programs() {
  configure "$1" RelWithDebInfo -DKMM_TESTS=OFF "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG"
}
