# SPDX-License-Identifier: Apache-2.0
"""A terminal of a given size: runs a command on it and says what a person would see."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

CONTROL = re.compile(rb"\x1b\[(\d*)([A-Za-z])")


class Screen:
    """What is on the screen. Knows what our commands write: text, CR, LF, cursor up, clear to the end, colours."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines, self.row, self.column = [""], 0, 0
        self.wrapped = False  # a line was longer than the screen is wide
        self.left = b""

    def feed(self, data):
        data, at = self.left + data, 0
        self.left = b""
        while at < len(data):
            if data[at:at + 1] == b"\x1b":
                found = CONTROL.match(data, at)
                if not found:
                    self.left = data[at:]
                    return
                self.control(int(found[1] or 1), found[2])
                at = found.end()
                continue
            end = at + 1
            while end < len(data) and data[end] not in b"\x1b\r\n":
                end += 1
            if data[at:at + 1] in (b"\r", b"\n"):
                end = at + 1
                if data[at:at + 1] == b"\r":
                    self.column = 0
                else:
                    self.down()
            else:
                try:
                    text = data[at:end].decode()
                except UnicodeDecodeError as error:
                    if end == len(data) and error.reason == "unexpected end of data":
                        self.left = data[at:]
                        return
                    raise AssertionError(f"no UTF-8: {data[max(0, at - 200):end + 50]}") from error
                self.put(text)
            at = end

    def control(self, number, kind):
        if kind == b"A":
            self.row = max(self.row - number, max(0, len(self.lines) - self.rows))
        elif kind == b"J":
            self.lines[self.row] = self.lines[self.row][:self.column]
            del self.lines[self.row + 1:]
        elif kind != b"m":
            raise AssertionError(f"unknown control sequence {kind}")

    def down(self):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def put(self, text):
        for letter in text:
            if self.column == self.columns:
                self.wrapped = True
                self.column = 0
                self.down()
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[:self.column] + letter + line[self.column + 1:]
            self.column += 1

    def visible(self):
        """The lines on the screen, without empty ones at the end."""
        lines = self.lines[-self.rows:]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def run_on_screen(command, columns, rows, look, environment=None, timeout=600):
    """Runs the command with all three streams on the terminal; calls look(screen, process) whenever something was
    written. Returns the screen and the exit code."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = dict(environment or os.environ, TERM="xterm")
    for name in ("COLUMNS", "LINES"):
        environment.pop(name, None)
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True)
    os.close(its)
    screen, end = Screen(columns, rows), time.monotonic() + timeout
    while True:
        if not select.select([ours], [], [], 0.2)[0]:
            if time.monotonic() > end:
                process.kill()
                raise AssertionError(f"{command} did not end; the screen: {screen.visible()}")
            look(screen, process)
            continue
        try:
            data = os.read(ours, 65536)
        except OSError:  # the command has closed it
            break
        if not data:
            break
        screen.feed(data)
        look(screen, process)
    os.close(ours)
    return screen, process.wait()
