#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: completion_test.sh SOURCE_DIR : sources the bash completions and asks them for candidates.
set -euo pipefail
cd "$1/completions/bash"
faults=0

# expect_candidate COMMAND-LINE CANDIDATE : the last word of the line is being completed; a final blank starts a new one.
expect_candidate() {
  local line=$1 want=$2 tool=${1%% *}
  read -ra COMP_WORDS <<<"$line"
  if [[ $line == *' ' ]]; then COMP_WORDS+=(""); fi
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  "_${tool//-/_}"
  if ! printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$want"; then
    echo "'$line': expected $want among: ${COMPREPLY[*]}"
    faults=$((faults + 1))
  fi
}

# shellcheck disable=SC2317  # called by the completions; the real one works only while bash completes
compopt() { :; }
for tool in kmm-plan kmm-upgrade kmm-worker; do
  # shellcheck source=/dev/null
  . "./$tool"
  expect_candidate "$tool " help
  expect_candidate "$tool --ver" --version
done
expect_candidate "kmm-plan sh" show
expect_candidate "kmm-plan show --clu" --cluster
expect_candidate "kmm-plan -v show -o js" json
expect_candidate "kmm-upgrade sta" start
expect_candidate "kmm-upgrade start mo" module
expect_candidate "kmm-upgrade start module --t" --to
expect_candidate "kmm-worker load --auth" --authfile
expect_candidate "kmm-worker help sta" status
exit $((faults > 0))
