#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: completion_test.sh SOURCE_DIR : sources the completions and asks them for candidates.
# Those of zsh and fish only where there is such a shell.
set -euo pipefail
cd "$1/completions/bash"
faults=0

# candidates COMMAND-LINE : sets COMPREPLY. The last word of the line is being completed;
# a final blank starts a new one. As in bash, '=' is a word.
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
  if ! grep -qxF -- "$want" <<<"$(printf '%s\n' "${COMPREPLY[@]}")"; then
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
expect_candidate "kmm-plan -o json sh" show
expect_candidate "kmm-plan -o json show --ne" --next
expect_only "kmm-plan -o js" json jsonl
expect_only "kmm-upgrade --color=a" auto always
expect_only "kmm-plan -n dri"
expect_candidate "kmm-plan show --output=" yaml
expect_only "kmm-plan show --output=js" json jsonl
expect_only "kmm-plan show --color=n" never
expect_candidate "kmm-plan show --color=never --no-in" --no-input
expect_only "kmm-plan render worker" worker-pods
expect_only "kmm-plan render nmc worker" worker-pods
expect_only "kmm-plan render --node node-a nm" nmc
expect_candidate "kmm-plan render nmc --pr" --prune
expect_candidate "kmm-plan explain up-to" up-to-date
expect_only "kmm-plan show re" recipe
expect_candidate "kmm-plan show " --cluster
expect_only "kmm-plan show node-a re"
expect_only "kmm-upgrade help start m" module
expect_only "kmm-upgrade help start module "
expect_only "kmm-plan help matrix "
expect_only "kmm-upgrade start --state-dir here m" module
expect_only "kmm-worker run name un" unload
expect_only "kmm-worker run un"
expect_only "kmm-worker run name load un"

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT

# other SHELL COMMAND-LINE CANDIDATE : this shell offers it.
other() {
  local shell=$1 line=$2 want=$3 found
  found=$(cd .. && "ask_$shell" "$line" "$want")
  if ! grep -qxF -- "$want" <<<"$found"; then
    echo "$shell '$line': expected $want among: $found"
    faults=$((faults + 1))
  fi
}
# shellcheck disable=SC2317  # called by name
ask_fish() {
  local tool=${1%% *}
  HOME=$home fish -N -c "source fish/$tool.fish; complete -C '$1'" 2>&1 | cut -f1
}
# The functions that zsh completes with need a terminal; what they are asked for is enough.
# shellcheck disable=SC2016,SC2317
ask_zsh() {
  zsh -f -c '
    _describe() { print -l -- ${(P)2%%:*} }
    _arguments() { print -l -- $@ }
    _files() { print files }
    compadd() { print -l -- $@[2,-1] }
    complete_line() { eval "$(<zsh/_$words[1])" }
    words=(${(z)1})
    if [[ $1 == *" " ]]; then words+=(""); fi
    CURRENT=${#words}
    complete_line' zsh "$1" 2>&1 | sed 's/\[.*//'
}
# What zsh itself offers at a terminal: some of what it is asked for it leaves out without a word.
# shellcheck disable=SC2016,SC2317
ask_terminal() {
  HOME=$home zsh -f -c '
    zmodload zsh/zpty
    zpty z zsh -f -i
    zpty -w z "fpath=($PWD/zsh \$fpath); autoload -U compinit; compinit -u -D; COLUMNS=300; LISTMAX=1000"
    zpty -w z "PS1=; bindkey \"^I\" list-choices; print rea\"\"dy"
    zpty -r z seen "*ready*"
    zpty -w -n z "$1"$'"'\\t'"'
    seen=""
    for i in {1..100}; do
      sleep 0.1
      while zpty -r -t z some; do seen+=$some; done
      if [[ $seen == *"$2"* ]]; then break; fi
    done
    zpty -d z
    print -r -- $seen' zsh "$1" "$2" 2>/dev/null | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' | tr -s ' \t\r' '\n'
}
for shell in zsh fish; do
  command -v "$shell" >/dev/null || continue
  other "$shell" "kmm-plan sh" show
  other "$shell" "kmm-plan -o json sh" show
  other "$shell" "kmm-plan --color=never -v sh" show
  other "$shell" "kmm-upgrade --state-dir here start m" module
  other "$shell" "kmm-upgrade help start m" module
done
if command -v zsh >/dev/null; then
  other zsh "kmm-plan -o json show --ne" --next
  other zsh "kmm-plan --kernel " files
  other terminal "kmm-plan show --ne" --next
  other terminal "kmm-plan show --action " blocked
  other terminal "kmm-upgrade start module --via o" operator
  other terminal "kmm-upgrade --state-dir here resume --tr" --trust-record
fi
if command -v fish >/dev/null; then
  other fish "kmm-plan -o json show --ne" --next
  other fish "kmm-plan show -o js" json
  other fish "kmm-plan help sh" show
  other fish "kmm-plan render wor" worker-pods
  other fish "kmm-upgrade start module --t" --to
fi
exit $((faults > 0))
