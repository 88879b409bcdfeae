# SPDX-License-Identifier: Apache-2.0
"""What played nodes note of each call: "begin NODE VERB ..." and "end NODE VERB CODE ...", in the order of time."""


def read(path):
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def most_without(calls):
    """The largest number of nodes that were without their module at once, as the nodes themselves saw it."""
    without, most = set(), 0
    for call in calls:
        if call[0] == "begin" and call[2] == "unload":
            without.add(call[1])
        if call[0] == "end" and call[2] == "load" and call[3] == "0":
            without.discard(call[1])
        most = max(most, len(without))
    return most
