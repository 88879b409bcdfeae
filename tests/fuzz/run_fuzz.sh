#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_fuzz.sh PROGRAM CORPUS SECONDS: KMM_FUZZ_SECONDS in the environment wins over SECONDS.
KMM_FUZZ_SECONDS="${KMM_FUZZ_SECONDS:-$3}" exec "$1" "$2"
