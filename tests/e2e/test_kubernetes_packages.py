# SPDX-License-Identifier: Apache-2.0
"""apt-get, apt-mark and dpkg, or dnf, as Debian has them, switch kubeadm and kubelet of a node made of files, which has
a database of packages and a package source of its own; what runs them is killed before and after each of them."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import case
from fleet import scratch

FAKE = pathlib.Path(__file__).resolve().parent.parent / "support/fake_kubeadm_node.py"
OLD, TARGET = "1.34.4", "1.35.4"
KEPT = ["kubeadm", "kubectl", "kubelet"]
# kmm-worker calls a program of the node as `chroot ROOT PROGRAM WORD...`. These are the host's, told where the node is;
# every other one is played. KILL is "before N" or "after N": the N-th call that changes something ends with its caller.
CHROOT = """#!/bin/sh
root=$2 program=$3
[ "$1" = -- ] || { root=$1 program=$2; }
case $program in
apt-get | apt-mark | apt-cache | dpkg | dnf) ;;
*) exec "@played@/chroot" "$@" ;;
esac
while [ "$1" != "$program" ]; do shift; done
shift
root=$(cd "$root" && pwd -P)
changes=yes
case "$program $*" in apt-cache*|apt-get*-s\\ *|dnf*repoquery*) changes= ;; esac
kill_at() {
  [ -n "$changes" ] || return 0
  [ "$1" = before ] && echo "$program $*" >> @calls@
  [ "$KILL" = "$1 $(wc -l < @calls@)" ] || return 0
  rm -f @calls@.armed
  kill -9 0
}
kill_at before
if [ "$program" = dpkg ]; then dpkg --root="$root" "$@"
elif [ "$program" = dnf ]; then dnf --installroot="$root" --setopt=reposdir="$root/etc/yum.repos.d" --releasever=9 "$@"
else "$program" -o Dir="$root" -o Dir::State::status="$root/var/lib/dpkg/status" \\
  -o Dir::Bin::methods=/usr/lib/apt/methods \\
  -o Dir::Bin::solvers::=/usr/lib/apt/solvers -o Dir::Bin::dpkg=/usr/bin/dpkg -o DPkg::Options::=--root="$root" \\
  -o Dpkg::Use-Pty=false -o APT::Sandbox::User=root "$@"
