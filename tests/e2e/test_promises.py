# SPDX-License-Identifier: Apache-2.0
"""What docs/promises.md promises of the running command, one test each."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from case import E2eCase, differences
from fleet import Fleet, MODULE, scratch
from injection import every
from test_kill import START

MODULE_ARGUMENTS = ("module", MODULE, "--to", "v2")


def text_of(directory):
    """{path: bytes} of every regular file below."""
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()
    }


def without_boots(objects):
    """A fake node adds -r to its boot id with every reboot."""
    return {path: re.sub(r"boot-(node-[a-z])(-r)*", r"boot-\1", text) for path, text in objects.items()}


class Locking(E2eCase):
    needs_tracing = False

    def hold(self):
        """The next unload of node-a takes until `let_go`."""
        self.fleet.fault("node-a", "unload held")

    def let_go(self):
        (self.fleet.nodes / "node-a" / "let-go").touch()

    def wait_for_call(self, verb, node="node-a"):
        end = time.monotonic() + 600
        while time.monotonic() < end:
            if any(call[:3] == ["begin", node, verb] for call in self.fleet.calls()):
                return
            time.sleep(0.01)
        self.fail(f"no {verb} on {node}: {self.fleet.calls()}")

    def test_second_one_is_told_who_where_and_since(self):
        self.hold()
        first = self.fleet.begin(*START)
        self.wait_for_call("unload")
        for arguments in (START, ("resume",), ("abort",), ("step",)):
            second = self.fleet.run(*arguments)
            self.assertEqual(second.returncode, 75, second.stdout)
            self.assertIn(str(first.pid), second.stdout)
            self.assertIn(os.uname().nodename, second.stdout)
            self.assertRegex(second.stdout, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
            self.assertIn("start", second.stdout)
        self.let_go()
        self.assertEqual(first.wait(30), 0)

    def test_a_record_elsewhere_is_no_way_around_the_lock(self):
        self.hold()
        first = self.fleet.begin(*START)
        self.wait_for_call("unload")
        other = Fleet(self.fleet.tools, self.fleet.root)
        other.state = self.fleet.root / "elsewhere"
        for arguments in (START, ("adopt",), ("doctor", "--fix", "--yes")):
            second = other.run(*arguments)
            self.assertEqual(second.returncode, 75, f"{arguments}: {second.stdout}")
            self.assertIn("cluster-locked", second.stdout)
            self.assertIn(str(first.pid), second.stdout)
        self.let_go()
        self.assertEqual(other.run(*START, "--dry-run").returncode, 0)
        self.assertEqual(first.wait(30), 0)
        self.assertEqual(self.fleet.most_without(), 1)
        self.assertEqual(other.run("apply").returncode, 0)

    def test_show_needs_no_lock(self):
        self.hold()
        first = self.fleet.begin(*START)
        self.wait_for_call("unload")
        for _ in range(20):
            shown = self.fleet.run("show")
            self.assertEqual(shown.returncode, 0, shown.stdout)
        self.assertIsNone(first.poll())
        self.let_go()
        self.assertEqual(first.wait(30), 0)

    def test_show_sees_a_run_that_only_grows(self):
        first = self.fleet.begin(*START)
        reads, steps = 0, 0
        while first.poll() is None:
            shown = self.fleet.run("show", "-o", "json")
            if shown.returncode == 66:  # not yet recorded
                continue
            self.assertEqual(shown.returncode, 0, shown.stdout)
            done = len(re.findall(r'"state": ?"done"', shown.stdout))
            self.assertGreaterEqual(done, steps)
            reads, steps = reads + 1, done
        self.assertEqual(first.wait(), 0)
        self.report(f"{reads} reads during a run")

    def test_lock_dies_with_its_owner(self):
        self.fleet.fault("node-a", "unload slow 300")
        first = self.fleet.begin(*START)
        self.wait_for_call("unload")
        first.kill()
        first.wait()
        done = self.fleet.run("resume")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_crowd(self):
        """Eight at once: one run, and every loser is told."""
        self.hold()
        processes = [self.fleet.begin(*START, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(8)]
        while [process.poll() for process in processes].count(None) > 1:
            time.sleep(0.01)
        self.let_go()
        codes = []
        for process in processes:
            process.communicate(timeout=600)
            codes.append(process.returncode)
        self.assertEqual(codes.count(0), 1, codes)
        self.assertEqual(codes.count(75), 7, codes)
        self.assertLessEqual(self.fleet.most_without(), 1)


class Signals(E2eCase):
    needs_tracing = False
    nodes = ("node-a", "node-b")

    def test_interrupted_at_many_moments(self):
        for node in self.nodes:
            for verb in ("unload", "load"):
                self.fleet.fault(node, f"{verb} slow 30")
        expected = self.unkilled(self.fleet, lambda world: world.start())
        moments = self.moments(self.fleet, lambda world: world.start(), 30)
        cases = [
            (number, code, moment)
            for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129))
            for moment in moments
        ]

        def body(item):
            number, code, moment = item
            where = scratch("signal")
            try:
                world = self.fleet.copy(where / "w")
                process = world.begin(*START, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                time.sleep(moment)
                process.send_signal(number)
                output = process.communicate(timeout=600)[0].decode()
                early = -number  # before the handlers were there
                if process.returncode not in (0, code, early):
                    return f"exit {process.returncode}: {output}"
                recorded = (world.state / "journal.ndjson").exists()
                ended = "upgrade-complete" in output  # the signal came after the last step
                if process.returncode == code and recorded and not ended and "resume" not in output:
                    return f"does not say how to go on: {output}"
                return self.compare(world, expected, world.go_on())
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body)
        self.report(f"interrupted at {len(cases)} moments")
        self.assertEqual(faults[:3], [])

    def test_second_signal_leaves_at_once(self):
        self.fleet.fault("node-a", "load held")
        process = self.fleet.begin(*START)
        end = time.monotonic() + 600
        while not any(call[:3] == ["begin", "node-a", "load"] for call in self.fleet.calls()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        # The load is held until this test lets it go.
        self.assertEqual(process.wait(60), 130)
        (self.fleet.nodes / "node-a" / "let-go").touch()
        expected = self.unkilled(self._template, lambda world: world.start())
        self.assertEqual(self.compare(self.fleet, expected, self.fleet.run("resume")), "")


class Streams(E2eCase):
    """Nothing that happens to the standard streams changes what the run does."""
    needs_tracing = False
    nodes = ("node-a", "node-b")

    def end_is(self, expected, world, done):
        self.assertNotIn(done, (70, 1), "exit code")
        self.assertGreaterEqual(done, 0)
        self.assertEqual(self.compare(world, expected, world.go_on()), "")

    def test_streams(self):
        expected = self.unkilled(self.fleet, lambda world: world.start())
        shells = {
            "closed stdout": '"$@" >&-',
            "closed stderr": '"$@" 2>&-',
            "all closed": '"$@" <&- >&- 2>&-',
            "full stdout": '"$@" >/dev/full',
            "full stderr": '"$@" 2>/dev/full',
            "both full": '"$@" >/dev/full 2>&1',
            "a reader that leaves": 'set -o pipefail; "$@" 2>&1 | head -n 1',
        }
        for name, script in shells.items():
            with self.subTest(name):
                world = self.fleet.copy(self.work / re.sub(" ", "-", name))
                done = world.run(*START, prefix=("bash", "-c", script, "bash"))
                self.end_is(expected, world, done.returncode)
                # No state file may have become a standard stream.
                self.assertEqual(world.run("show").returncode, 0)


class Idempotence(E2eCase):
    needs_tracing = False

    def test_resume_of_a_finished_run_writes_nothing(self):
        self.assertEqual(self.fleet.start().returncode, 0)
        calls = len(self.fleet.calls())
        cluster, state = text_of(self.fleet.cluster), text_of(self.fleet.state)
        stamps = {path: path.stat().st_mtime_ns for path in self.fleet.cluster.rglob("*.yaml")}
        for _ in range(2):
            done = self.fleet.run("resume")
            self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(text_of(self.fleet.cluster), cluster)
        self.assertEqual({path: path.stat().st_mtime_ns for path in stamps}, stamps)
        del state["lock"]
        after = text_of(self.fleet.state)
        del after["lock"]
        self.assertEqual(after, state)
        verbs = {call[2] for call in self.fleet.calls()[calls:]}
        self.assertEqual(verbs - {"status"}, set())

    def test_abort_twice(self):
        self.assertEqual(self.fleet.start("--canary", "1").returncode, 11)
        self.assertEqual(self.fleet.run("abort", "--rollback", "all").returncode, 0)
        first = self.fleet.outcome()
        done = self.fleet.run("abort", "--rollback", "all")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.fleet.outcome(), first)
        template = self._template.outcome()
        self.assertEqual(self.fleet.live(), template["live"])

    def test_one_node_at_a_time(self):
        self.assertEqual(self.fleet.start().returncode, 0)
        self.assertEqual(self.fleet.most_without(), 1)

    def test_max_unavailable_is_reached_and_kept(self):
        for node in self.nodes:
            self.fleet.fault(node, "unload slow 100")
            self.fleet.fault(node, "load slow 1000")
        self.assertEqual(self.fleet.start("--max-unavailable", "2").returncode, 0)
        self.assertEqual(self.fleet.most_without(), 2)


class Cordons(E2eCase):
    """This release cordons nothing: spec.unschedulable is the administrator's, whatever happens."""
    needs_tracing = False
    unschedulable = ("node-b",)

    def test_kept(self):
        before = self.fleet.cordons()
        self.fleet.fault("node-b", "load refused")
        self.assertEqual(self.fleet.start().returncode, 11)
        self.assertEqual(self.fleet.cordons(), before)
        self.assertEqual(self.fleet.run("resume").returncode, 0)
        self.assertEqual(self.fleet.cordons(), before)
        text = "".join(path.read_text() for path in self.fleet.cluster.rglob("*.yaml"))
        self.assertEqual(text.count("unschedulable: true"), 1)
        self.assertEqual(text.count("# what the Module selects"), 3)


