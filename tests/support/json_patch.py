# SPDX-License-Identifier: Apache-2.0
"""RFC 6902 on plain objects."""


def json_patch(document, steps):
    """False if a step cannot be applied."""
    for step in steps:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        parent = document
        for part in parts[:-1]:
            if isinstance(parent, list):
                parent = parent[int(part)]
            elif part in parent:
                parent = parent[part]
            else:
                return False
        last = parts[-1]
        if isinstance(parent, list):
            index = len(parent) if last == "-" else int(last)
            if step["op"] == "add":
                parent.insert(index, step["value"])
            elif index >= len(parent):
                return False
            elif step["op"] == "test":
                if parent[index] != step["value"]:
                    return False
            elif step["op"] == "remove":
                parent.pop(index)
            else:
                parent[index] = step["value"]
        elif step["op"] == "test":
            if parent.get(last) != step.get("value"):
                return False
        elif step["op"] == "remove":
            if last not in parent:
                return False
            del parent[last]
        else:
            parent[last] = step["value"]
    return True
