# SPDX-License-Identifier: Apache-2.0
# fish completion of kmm-upgrade; written by tests/gendocs
