# SPDX-License-Identifier: Apache-2.0
"""Kills a process at one request of a played API server: option --kill of fake_api.py."""
import os
import pathlib
import re
import signal


class KillAt:
    """`text` is WHICH:WHEN:FILE. One request at a time is asked about."""

    def __init__(self, text):
        which, self.when, self.file = text.split(":", 2)
        self.number = int(which) if which.isdigit() else None
        self.patterns = [] if which.isdigit() else which.split(",")
        self.seen = 0

    def is_now(self, line):
        """Whether the request METHOD PATH is the one. Requests that come beside others, as those of a Lease, do not
        count where patterns tell which one it is."""
        if self.number is not None:
            self.seen += 1
            return self.seen == self.number
        if not self.patterns or not re.search(self.patterns[0], line):
            return False
        self.patterns.pop(0)
        return not self.patterns

    def kill(self, when):
        if when == self.when:
            try:
                os.kill(int(pathlib.Path(self.file).read_text()), signal.SIGKILL)
            except ProcessLookupError:
                pass
