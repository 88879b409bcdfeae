#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: completion_test.sh SOURCE_DIR : sources the bash completions and asks them for candidates.
set -euo pipefail
cd "$1/completions/bash"
faults=0

# candidates COMMAND-LINE : sets COMPREPLY. The last word of the line is being completed; a final blank starts a new one. As in
# bash, '=' is a word.
candidates() {
  local line=$1 tool=${1%% *}
  read -ra COMP_WORDS <<<"${line//=/ = }"
  if [[ $line == *' ' ]]; then COMP_WORDS+=(""); fi
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  "_${tool//-/_}"
}

# expect_only COMMAND-LINE [CANDIDATE...] : these are offered, and nothing else.
expect_only() {
  local line=$1
  shift
  candidates "$line"
  if [[ "${COMPREPLY[*]}" != "$*" ]]; then
    echo "'$line': expected $*, found ${COMPREPLY[*]}"
    faults=$((faults + 1))
  fi
}

expect_candidate() {
  local line=$1 want=$2
  candidates "$line"
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
expect_candidate "kmm-plan --cluster here sh" show
expect_candidate "kmm-plan show --output=" yaml
expect_only "kmm-plan show --output=js" json jsonl
expect_only "kmm-plan show --color=n" never
expect_candidate "kmm-plan show --color=never --no-in" --no-input
expect_only "kmm-plan render worker" worker-pods
expect_only "kmm-plan render nmc worker" worker-pods
expect_only "kmm-plan render --node node-a nm" nmc
expect_candidate "kmm-plan render nmc --pr" --prune
expect_candidate "kmm-plan explain up-to" up-to-date
expect_only "kmm-upgrade help start m" module
expect_only "kmm-upgrade help start module "
expect_only "kmm-plan help show "
expect_only "kmm-upgrade start --state-dir here m" module
expect_only "kmm-worker run name un" unload
expect_only "kmm-worker run un"
expect_only "kmm-worker run name load un"
exit $((faults > 0))