class Troubles(E2eCase):
    """Nodes that refuse, reboot, or go away in mid-step: the same end, or a clear pause."""
    needs_tracing = False

    def test_lost_connections_and_reboots(self):
        expected = self.unkilled(self.fleet, lambda world: world.start())
        expected["objects"] = without_boots(expected["objects"])
        kinds = ("cut-before", "cut-after", "reboot-before", "reboot-after", "unreachable")
        cases = [(verb, kind, node) for verb in ("status", "check", "unload", "load") for kind in kinds
                 for node in ("node-a", "node-b")]

        def body(item):
            verb, kind, node = item
            where = scratch("trouble")
            try:
                world = self.fleet.copy(where / "w")
                world.fault(node, f"{verb} {kind}")
                done = world.start()
                if done.returncode not in (0, 10, 11):
                    return f"exit {done.returncode}: {done.stdout}"
                if done.returncode:
                    done = world.go_on()
                if done.returncode != 0:
                    return f"going on: exit {done.returncode}: {done.stdout}"
                found = world.outcome()
                found["objects"] = without_boots(found["objects"])
                return differences(expected, found)
            finally:
                shutil.rmtree(where, ignore_errors=True)

        faults = every(cases, body)
        self.report(f"{len(cases)} lost connections and reboots")
        self.assertEqual(faults[:3], [])

    def test_v2_that_cannot_load_is_found_first(self):
        for kind in ("check-failed", "image-not-found"):
            with self.subTest(kind):
                world = self.fleet.copy(self.work / kind)
                world.fault("node-b", f"check {kind}")
                before = world.live()
                done = world.start()
                self.assertEqual(done.returncode, 10, done.stdout)
                self.assertIn("node-b", done.stdout)
                self.assertEqual(world.live(), before)
                self.assertEqual({call[2] for call in world.calls()} - {"status", "check"}, set())

    def test_refused_load_stops_and_goes_back(self):
        self.fleet.fault("node-a", "load refused")
        before = self.fleet.live()
        done = self.fleet.start()
        self.assertEqual(done.returncode, 11, done.stdout)
        shown = self.fleet.run("show").stdout
        for word in ("node-a", "module-refused", "ENODEV", "kmm-upgrade retry node-a", "kmm-upgrade abort"):
            self.assertIn(word, shown)
        self.assertEqual({node: live for node, live in self.fleet.live().items() if node != "node-a"},
                         {node: live for node, live in before.items() if node != "node-a"})
        done = self.fleet.run("abort", "--rollback", "current")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.fleet.live(), before)

    def test_busy_module_names_its_holder(self):
        self.fleet.fault("node-a", "unload busy")
        done = self.fleet.start()
        self.assertEqual(done.returncode, 11, done.stdout)
        self.assertIn("kmm_user", self.fleet.run("show").stdout)
        self.assertEqual(self.fleet.run("resume").returncode, 0)


