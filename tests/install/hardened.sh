#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: hardened.sh CMAKE BUILD_DIR READELF OBJDUMP :
# installs below a temporary DESTDIR and looks at how the programs were made.
set -euo pipefail
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
DESTDIR=$top "$1" --install "$2" --prefix /usr >/dev/null
"$(dirname "$0")/hardened.py" "$3" "$4" "$top"/usr/bin/kmm-plan "$top"/usr/bin/kmm-upgrade "$top"/usr/bin/kmm-worker
