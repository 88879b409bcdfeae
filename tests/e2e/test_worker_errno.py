# SPDX-License-Identifier: Apache-2.0
"""Every errno of the kernel's module loader, put into the real kmm-worker by strace: what it then says."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import case
from injection import usable

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"

# errno of finit_module: what the message must contain, with the made-up module of this test
LOAD = {
    "ENOENT": ["a symbol that the module needs is not exported", "GPL"],
    "EINVAL": ["a parameter has a value that does not fit", "answer=7", "answer is int"],
    "ENOEXEC": ["6.1.0-99-demo SMP", "another architecture"],
    "EKEYREJECTED": ["not signed", "sig_enforce", "lockdown", "Secure Boot"],
    "ENOKEY": ["not signed", "sig_enforce"],
    "EKEYEXPIRED": ["not signed", "expired"],
    "EKEYREVOKED": ["not signed"],
    "EPERM": ["CAP_SYS_MODULE", "modules_disabled", "lockdown", "module_blacklist="],
    "EACCES": ["SELinux", "LoadPin", "init function"],  # both are tested, and are not at work here
    "EBADMSG": ["signature block", "damaged"],
    "ELIBBAD": ["file is damaged"],
    "ENOPKG": ["digest"],
    "ENOMEM": ["memory", "MemAvailable"],
    "ENOSPC": ["per-CPU", "MemAvailable"],
    "ENODEV": ["found no device", "alias"],
    "ESRCH": ["init function"],  # the versions of symbols agree
    "EIO": ["I/O error"],
    "ETIMEDOUT": ["timed out"],
    "EFAULT": ["bad address"],
    "EBUSY": ["another load or unload"],
    "EEXIST": ["live already"],
    "EINTR": ["interrupted"],
    "EAGAIN": ["try again"],
    "EXDEV": ["init function returned this error"],
}
# errno of delete_module: exit code and what the message must contain
UNLOAD = {
    "EPERM": (13, "CAP_SYS_MODULE"), "EACCES": (13, "security module"), "EBUSY": (14, "no exit function"),
    "EAGAIN": (14, "refcount"), "EFAULT": (13, "name"), "EINTR": (13, "interrupted"),
}


class Errnos(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="kmm-errno-"))
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        cls.spec = {
            "host": {
                "live": {"held": {"srcversion": "A"}},
                "files": {"proc/kallsyms": "0 r __ksymtab__printk\n", "proc/meminfo": "MemAvailable: 900000 kB\n"},
            },
            "image": {
                "modules": [
                    {
                        "name": "demo",
                        "modinfo": ["license=GPL", "parmtype=answer:int", "alias=pci:v1*"],
                        "undefined": ["_printk"],
                    }
                ]
            },
        }
        (cls.work / "case.json").write_text(json.dumps(cls.spec))

    def run_worker(self, call, errno, *words):
        """The exit code and the error document of one run with the errno injected."""
        with tempfile.TemporaryDirectory(dir=self.work) as where:
            shutil.copy(self.work / "case.json", where)
            environment = dict(os.environ, PATH=f"{case.TOOLS.bin}:{os.environ['PATH']}")
            trace = [
                "strace",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                f"trace={call}",
                "-e",
                f"inject={call}:error={errno}",
            ]
            done = subprocess.run(
                ["python3", SUPPORT / "worker_case.py", "case.json", *trace, "kmm-worker", *words, "-o", "json"],
                cwd=where,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=600,
                check=False,
            )
            return done.returncode, json.loads(done.stdout), done.stdout + done.stderr

    def test_every_errno_of_a_load(self):
        image = (
            "load",
            "--insecure",
            "--image",
            "@REGISTRY@/drivers/demo:v2",
            "--module",
            "demo",
            "--parameter",
            "answer=7",
        )
        for errno, texts in LOAD.items():
            with self.subTest(errno):
                code, document, words = self.run_worker("finit_module", errno, *image)
                self.assertEqual((code, document["kind"], document["code"]), (13, "Error", "module-refused"), words)
                self.assertEqual(document["details"]["errno"], errno)
                self.assertTrue(document["hint"])
                for text in texts:
                    self.assertIn(text, words)

    def test_every_errno_of_an_unload(self):
        for errno, (exit_code, text) in UNLOAD.items():
            with self.subTest(errno):
                code, document, words = self.run_worker(
                    "delete_module", errno, "unload", "--module", "held", "--wait", "0s"
                )
                self.assertEqual((code, document["kind"]), (exit_code, "Error"), words)
                self.assertIn(text, words)


if __name__ == "__main__":
    unittest.main()
