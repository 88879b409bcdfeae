#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on a terminal of its own and types keys once it asks a question.

Usage: at_question.py KEYS COMMAND...

KEYS as Python escapes, for example '\\x03' for Ctrl-C; "" types nothing. What follows the first key is typed after one
second, if the command still runs. Prints what the command wrote, and its exit code. Ends it after 20 seconds.
"""

import os
import pty
import select
import sys
import time

keys = sys.argv[1].encode().decode("unicode_escape").encode()
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
said, typed, end, pause = b"", False, time.monotonic() + 300, None
while time.monotonic() < end:
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        said += data
    if not typed and b"[y/N] " in said:
        typed = True
        os.write(terminal, keys[:1])
        pause = time.monotonic() + 1
    if pause is not None and time.monotonic() > pause:
        pause = None
        try:
            os.write(terminal, keys[1:])
        except OSError:
            break
else:
    os.kill(pid, 9)
status = os.waitpid(pid, 0)[1]
sys.stdout.write(said.decode(errors="replace").replace("\r\n", "\n"))
print("exit", os.waitstatus_to_exitcode(status))
