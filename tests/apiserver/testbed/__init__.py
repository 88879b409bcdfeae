# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes API server with fake nodes, on loopback, for tests."""
import pathlib
import sys

# Processes, ports and waiting are those of the lab with real kernels.
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "vm"))
