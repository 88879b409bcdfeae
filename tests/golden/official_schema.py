# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of SARIF 2.1.0 as OASIS publishes it (errata 01). It is not part of this tree: a Go module carries
it, which is fetched once, as the servers of tests/apiserver are, and kept in their cache. What it must be is pinned
here."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "apiserver"))

from testbed import binaries  # noqa: E402

MODULE = "github.com/owenrumney/go-sarif/v3@v3.2.0"
FILE = "pkg/report/v210/sarif/schema.go"
SHA256 = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"


def _is_good(text):
    return hashlib.sha256(text.encode()).hexdigest() == SHA256


def text(directory):
    """The schema; Go may work in `directory`. Errors: binaries.Unavailable."""
    kept = binaries.cache() / "sarif-2.1.0.json"
    if kept.exists() and _is_good(kept.read_text(encoding="utf-8")):
        return kept.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        go = binaries.find_go(directory)
        # Pinned below, so nobody else need vouch for it.
        environment = dict(os.environ, GOTOOLCHAIN="local", GOWORK="off", GOFLAGS="-mod=mod", GOSUMDB="off")
        command = [go, "mod", "download", "-json", MODULE]
        binaries.attempt(f"downloading {MODULE}", command, cwd=scratch, env=environment)
        said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=scratch, env=environment).stdout
        source = pathlib.Path(json.loads(said)["Dir"], FILE).read_text(encoding="utf-8")
    found = re.search(r"`(.*)`", source, re.S)[1]
    if not _is_good(found):
        raise binaries.Unavailable(f"{MODULE} has another {FILE} than is expected")
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_name(f"{kept.name}.{os.getpid()}")
    new.write_text(found, encoding="utf-8")
    new.replace(kept)
    return found


def validator(directory):
    """Of documents, by python3-jsonschema; Go may work in `directory`. Errors: binaries.Unavailable."""
    try:
        import jsonschema
    except ImportError as error:
        raise binaries.Unavailable(f"no python3-jsonschema: {error}") from error
    return jsonschema.Draft4Validator(json.loads(text(directory)))


def faults(valid, log):
    """What `valid`, the validator, finds wrong with a log."""
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in valid.iter_errors(log)]
