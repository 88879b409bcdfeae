# SPDX-License-Identifier: Apache-2.0
"""What the real kmm-worker has given up by the time it opens the modules of an image."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import case
from injection import usable

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
sys.path.insert(0, str(SUPPORT))
import worker_case  # noqa: E402

CASE = {"image": {"modules": [{"name": "demo"}]}, "kernel": {}}


def traced_calls(log):
    """[number of the process, call] in the order of their ends; those that strace has cut in two, as another process
    came between, whole."""
    begun = {}
    calls = []
    for line in log.read_text(errors="replace").splitlines():
        number, call = line.split(None, 1)
        if call.endswith(" <unfinished ...>"):
            begun[number] = call.removesuffix(" <unfinished ...>")
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", call)
        calls.append([number, begun.pop(number, "") + resumed[1] if resumed else call])
    return calls


def traced(where, calls, *command):
    """`command` in the case of `where`, whose registry it may ask, with `calls` of all its processes in where/log."""
    return subprocess.run(
        ["python3", SUPPORT / "worker_case.py", "case.json", "strace", "-f", "-qq", "-o", "log", "-e", f"trace={calls}"]
        + list(command),
        cwd=where,
        env=dict(os.environ, PATH=f"{case.TOOLS.bin}:{os.environ['PATH']}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


class Sandboxed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not usable():
            raise unittest.SkipTest("processes cannot be traced here")

    def calls(self, *words):
        """(the worker's own calls in order, the index of the first open of a module after the pull, what was printed);
        self.others has the calls of other processes by their number"""
        where = pathlib.Path(tempfile.mkdtemp(prefix="kmm-sandbox-"))
        self.addCleanup(shutil.rmtree, where, ignore_errors=True)
        (where / "case.json").write_text(json.dumps(CASE))
        done = traced(
            where,
            "seccomp,socket,openat,unshare,prctl,?landlock_restrict_self,execve",
            *("kmm-worker", *words, "-v", "--insecure", "--image", "@REGISTRY@/drivers/demo:v2", "--module", "demo"),
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = traced_calls(where / "log")
        worker = next(number for number, call in lines if "kmm-worker" in call)
        log = [call for number, call in lines if number == worker]
        self.others = {}
        for number, call in lines:
            if number != worker:
                self.others.setdefault(number, []).append(call)
        opened = [
            i for i, line in enumerate(log) if re.search(r'openat\(AT_FDCWD, "[^"]*/kmm-pull-[^"]*demo\.ko"', line)
        ]
        self.assertTrue(opened, "\n".join(log[-40:]))
        return log, opened[0], done.stdout

    def in_force(self, log, end, what):
        return [line for line in log[:end] if re.search(what, line)]

    def test_layers_and_modules_are_parsed_by_a_process_that_opens_nothing(self):
        for verb in ("check", "load"):
            _, _, said = self.calls(verb)
            filtered = [
                calls
                for calls in self.others.values()
                if self.in_force(calls, len(calls), r"seccomp\(SECCOMP_SET_MODE_FILTER.* = 0")
            ]
            if not filtered:
                self.skipTest("no seccomp here")
            for calls in filtered:
                begin = next(i for i, call in enumerate(calls) if "SECCOMP_SET_MODE_FILTER" in call)
                self.assertFalse([call for call in calls[begin + 1:] if re.search(r"(openat|socket|execve)\(", call)])
            self.assertRegex(said, "sandbox: parser: seccomp: computing only")
            self.assertRegex(said, "sandbox: parser: (not here: setresuid|a user of its own)")

    def test_images_that_kmm_plan_checks_are_parsed_by_processes_that_open_nothing(self):
        where = pathlib.Path(tempfile.mkdtemp(prefix="kmm-sandbox-"))
        self.addCleanup(shutil.rmtree, where, ignore_errors=True)
        for file in ("case.json", "stdin"):
            shutil.copy(SUPPORT.parent / "golden/kmm-plan/preflight-check-images/in" / file, where)
        done = traced(
            where,
            "seccomp,socket,openat,execve,recvmsg",
            *("kmm-plan", "preflight", "-f", "-", "--kernel", "6.1.0-99-demo", "--check-images", "--sig-enforce"),
        )
        processes = {}
        for number, call in traced_calls(where / "log"):
            processes.setdefault(number, []).append(call)
        filtered = [
            calls
            for calls in processes.values()
            if self.in_force(calls, len(calls), r"seccomp\(SECCOMP_SET_MODE_FILTER.* = 0")
        ]
        if not filtered and pathlib.Path("/proc/self/status").read_text().count("Seccomp:") == 0:
            self.skipTest("no seccomp here")
        self.assertTrue(filtered, done.stdout)
        for calls in filtered:
            begin = next(i for i, call in enumerate(calls) if "SECCOMP_SET_MODE_FILTER" in call)
            self.assertTrue(self.in_force(calls[begin:], len(calls), r"recvmsg.*= [1-9]"))
            self.assertFalse([call for call in calls[begin + 1:] if re.search(r"(openat|socket|execve)\(", call)])

    def test_a_parser_of_modules_that_does_not_answer_is_ended_by_timeout(self):
        where = pathlib.Path(tempfile.mkdtemp(prefix="kmm-sandbox-"))
        self.addCleanup(shutil.rmtree, where, ignore_errors=True)
        worker_case.make_host(where / "host", {})
        worker_case.put(where / "tree/demo.ko", worker_case.make_ko({"name": "demo"}))
        said = ""
        # How long it takes to come to the modules is the machine's.
        for seconds in (3, 12, 48):
            said = self.said_with_a_stopped_parser(where, seconds)
            if "the modules were not read within --timeout" in said:
                return
        self.fail(said)

    def said_with_a_stopped_parser(self, where, seconds):
        """What a check says whose parser is stopped before it is asked for anything; the parser is gone then."""
        worker = subprocess.Popen(
            [case.TOOLS.bin / "kmm-worker", "check", "-", "--timeout", f"{seconds}s"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ, KMM_HOST_ROOT=str(where / "host")),
        )
        self.addCleanup(worker.kill)
        parser = self.confined_below(worker)
        if parser is None:
            return worker.communicate(timeout=600)[1]
        os.kill(parser, signal.SIGSTOP)
        said = worker.communicate(
            f"containerImage: dir:{where}/tree\nkernelVersion: {worker_case.RELEASE}\nmodprobe: {{moduleName: demo}}\n",
            timeout=600,
        )[1]
        self.assertEqual(worker.returncode, 124, said)
        self.assertFalse(pathlib.Path(f"/proc/{parser}").exists())
        return said

    def confined_below(self, worker):
        """A process with a seccomp filter that the worker has started, or one that such a process has; None once the
        worker has ended."""
        while worker.poll() is None:
            found = [worker.pid]
            for number in found:
                try:
                    found += map(int, pathlib.Path(f"/proc/{number}/task/{number}/children").read_text().split())
                    if number != worker.pid and "Seccomp:\t2" in pathlib.Path(f"/proc/{number}/status").read_text():
                        return number
                except OSError:
                    continue
            time.sleep(0.01)
        return None

    def test_load_has_no_sockets_and_no_programs(self):
        log, first, _ = self.calls("load")
        if not self.in_force(log, first, r"seccomp\(SECCOMP_SET_MODE_FILTER.* = 0"):
            self.skipTest("no seccomp here")
        self.assertEqual(len(self.in_force(log, first, r"seccomp\(SECCOMP_SET_MODE_FILTER.* = 0")), 2)
        self.assertTrue(self.in_force(log, first, r"PR_SET_NO_NEW_PRIVS, 1"))
        self.assertFalse([line for line in log[first:] if re.search(r"socket\(|execve\(", line)])
        self.assertFalse(self.in_force(log, len(log), r"unshare\(|landlock_restrict_self"))

    def test_check_has_no_network_and_no_writes_either(self):
        log, first, said = self.calls("check")
        self.assertEqual(len(self.in_force(log, first, r"seccomp\(SECCOMP_SET_MODE_FILTER")), 2)
        self.assertTrue(self.in_force(log, first, r"unshare\(CLONE_NEWNET\)"))
        if self.in_force(log, first, r"landlock_restrict_self\(.*= 0"):
            self.assertIn("sandbox: landlock: writes only where they are needed", said)
        else:
            self.assertIn("sandbox: not here: landlock: ", said)
        self.assertRegex(said, "sandbox: (not here: )?seccomp")


if __name__ == "__main__":
    unittest.main()
