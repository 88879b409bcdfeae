#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command whose standard input is a terminal on which somebody types.

Usage: on_tty.py TEXT COMMAND...
"""

import os
import pty
import subprocess
import sys
import termios

master, slave = pty.openpty()
state = termios.tcgetattr(slave)
state[3] &= ~termios.ECHO
termios.tcsetattr(slave, termios.TCSANOW, state)
os.write(master, sys.argv[1].encode())
sys.exit(subprocess.run(sys.argv[2:], stdin=slave, check=False).returncode)
