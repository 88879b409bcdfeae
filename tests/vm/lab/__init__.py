# SPDX-License-Identifier: Apache-2.0
"""Real nodes for tests and the demo: kernels under QEMU TCG, a registry, module images. Standard library only."""
