#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Patches an object on the API server of $KUBECONFIG, which must be JSON, as somebody else.

Usage: merge_patch.py PATH PATCH     the path as /api/v1/nodes/node-b, the patch as JSON
"""
import json
import os
import sys
import urllib.request


def main():
    path, patch = sys.argv[1:]
    with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
        server = json.load(file)["clusters"][0]["cluster"]["server"]
    request = urllib.request.Request(
        server + path, patch.encode(), {"Content-Type": "application/merge-patch+json"}, method="PATCH"
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        answer.read()


if __name__ == "__main__":
    main()
