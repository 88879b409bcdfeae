# SPDX-License-Identifier: Apache-2.0
"""Debian's own apt-get, apt-mark and dpkg switch kubeadm and kubelet of a node made of files, which has a database of
packages and a package source of its own; what runs them is killed before and after each of them."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import unittest

import case
from fleet import scratch

FAKE = pathlib.Path(__file__).resolve().parent.parent / "support/fake_kubeadm_node.py"
OLD, TARGET = "1.34.4", "1.35.4"
HELD = ["kubeadm", "kubectl", "kubelet"]
# kmm-worker calls a program of the node as `chroot ROOT PROGRAM WORD...`. These are the host's, told where the node is;
# every other one is played. KILL is "before N" or "after N": the N-th call that changes something ends with its caller.
CHROOT = """#!/bin/sh
root=$2 program=$3
[ "$1" = -- ] || { root=$1 program=$2; }
case $program in
apt-get | apt-mark | apt-cache | dpkg) ;;
*) exec "@played@/chroot" "$@" ;;
esac
while [ "$1" != "$program" ]; do shift; done
shift
root=$(cd "$root" && pwd -P)
changes=yes
case "$program $*" in apt-cache*|apt-get*-s\\ *|apt-mark\\ show*) changes= ;; esac
kill_at() {
  [ -n "$changes" ] || return 0
  [ "$1" = before ] && echo "$program $*" >> @calls@
  [ "$KILL" = "$1 $(wc -l < @calls@)" ] || return 0
  rm -f @calls@.armed
  kill -9 0
}
kill_at before
if [ "$program" = dpkg ]; then dpkg --root="$root" "$@"
else "$program" -o Dir="$root" -o Dir::State::status="$root/var/lib/dpkg/status" \\
  -o Dir::Bin::methods=/usr/lib/apt/methods \\
  -o Dir::Bin::solvers::=/usr/lib/apt/solvers -o Dir::Bin::dpkg=/usr/bin/dpkg -o DPkg::Options::=--root="$root" \\
  -o Dpkg::Use-Pty=false -o APT::Sandbox::User=root "$@"