class Directory(E2eCase):
    """The state directory: whose it is, where it is, and which cluster it belongs to."""
    needs_tracing = False
    nodes = ("node-a",)

    def refused(self, code, *words):
        done = self.fleet.start()
        self.assertEqual(done.returncode, code, done.stdout)
        for word in words:
            self.assertIn(word, done.stdout)
        self.assertEqual(self.fleet.calls(), [])

    def test_others_may_write(self):
        self.fleet.state.mkdir(mode=0o700)
        self.fleet.state.chmod(0o777)
        self.refused(77, "unsafe-state-dir", str(self.fleet.state))

    def test_symlink(self):
        (self.work / "real").mkdir(mode=0o700)
        self.fleet.state.symlink_to(self.work / "real")
        self.refused(77, "unsafe-state-dir")

    def test_foreign_owner(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.fleet.state.mkdir(mode=0o700)
        os.chown(self.fleet.state, 65534, 65534)
        self.refused(77, "unsafe-state-dir")

    def test_umask(self):
        for mask in ("0", "0777", "022"):
            with self.subTest(mask):
                world = self.fleet.copy(self.work / mask)
                done = world.run(*START, prefix=("bash", "-c", f'umask {mask}; "$@"', "bash"))
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertEqual(world.state.stat().st_mode & 0o7777, 0o700)
                for path in world.state.rglob("*"):
                    self.assertEqual(path.stat().st_mode & 0o7777, 0o700 if path.is_dir() else 0o600, str(path))

    def test_read_only(self):
        script = 'mount --bind "$DIR" "$DIR" && mount -o remount,ro,bind "$DIR" && exec "$@"'
        self.fleet.state.mkdir(mode=0o700)
        prefix = ("unshare", "-m", "env", f"DIR={self.fleet.state}", "sh", "-c", script, "sh")
        probe = subprocess.run([*prefix, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if probe.returncode != 0:
            self.skipTest("not allowed to mount")
        done = self.fleet.run(*START, prefix=prefix)
        self.assertIn(done.returncode, (74, 77), done.stdout)
        self.assertIn("EROFS", done.stdout)
        self.assertIn("hint:", done.stdout)
        self.assertIn(str(self.fleet.state), done.stdout)
        self.assertEqual(self.fleet.calls(), [])
        self.assertEqual(self.fleet.start("--manual").returncode, 11)
        done = self.fleet.run("resume", prefix=prefix)
        self.assertEqual(done.returncode, 74, done.stdout)
        self.assertIn("the state directory must be writable", done.stdout)

    def test_missing_directory_is_not_made_by_reading(self):
        for verb in ("show", "nodes", "history"):
            done = self.fleet.run(verb)
            self.assertIn(done.returncode, (0, 66), done.stdout)
            self.assertFalse(self.fleet.state.exists(), verb)

    def test_other_cluster(self):
        self.fleet.fault("node-a", "load refused")
        self.assertEqual(self.fleet.start().returncode, 11)
        other = self._template.copy(self.work / "other")
        (other.cluster / ".kmm-cluster-id").write_text("00000000-0000-4000-8000-000000000000\n")
        other.state = self.fleet.state
        before = text_of(other.cluster)
        done = other.run("resume")
        self.assertEqual(done.returncode, 78, done.stdout)
        self.assertIn("other-cluster", done.stdout)
        self.assertEqual(text_of(other.cluster), before)

    def test_newer_format_is_refused_untouched(self):
        self.assertEqual(self.fleet.start().returncode, 0)
        journal = self.fleet.state / "journal.ndjson"
        journal.write_text(journal.read_text().replace('"formatVersion":1', '"formatVersion":2', 1))
        before = text_of(self.fleet.state)
        for verb in (("show",), ("resume",), ("abort",), ("delete",)):
            done = self.fleet.run(*verb)
            self.assertEqual(done.returncode, 78, done.stdout)
            self.assertIn("format 2", done.stdout)
        after = text_of(self.fleet.state)
        del before["lock"], after["lock"]
        self.assertEqual(after, before)

    def test_damage_is_never_an_empty_state(self):
        self.assertEqual(self.fleet.start().returncode, 0)
        journal = self.fleet.state / "journal.ndjson"
        text = journal.read_bytes()
        for name, damage in {"byte": text[:40] + b"#" + text[41:], "empty": b"", "half": text[:len(text) // 2]}.items():
            with self.subTest(name):
                journal.write_bytes(damage)
                for verb in (("show",), ("resume",), START):
                    done = self.fleet.run(*verb)
                    self.assertEqual(done.returncode, 74, done.stdout)
                    self.assertIn("journal.ndjson", done.stdout)
                self.assertEqual(journal.read_bytes(), damage)

    def test_snapshot_is_only_a_cache(self):
        self.assertEqual(self.fleet.start("--canary", "1").returncode in (0, 11), True)
        shown = self.fleet.run("show", "-o", "json", stderr=subprocess.DEVNULL).stdout
        for change in (lambda path: path.unlink(), lambda path: path.write_text("{}")):
            change(self.fleet.state / "upgrade.json")
            done = self.fleet.run("show", "-o", "json", stderr=subprocess.PIPE)
            self.assertEqual(json.loads(done.stdout), json.loads(shown))
            self.assertEqual("upgrade.json" in done.stderr, (self.fleet.state / "upgrade.json").exists())


class Clock(E2eCase):
    needs_tracing = False
    nodes = ("node-a", "node-b")

    def test_steps_of_the_clock(self):
        """The first half a year ahead, the rest now: order is by number, not by time."""
        if shutil.which("faketime") is None:
            self.skipTest("faketime is not installed")
        self.fleet.fault("node-a", "load refused")
        expected = self.unkilled(self._template, lambda world: world.start())
        done = self.fleet.run(*START, prefix=("faketime", "-f", "+365d"))
        self.assertEqual(done.returncode, 11, done.stdout)
        done = self.fleet.run("resume", prefix=("faketime", "-f", "-1d"))
        self.assertEqual(self.compare(self.fleet, expected, done), "")
        self.assertEqual(self.fleet.run("show").returncode, 0)


class Secrets(E2eCase):
    needs_tracing = False
    nodes = ("node-a",)

    def test_pull_secret_is_in_no_file(self):
        import base64
        canary = "canary-7c1f9e"
        config = json.dumps(
            {"auths": {"registry.example": {"auth": base64.b64encode(f"u:{canary}".encode()).decode()}}}
        )
        packed = base64.b64encode(config.encode()).decode()
        (self.fleet.cluster / "secrets").mkdir()
        (self.fleet.cluster / "secrets" / "pull.yaml").write_text(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: pull\n  namespace: drivers\n"
            f"type: kubernetes.io/dockerconfigjson\ndata:\n  .dockerconfigjson: {packed}\n")
        path = self.fleet.cluster / "modules" / "kmm-hello.yaml"
        path.write_text(path.read_text() + "  imageRepoSecret:\n    name: pull\n")
        self.fleet.fault("node-a", "load refused")
        output = self.fleet.run("start", *MODULE_ARGUMENTS, "-v").stdout
        output += self.fleet.run("show", "-o", "json").stdout + self.fleet.run("resume", "-v").stdout
        needles = (canary, packed, base64.b64encode(f"u:{canary}".encode()).decode())
        for needle in needles:
            self.assertNotIn(needle, output)
            for file, content in text_of(self.fleet.root).items():
                if pathlib.Path(file).parts[:2] != ("cluster", "secrets"):
                    self.assertNotIn(needle.encode(), content, file)
        self.assertEqual(self.fleet.run("show").returncode, 0)
