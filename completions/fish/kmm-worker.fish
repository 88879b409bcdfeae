# SPDX-License-Identifier: Apache-2.0
# fish completion of kmm-worker; written by tests/gendocs