fi
code=$?
kill_at after
exit $code
"""


def package(where, name, version, depends=""):
    """A package as pkgs.k8s.io has it, with a program whose second line says what it is."""
    tree = where / f"{name}_{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr/share/doc" / name).mkdir(parents=True)
    (tree / "usr/share/doc" / name / "README").write_text(f"{name}\n")
    fields = {
        "Package": name,
        "Version": f"{version}-1.1",
        "Architecture": "amd64",
        "Maintainer": "nobody <nobody@example.com>",
        "Depends": depends,
        "Description": name,
    }
    (tree / "DEBIAN/control").write_text("".join(f"{key}: {text}\n" for key, text in fields.items() if text))
    if name.startswith("kube") and name != "kubernetes-cni":
        program = tree / "usr/bin" / name
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n# {name} v{version}\nexit 1\n")
        program.chmod(0o755)
    built = where / f"{name}_{version}.deb"
    subprocess.run(["dpkg-deb", "--build", tree, built], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return fields, built


def source(where):
    """A package source with both versions."""
    where.mkdir()
    made = [package(where, "cri-tools", "1.34.0"), package(where, "cri-tools", "1.35.0")]
    made.append(package(where, "kubernetes-cni", "1.7.1"))
    for version in (OLD, TARGET):
        made.append(package(where, "kubeadm", version, "cri-tools (>= 1.30.0)"))
        made.append(package(where, "kubelet", version, "kubernetes-cni (>= 1.2.0)"))
        made.append(package(where, "kubectl", version))
    entries = []
    for fields, built in made:
        entries += [f"{key}: {text}" for key, text in fields.items() if text]
        digest = subprocess.run(["sha256sum", built], check=True, capture_output=True, text=True).stdout.split()[0]
        entries += [f"Filename: ./{built.name}", f"Size: {built.stat().st_size}", f"SHA256: {digest}", ""]
    (where / "Packages").write_text("\n".join(entries))


class World:
    """A worker of v1.34.4 whose packages come from `debs`."""

    def __init__(self, debs, role="worker"):
        self.top = scratch("apt")
        self.root = self.top / "host"
        make = ["python3", FAKE, "make", "host", f"v{OLD}", role]
        subprocess.run(make, cwd=self.top, env=self.environment(), check=True)
        (self.top / "played").mkdir()
        (self.top / "bin/chroot").rename(self.top / "played/chroot")
        self.calls = self.top / "calls"
        chroot = self.top / "bin/chroot"
        chroot.write_text(CHROOT.replace("@played@", str(self.top / "played")).replace("@calls@", str(self.calls)))
        chroot.chmod(0o755)
        for name in ("kubeadm", "kubelet"):
            (self.root / "usr/bin" / name).unlink()
        for name in ("apt-get", "apt-mark", "apt-cache", "dpkg"):
            shutil.copy(self.root / "usr/bin/crictl", self.root / "usr/bin" / name)
        for path in ("updates", "info", "triggers", "parts", "alternatives"):
            (self.root / "var/lib/dpkg" / path).mkdir(parents=True)
        for path in ("status", "available"):
            (self.root / "var/lib/dpkg" / path).touch()
        for path in ("var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "etc/apt/apt.conf.d",
                     "etc/apt/preferences.d", "etc/apt/sources.list.d", "var/log/apt"):
            (self.root / path).mkdir(parents=True)
        (self.root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] file:{debs} ./\n")
        self.apt("apt-get", "update")
        self.apt("apt-get", "install", "-y", "cri-tools=1.34.0-1.1", *(f"{name}={OLD}-1.1" for name in HELD))
        self.apt("apt-mark", "hold", *HELD)
        self.calls.unlink()

    def environment(self, kill=""):
        return {
            **os.environ,
            "PATH": f"{self.top}/bin:{case.TOOLS.bin}:/usr/sbin:/sbin:{os.environ['PATH']}",
            "KMM_HOST_ROOT": "host",
            "KILL": kill,
        }

    def apt(self, *words):
        return subprocess.run(
            ["chroot", "host", *words], cwd=self.top, env=self.environment(), check=True, capture_output=True, text=True
        ).stdout

    def run(self, *words, kill=""):
        return subprocess.run(
            ["kmm-worker", "kubernetes", *words],
            cwd=self.top,
            env=self.environment(kill),
            capture_output=True,
            text=True,
            check=False,
        )

    def switch(self, kill="", verb="kubelet"):
        return self.run(verb, "--target", f"v{TARGET}", "--switch", "packages", kill=kill)

    def changes(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def state(self):
        """Versions and states of the packages, and which are held."""
        states = {}
        for entry in (self.root / "var/lib/dpkg/status").read_text().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in entry.splitlines() if ": " in line and line[0] != " ")
            if fields:
                states[fields["Package"]] = (fields["Version"], fields["Status"])
        return states

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)


class Apt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise unittest.SkipTest("needs root, apt-get and dpkg")
        cls.where = scratch("debs")
        cls.addClassCleanup(shutil.rmtree, cls.where, ignore_errors=True)
        source(cls.where / "source")

    def world(self, role="worker"):
        world = World(self.where / "source", role)
        self.addCleanup(world.close)
        return world

    def assert_switched(self, world, names=HELD):
        states = world.state()
        for name in names:
            self.assertEqual(states[name], (f"{TARGET}-1.1", "hold ok installed"))
        self.assertEqual(states["cri-tools"], ("1.34.0-1.1", "install ok installed"), "what needs no change stays")

    def test_undisturbed(self):
        world = self.world()
        done = world.switch()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_switched(world)
        again = world.switch()
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_killed(self):
        self.killed("worker", "kubelet", HELD, 5)

    def test_killed_while_kubeadm_is_installed(self):
        self.killed("", "images", ["kubeadm"], 3)

    def killed(self, role, verb, names, least):
        whole = self.world(role)
        self.assertEqual(whole.switch(verb=verb).returncode, 0)
        count = len(whole.changes())
        self.assertGreater(count, least)
        moments = [f"{side} {number}" for number in range(1, count + 1) for side in ("before", "after")]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            outcomes = pool.map(lambda moment: self.killed_at(moment, role, verb, names), moments)
            for moment, told in zip(moments, outcomes):
                with self.subTest(kill=moment):
                    self.assertEqual(told, "")

    def killed_at(self, moment, role, verb, names):
        """What was wrong after a kill at that moment and one repetition; "" if nothing."""
        world = World(self.where / "source", role)
        try:
            world.switch(moment, verb)
            if len(world.changes()) != int(moment.split()[1]):
                return "it was not killed there"
            done = world.switch(verb=verb)
            if done.returncode != 0:
                return f"exit {done.returncode}: {done.stdout}{done.stderr}"
            self.assert_switched(world, names)
            return ""
        except AssertionError as error:
            return str(error)
        finally:
            world.close()

    def test_refused(self):
        """What apt says is told, with the way out, and nothing was changed."""
        world = self.world()
        before = world.state()
        done = world.run("kubelet", "--target", "v1.35.9", "--switch", "packages")
        self.assertEqual(done.returncode, 10, done.stderr)
        self.assertIn("package-not-found", done.stderr)
        self.assertIn("Version '1.35.9-*' for 'kubeadm' was not found", done.stderr)
        status = world.root / "var/lib/dpkg/status"
        text = status.read_text()
        status.write_text(text.replace("Package: cri-tools\nStatus: install ok installed",
                                       "Package: cri-tools\nStatus: deinstall ok config-files"))
        done = world.switch()
        self.assertEqual(done.returncode, 10, done.stderr)
        self.assertIn("package-refused", done.stderr)
        self.assertIn("apt-get -s install kubeadm=1.35.4-*", done.stderr)
        status.write_text(text)
        self.assertEqual(world.state(), before)
        self.assertEqual(world.changes(), [])
