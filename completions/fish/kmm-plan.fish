# SPDX-License-Identifier: Apache-2.0
# fish completion of kmm-plan; written by tests/gendocs