fi
code=$?
kill_at after
exit $code
"""


# Has the lock for a moment.
HOLD = """
import fcntl, os, sys, time
lock = open(sys.argv[1], "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(1)
os.unlink(sys.argv[2])
"""
PACKAGES = [
    ("cri-tools", "1.34.0", ""),
    ("cri-tools", "1.35.0", ""),
    ("kubernetes-cni", "1.7.1", ""),
    *(
        entry
        for version in (OLD, TARGET)
        for entry in (
            ("kubeadm", version, "cri-tools (>= 1.30.0)"),
            ("kubelet", version, "kubernetes-cni (>= 1.2.0)"),
            ("kubectl", version, ""),
        )
    ),
]  # as pkgs.k8s.io has them


def program(name, version):
    """Its second line says what it is."""
    return f"#!/bin/sh\n# {name} v{version}\nexit 1\n"


class Apt:
    programs = ("apt-get", "apt-mark", "apt-cache", "dpkg")
    needed = ("apt-get", "dpkg-deb")
    mark = "hold ok installed"

    @staticmethod
    def source(where):
        """A package source with both versions."""
        entries = []
        for name, version, depends in PACKAGES:
            tree, built = where / "tree", where / f"{name}_{version}.deb"
            path = tree / "usr/bin" / name
            for directory in (tree / "DEBIAN", path.parent):
                directory.mkdir(parents=True)
            path.write_text(program(name, version))
            path.chmod(0o755)
            fields = {
                "Package": name,
                "Version": f"{version}-1.1",
                "Architecture": "amd64",
                "Maintainer": "nobody <nobody@example.com>",
                "Depends": depends,
                "Description": name,
            }
            lines = [f"{key}: {text}" for key, text in fields.items() if text]
            (tree / "DEBIAN/control").write_text("\n".join(lines) + "\n")
            subprocess.run(["dpkg-deb", "--build", tree, built], check=True, stdout=subprocess.DEVNULL)
            shutil.rmtree(tree)
            digest = hashlib.sha256(built.read_bytes()).hexdigest()
            entries += [*lines, f"Filename: ./{built.name}", f"Size: {built.stat().st_size}", f"SHA256: {digest}", ""]
        (where / "Packages").write_text("\n".join(entries))

    @staticmethod
    def install_old(world, source):
        dpkg = world.root / "var/lib/dpkg"
        for path in ("updates", "info", "triggers", "parts", "alternatives"):
            (dpkg / path).mkdir(parents=True)
        for path in ("status", "available"):
            (dpkg / path).touch()
        for path in (
            "var/lib/apt/lists/partial",
            "var/cache/apt/archives/partial",
            "etc/apt/apt.conf.d",
            "etc/apt/preferences.d",
            "etc/apt/sources.list.d",
            "var/log/apt",
        ):
            (world.root / path).mkdir(parents=True)
        (world.root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] file:{source} ./\n")
        world.call("apt-get", "update")
        world.call("apt-get", "install", "-y", "cri-tools=1.34.0-1.1", *(f"{name}={OLD}-1.1" for name in KEPT))
        world.call("apt-mark", "hold", *KEPT)

    @staticmethod
    def state(world):
        """The version and the status of each package."""
        states = {}
        for entry in (world.root / "var/lib/dpkg/status").read_text().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in entry.splitlines() if ": " in line and line[0] != " ")
            if fields:
                states[fields["Package"]] = (fields["Version"].removesuffix("-1.1"), fields["Status"])
        return states


class Dnf:
    programs = ("dnf",)
    needed = ("dnf", "rpmbuild", "createrepo_c")
    mark = "installed"

    @staticmethod
    def source(where):
        for name, version, depends in PACKAGES:
            spec = where / f"{name}.spec"
            requires = f"Requires: {depends.replace('(', '').replace(')', '')}\n" if depends else ""
            spec.write_text(
                f"Name: {name}\nVersion: {version}\nRelease: 150500.1.1\nSummary: {name}\nLicense: none\n"
                f"BuildArch: noarch\nAutoReqProv: no\n{requires}%description\n{name}\n%install\n"
                f"mkdir -p %{{buildroot}}/usr/bin\ncat > %{{buildroot}}/usr/bin/{name} <<'END'\n"
                f"{program(name, version)}END\nchmod 755 %{{buildroot}}/usr/bin/{name}\n%files\n/usr/bin/{name}\n"
            )
            subprocess.run(
                ["rpmbuild", "-bb", "--quiet", "-D", f"_topdir {where}/work", "-D", f"_rpmdir {where}", spec],
                check=True,
                capture_output=True,
            )
        subprocess.run(["createrepo_c", "-q", where], check=True)

    @staticmethod
    def install_old(world, source):
        repository = world.root / "etc/yum.repos.d/kubernetes.repo"
        repository.parent.mkdir(parents=True)
        repository.write_text(
            f"[kubernetes]\nname=Kubernetes\nbaseurl=file://{source}\nenabled=1\ngpgcheck=0\n"
            "exclude=kubelet kubeadm kubectl cri-tools kubernetes-cni\n"
        )
        wanted = ("cri-tools-1.34.0", *(f"{name}-{OLD}" for name in KEPT))
        world.call("dnf", "install", "-y", "--setopt=disable_excludes=kubernetes", *wanted)

    @staticmethod
    def state(world):
        told = subprocess.run(
            ["rpm", "--root", world.root.resolve(), "-qa", "--qf", "%{NAME} %{VERSION}\n"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return {line.split()[0]: (line.split()[1], "installed") for line in told.splitlines()}


class World:
    """A node of v1.34.4 whose packages come from `source`."""

    def __init__(self, manager, source, role):
        self.manager = manager
        self.top = scratch("packages")
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
        for name in manager.programs:
            shutil.copy(self.root / "usr/bin/crictl", self.root / "usr/bin" / name)
        manager.install_old(self, source)
        self.calls.unlink()

    def environment(self, kill=""):
        return {
            **os.environ,
            "PATH": f"{self.top}/bin:{case.TOOLS.bin}:/usr/sbin:/sbin:{os.environ['PATH']}",
            "KMM_HOST_ROOT": "host",
            "KILL": kill,
        }

    def call(self, *words):
        done = subprocess.run(
            ["chroot", "host", *words],
            cwd=self.top,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stdout}{done.stderr}")

    def run(self, *words, kill=""):
        return subprocess.run(
            ["kmm-worker", "kubernetes", *words],
            cwd=self.top,
            env=self.environment(kill),
            capture_output=True,
            text=True,
            check=False,
        )

    def switch(self, kill="", verb="kubelet", target=TARGET):
        return self.run(verb, "--target", f"v{target}", "--switch", "packages", kill=kill)

    def changes(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)


class Switched:
    """What holds for every package manager."""
    manager = None

    @classmethod
    def setUpClass(cls):
        missing = [name for name in cls.manager.needed if shutil.which(name) is None]
        if os.geteuid() != 0 or missing:
            raise unittest.SkipTest(f"needs root, and {' '.join(cls.manager.needed)}")
        cls.where = scratch("source")
        cls.addClassCleanup(shutil.rmtree, cls.where, ignore_errors=True)
        cls.manager.source(cls.where)

    def world(self, role="worker"):
        world = World(self.manager, self.where, role)
        self.addCleanup(world.close)
        return world

    def assert_switched(self, world, names=KEPT, target=TARGET):
        states = self.manager.state(world)
        for name in names:
            self.assertEqual(states[name], (target, self.manager.mark))
        self.assertEqual(states["cri-tools"][0], "1.34.0", "what needs no change stays")

    def test_undisturbed(self):
        world = self.world()
        self.assertEqual(self.manager.state(world)["kubelet"], (OLD, self.manager.mark))
        done = world.switch()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_switched(world)
        again = world.switch()
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_way_back(self):
        world = self.world()
        self.assertEqual(world.switch().returncode, 0)
        done = world.switch(target=OLD)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_switched(world, target=OLD)

    def test_scanned(self):
        done = self.world().run("facts", "--for-upgrade", "--scan", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(TARGET, json.dumps(json.loads(done.stdout)["scan"]["packages"]))

    def test_killed(self):
        self.killed("worker", "kubelet", KEPT)

    def test_killed_while_kubeadm_is_installed(self):
        self.killed("", "images", ["kubeadm"])

    def killed(self, role, verb, names):
        whole = self.world(role)
        self.assertEqual(whole.switch(verb=verb).returncode, 0)
        count = len(whole.changes())
        self.assertGreater(count, 0)
        moments = [f"{side} {number}" for number in range(1, count + 1) for side in ("before", "after")]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            outcomes = pool.map(lambda moment: self.killed_at(moment, role, verb, names), moments)
            for moment, told in zip(moments, outcomes):
                with self.subTest(kill=moment):
                    self.assertEqual(told, "")

    def killed_at(self, moment, role, verb, names):
        """What was wrong after a kill at that moment and one repetition; "" if nothing."""
        world = World(self.manager, self.where, role)
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


class SwitchedByDnf(Switched, unittest.TestCase):
    manager = Dnf

    def test_refused(self):
        """What dnf says is told, and nothing was changed."""
        world = self.world()
        before = Dnf.state(world)
        done = world.run("kubelet", "--target", "v1.35.9", "--switch", "packages")
        self.assertEqual(done.returncode, 10, done.stderr)
        self.assertIn("dnf knows no package kubeadm-1.35.9", done.stderr)
        self.assertEqual((Dnf.state(world), world.changes()), (before, []))


class SwitchedByApt(Switched, unittest.TestCase):
    manager = Apt

    def test_refused(self):
        """What apt says is told, with the way out, and nothing was changed."""
        world = self.world()
        before = Apt.state(world)
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
        self.assertEqual(Apt.state(world), before)
        self.assertEqual(world.changes(), [])

    def test_locked_by_another(self):
        """As unattended-upgrades has the lock while it works: it is waited for, also where its dpkg is in the midst."""
        world = self.world()
        dpkg = world.root / "var/lib/dpkg"
        (dpkg / "updates/0001").write_text("")
        (dpkg / "lock-frontend").touch()
        held = subprocess.Popen(["python3", "-c", HOLD, dpkg / "lock-frontend", dpkg / "updates/0001"],
                                stdout=subprocess.PIPE)
        self.addCleanup(held.communicate)
        held.stdout.readline()
        done = world.switch()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_switched(world)

    def test_cut_off_before(self):
        """What a dpkg has not finished is finished first, with the files that the administrator has changed."""
        world = self.world()
        (world.root / "var/lib/dpkg/updates/0001").write_text(
            "Package: kubelet\nStatus: hold ok unpacked\nMaintainer: nobody <nobody@example.com>\n"
            f"Architecture: amd64\nVersion: {OLD}-1.1\nDepends: kubernetes-cni (>= 1.2.0)\nDescription: kubelet\n")
        done = world.switch()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_switched(world)
        self.assertTrue(world.changes()[0].startswith("dpkg "), world.changes())
