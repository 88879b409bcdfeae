#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: optimised.sh CMAKE SOURCE : whoever names no build type, and whoever runs the demo,
# gets programs that the compiler has optimised.
set -euo pipefail
cmake=$1 source=$2
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cd "$source"
# shellcheck source=scripts/lib/build.sh
. scripts/lib/build.sh
"$cmake" -S . -B "$top/plain" -DKMM_TESTS=OFF >/dev/null
configure_programs "$top/demo"
for tree in plain demo; do
  # Of several -O the last one counts.
  python3 - "$tree" "$top/$tree/compile_commands.json" <<'END'
import json, re, sys
tree, commands = sys.argv[1:]
wrong = sorted(
    entry["file"] for entry in json.load(open(commands))
    if (re.findall(r" -O(\S)", entry["command"]) or "0")[-1] not in "23"
)
sys.exit(f"{tree}: {len(wrong)} sources are not optimised, first {wrong[0]}" if wrong else 0)
END
done
