#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command whose standard output is a terminal, and prints what it writes there.

Usage: on_terminal.py COLUMNS COMMAND...

Standard error is passed through. Exits like the command.
"""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


def main():
    columns, command = int(sys.argv[1]), sys.argv[2:]
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(command, stdout=its, env=dict(os.environ, COLUMNS=str(columns), TERM="xterm"))
    os.close(its)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the command has closed it
            break
        if not piece:
            break
        written += piece
    sys.stdout.buffer.write(written.replace(b"\r\n", b"\n"))
    sys.stdout.flush()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
