#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: start_up.sh READELF KMM_WORKER : libraries that drag many others in, and that most commands never call, are
# loaded when they are needed (sys::SharedLibrary). Linked by any room,
# they would cost each start of kmm-worker a third.
set -euo pipefail
readelf=$1 worker=$2
linked=$("$readelf" -d "$worker" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p')
[ -n "$linked" ] || { echo "$worker: expected the libraries that it is linked with, found none" >&2; exit 1; }
for later in libarchive libcurl libssl libxml2; do
  if grep "^$later\.so" <<<"$linked"; then
    echo "$worker: expected $later to be loaded when it is needed, found it linked" >&2
    exit 1
  fi
done
