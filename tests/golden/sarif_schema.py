# SPDX-License-Identifier: Apache-2.0
"""What SARIF 2.1.0 requires of the objects that kmm-plan writes, after the OASIS standard and its JSON schema.

An object is a dictionary: property -> rule; "*" in front of a property: it is required. As in the official schema,
other properties are not allowed. A rule is a type, a list with one rule (an array of it), a set (an enumeration), a
compiled expression, a function that is true for good values, or another object.
"""

import json
import re
from urllib.parse import urlsplit

LEVEL = {"none", "note", "warning", "error"}
COUNT = lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 1
INDEX = lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0
URI = lambda value: isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+", value) and (
    not re.search(r"%(?![0-9A-Fa-f]{2})", value)) and urlsplit(value) is not None

# multiformatMessageString
TEXT = {"*text": str, "markdown": str}
MESSAGE = {"*text": str, "markdown": str, "id": str, "arguments": [str]}
ARTIFACT_LOCATION = {"*uri": URI, "uriBaseId": str, "index": INDEX, "description": MESSAGE}
REGION = {"*startLine": COUNT, "startColumn": COUNT, "endLine": COUNT, "endColumn": COUNT}
PHYSICAL = {"*artifactLocation": ARTIFACT_LOCATION, "region": REGION}
LOCATION = {"id": INDEX, "*physicalLocation": PHYSICAL, "message": MESSAGE}
RULE = {"*id": str, "name": str, "shortDescription": TEXT, "fullDescription": TEXT, "help": TEXT, "helpUri": URI,
        "defaultConfiguration": {"level": LEVEL, "enabled": bool}}
DRIVER = {"*name": str, "version": str, "semanticVersion": re.compile(r"\d+\.\d+\.\d+([-+].*)?"), "informationUri": URI,
          "rules": [RULE]}
FINGERPRINTS = {"kmmFinding/v1": re.compile("[0-9a-f]{16}")}
RESULT = {"*ruleId": str, "*ruleIndex": INDEX, "*level": LEVEL, "*message": MESSAGE, "locations": [LOCATION],
          "*partialFingerprints": FINGERPRINTS, "baselineState": {"new", "unchanged", "updated", "absent"}}
GUID = re.compile("[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-5][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}")
RUN = {
    "*tool": {"*driver": DRIVER},
    "automationDetails": {"id": str, "guid": GUID},
    "invocations": [{"*executionSuccessful": bool}],
    "artifacts": [{"*location": ARTIFACT_LOCATION}],
    "*results": [RESULT],
}
LOG = {"$schema": URI, "*version": {"2.1.0"}, "*runs": [RUN]}


def faults(value, rule, path="$"):
    """The places where `value` breaks `rule`."""
    if isinstance(rule, dict):
        if not isinstance(value, dict):
            return [f"{path}: no object"]
        found = [f"{path}.{name[1:]}: missing" for name in rule if name.startswith("*") and name[1:] not in value]
        for name, member in value.items():
            inner = rule.get(name, rule.get("*" + name))
            found += [f"{path}.{name}: not allowed"] if inner is None else faults(member, inner, f"{path}.{name}")
        return found
    if isinstance(rule, list):
        if not isinstance(value, list):
            return [f"{path}: no array"]
        return [fault for i, item in enumerate(value) for fault in faults(item, rule[0], f"{path}[{i}]")]
    if isinstance(rule, set):
        good = value in rule
    elif isinstance(rule, re.Pattern):
        good = isinstance(value, str) and rule.fullmatch(value)
    elif isinstance(rule, type):
        good = isinstance(value, rule)
    else:
        good = rule(value)
    return [] if good else [f"{path}: {value!r} is not what the standard asks for"]


def order_faults(region):
    """3.30: a region does not end before it starts."""
    first = (region["startLine"], region.get("startColumn", 1))
    last = (region.get("endLine", region["startLine"]), region.get("endColumn", first[1]))
    return ["a region ends before it starts"] if last < first else []


def cross_faults(log):
    """References between the parts of a run."""
    found = []
    for run in log["runs"]:
        rules = [rule["id"] for rule in run["tool"]["driver"].get("rules", [])]
        artifacts = [artifact["location"]["uri"] for artifact in run.get("artifacts", [])]
        for names, what in ((rules, "rules"), (artifacts, "artifacts")):
            if len(set(names)) != len(names):
                found.append(f"{what} are not unique")
        marks = [result["partialFingerprints"]["kmmFinding/v1"] for result in run["results"]]
        if len(set(marks)) != len(marks):
            found.append("fingerprints are not unique")
        for result in run["results"]:
            if rules[result["ruleIndex"]] != result["ruleId"]:
                found.append(f"ruleIndex of {result['ruleId']} is wrong")
            # uniqueItems of the official schema
            places = [json.dumps(location, sort_keys=True) for location in result.get("locations", [])]
            if len(set(places)) != len(places):
                found.append(f"{result['ruleId']} has a location twice")
            if not result["message"]["text"]:
                found.append(f"{result['ruleId']} has an empty message")
            for location in result.get("locations", []):
                found += order_faults(location["physicalLocation"].get("region", {"startLine": 1}))
                place = location["physicalLocation"]["artifactLocation"]
                if artifacts[place["index"]] != place["uri"]:
                    found.append(f"index of {place['uri']} is wrong")
    return found
