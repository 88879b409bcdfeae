# SPDX-License-Identifier: Apache-2.0
"""A full or failing disk at calls that write, make durable or rename; with KMM_FULL=1 at every one."""
import shutil

from case import E2eCase
from fleet import scratch
from injection import every, inject, points, tried
from test_kill import START

WRITING = ("write", "pwrite64", "fsync", "rename", "renameat", "renameat2", "fallocate", "mkdir")


class DiskErrors(E2eCase):
    nodes = ("node-a", "node-b")
    command = START

    def fail_everywhere(self, error, once):
        expected = self.unkilled(self.fleet, lambda world: world.start())
        found, _ = points(self.fleet, self.command, changing=WRITING)
        self.assertGreater(len(found), 10)
        cases = tried(found)

        def body(point):
            name, number = point
            where = scratch("error")
            try:
                world = self.fleet.copy(where / "w")
                done = world.run(
                    *self.command, prefix=inject(name, f"error={error}:when={number}{'' if once else '+'}")
                )
                if done.returncode in (70, 1) or done.returncode < 0:
                    return f"exit {done.returncode}: {done.stdout}"
                if done.returncode == 0 and self.compare(world, expected, done):
                    return f"exit 0, but {self.compare(world, expected, done)}"
                return self.compare(world, expected, world.go_on())
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body)
        self.report(f"{error} {'at' if once else 'from'} {len(cases)} of {len(found)} calls")
        self.assertEqual(faults[:3], [], f"{len(faults)} of {len(cases)} end otherwise")

    def test_full_disk(self):
        self.fail_everywhere("ENOSPC", once=False)

    def test_one_bad_write(self):
        self.fail_everywhere("EIO", once=True)

    def test_no_space_is_found_before_any_node_is_touched(self):
        done = self.fleet.run(*START, prefix=inject("fallocate", "error=ENOSPC:when=1+"))
        self.assertEqual(done.returncode, 74, done.stdout)
        self.assertIn("ENOSPC", done.stdout)
        self.assertEqual({call[2] for call in self.fleet.calls()} - {"status", "check"}, set())
        self.assertEqual(self.fleet.start().returncode, 0)

    def test_failed_fsync_names_the_file(self):
        found, _ = points(self.fleet, START, changing=("fsync",), only="journal")
        done = self.fleet.run(*START, prefix=inject("fsync", f"error=EIO:when={found[2][1]}"))
        self.assertEqual(done.returncode, 74, done.stdout)
        self.assertIn("journal.ndjson", done.stdout)
        self.assertEqual(self.fleet.go_on().returncode, 0)

    def test_no_locks_here(self):
        found, _ = points(self.fleet, START, only="F_OFD_SETLK, {l_type=F_WRLCK")
        places = ("--state-dir", "keep the cluster directory")
        self.assertEqual(len(found), len(places))
        for point, place in zip(found, places):
            for error in ("ENOLCK", "EOPNOTSUPP", "EINVAL"):
                done = self.fleet.run(*START, prefix=inject("fcntl", f"error={error}:when={point[1]}"))
                self.assertEqual(done.returncode, 74, done.stdout)
                self.assertIn("unsafe-state-fs", done.stdout)
                self.assertIn(place, done.stdout)
        self.assertEqual(self.fleet.calls(), [])
