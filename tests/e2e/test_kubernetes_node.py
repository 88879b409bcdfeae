# SPDX-License-Identifier: Apache-2.0
"""The real kmm-worker upgrades a control plane made of files, while kubeadm, its job, or the caller is killed at every
point: it never reports a success that is none, and repeating it ends with a whole control plane of the target."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import case
from fleet import scratch
from injection import inject, usable

FAKE = pathlib.Path(__file__).resolve().parent.parent / "support/fake_kubeadm_node.py"
TARGET = "v1.35.4"
REPAIR = "kmm-worker kubernetes repair"
RENAMES = 8  # of kubeadm: two for each of the four manifests
CALLS = (
    "openat",
    "write",
    "fsync",
    "rename,renameat,renameat2",
    "clone,clone3,fork,vfork",
    "wait4",
    "fcntl",
    "unlink,unlinkat",
    "mkdir,mkdirat",
)
POINTS_MAX = 400  # of one kind; more means that the count never ends
NTH = 1 if os.environ.get("KMM_FULL") else 5


class World:
    """A control plane of v1.34.4 with kubeadm of the target."""

    def __init__(self):
        self.top = scratch("kube")
        self.root = self.top / "host"
        subprocess.run(["python3", FAKE, "make", "host", TARGET], cwd=self.top, env=self.environment(), check=True)
        for path in (self.root / "etc/kubernetes/manifests").iterdir():
            path.write_text(path.read_text().replace(TARGET, "v1.34.4").replace("3.6.6-0", "3.6.5-0"))

    def behave(self, **what):
        (self.root / "fake/behaviour").write_text(json.dumps(what))

    def environment(self):
        return {**os.environ, "PATH": f"{self.top}/bin:{case.TOOLS.bin}:{os.environ['PATH']}", "KMM_HOST_ROOT": "host"}

    def run(self, *words, prefix=()):
        return subprocess.run(
            [*prefix, "kmm-worker", "kubernetes", *words],
            cwd=self.top,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    def is_upgraded(self):
        texts = {path.name: path.read_text() for path in (self.root / "etc/kubernetes/manifests").iterdir()}
        return len(texts) == 4 and all(
            (":3.6.6-0\n" if name == "etcd.yaml" else f":{TARGET}\n") in text for name, text in texts.items()
        )

    def upgrade_to_the_end(self):
        """Repeats the step, repairing when it says so; returns what was wrong, or ""."""
        told = []
        for _ in range(4):
            done = self.run("control-plane", "--target", TARGET, "--first")
            told.append(f"exit {done.returncode}: {done.stdout}{done.stderr}")
            if done.returncode == 0:
                return "" if self.is_upgraded() else "success without an upgraded control plane\n" + "".join(told)
            if REPAIR in done.stderr:
                repair = self.run("repair")
                if repair.returncode != 0:
                    return "repair failed\n" + "".join(told) + repair.stderr
        return "it does not end\n" + "".join(told)

    def kubeadm_runs(self):
        log = self.root / "fake/log"
        return log.read_text().count("kubeadm upgrade apply") if log.exists() else 0

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)


class KilledKubeadm(unittest.TestCase):
    def killed(self, together):
        for point in range(RENAMES + 1):
            with self.subTest(renames=point):
                world = World()
                self.addCleanup(world.close)
                world.behave(die_at=point, **({"all": True} if together else {}))
                first = world.run("control-plane", "--target", TARGET, "--first")
                self.assertEqual(first.returncode, 11 if together else 1, first.stderr)
                is_gap = point % 2 == 1
                self.assertEqual(len(list((world.root / "etc/kubernetes/manifests").iterdir())), 3 if is_gap else 4)
                if is_gap:
                    # As it is, nothing may run kubeadm again.
                    before = world.kubeadm_runs()
                    refused = world.run("control-plane", "--target", TARGET, "--first")
                    self.assertEqual((refused.returncode, world.kubeadm_runs()), (10, before), refused.stderr)
                    self.assertIn("manifests-damaged", refused.stderr)
                world.behave()
                self.assertEqual(world.upgrade_to_the_end(), "")

    def test_kubeadm(self):
        self.killed(together=False)

    def test_kubeadm_and_its_job(self):
        self.killed(together=True)


def killed_caller(call, point):
    """None: there is no such point; else what was wrong."""
    world = World()
    try:
        first = world.run(
            "control-plane", "--target", TARGET, "--first", prefix=inject(call, f"signal=KILL:when={point}")
        )
        if first.returncode == 0:
            return None
        fault = world.upgrade_to_the_end()
        runs = world.kubeadm_runs()
        # A job that was started is adopted: kubeadm runs once.
        return fault or (f"kubeadm ran {runs} times" if runs != 1 else "")
    finally:
        world.close()


class KilledCaller(unittest.TestCase):
    def test_at_every_call(self):
        if not usable():
            self.skipTest("processes cannot be traced here")
        tried = 0
        for call in CALLS:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                for start in range(1, POINTS_MAX, 8 * NTH):
                    points = range(start, start + 8 * NTH, NTH)
                    faults = list(pool.map(lambda point, name=call: killed_caller(name, point), points))
                    for point, fault in zip(points, faults):
                        self.assertIn(fault, ("", None), f"{call} {point}")
                    tried += sum(fault is not None for fault in faults)
                    if None in faults:
                        break
                else:
                    self.fail(f"{call}: more than {POINTS_MAX} points")
        self.assertGreater(tried, 20 if NTH > 1 else 100)
        print(f"{tried} kills")
