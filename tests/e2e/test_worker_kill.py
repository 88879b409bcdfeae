# SPDX-License-Identifier: Apache-2.0
"""The real kmm-worker killed at every call that changes a file: the next run is clean, and unload puts everything back."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
CALLS = ("write", "rename,renameat,renameat2", "unlink,unlinkat", "mkdir,mkdirat", "fsync")
POINTS_MAX = 60  # of one kind; more means that the count below never ends

CONFIG = """containerImage: "@REGISTRY@/drivers/demo:v2"
insecurePull: true
inTreeModulesToRemove: [plain]
modprobe: {moduleName: demo, dirName: /opt, firmwarePath: /firmware}
"""
CASE = {"host": {"live": {"plain": {"srcversion": "P", "taint": ""}}, "modules": [{"name": "plain", "srcversion": "P", "modinfo": ["intree=Y"]}],
                 "files": {"fw/vendor/old.bin": "of the host", "fw/vendor/same.bin": "same"}},
        "image": {"modules": [{"name": "demo", "depends": "dep"}, {"name": "dep"}],
                  "files": {"firmware/vendor/old.bin": "of the image", "firmware/vendor/same.bin": "same", "firmware/new.bin": "new"}},
        "kernel": {}}


def inside(call, point):
    """Runs in the made-up host: a load killed at the point-th `call`, a second one, an unload. Exit 3: there is no such point."""
    config = pathlib.Path("config.yaml")
    config.write_text(sys.stdin.read())
    words = ["--firmware-path", str(pathlib.Path("host/fw").absolute())]
    kill = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={point}"]
    first = subprocess.run([*kill, "kmm-worker", "load", config, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if first.returncode == 0:
        return 3
    for command in (["load", config, *words], ["unload", config, *words, "--restore-in-tree"]):
        done = subprocess.run(["kmm-worker", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            print(f"{command[0]}: exit {done.returncode}\n{done.stdout}")
            return 1
    left = {str(path): path.read_text() for path in sorted(pathlib.Path("host/fw").rglob("*")) if path.is_file()}
    faults = [] if left == {"host/fw/vendor/old.bin": "of the host", "host/fw/vendor/same.bin": "same"} else [f"firmware: {left}"]
    path = pathlib.Path("host/sys/module/firmware_class/parameters/path").read_text().strip("\n\0")
    faults += [f"firmware path: {path}"] if path else []
    faults += [f"{name} is not live" for name in ("plain",) if not pathlib.Path("host/sys/module", name).is_dir()]
    faults += [f"{name} is live" for name in ("demo", "dep") if pathlib.Path("host/sys/module", name).is_dir()]
    faults += [f"record: {name}" for name in os.listdir("host/run/kmm-worker/loaded")]
    print(*faults, sep="\n")
    return 1 if faults else 0


class Killed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from injection import usable
        if not usable():
            raise unittest.SkipTest("strace cannot trace here")

    def test_load_then_unload_after_a_kill_anywhere(self):
        import case
        environment = dict(os.environ, PATH=f"{case.TOOLS.bin}:{os.environ['PATH']}")
        tried = 0
        for call in CALLS:
            for point in range(1, POINTS_MAX + 1):
                where = tempfile.mkdtemp(prefix="kmm-kill-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
                try:
                    pathlib.Path(where, "case.json").write_text(json.dumps(CASE))
                    pathlib.Path(where, "stdin").write_text(CONFIG)
                    done = subprocess.run(["python3", SUPPORT / "worker_case.py", "case.json", "python3", __file__, call, str(point)],
                                          cwd=where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
                finally:
                    shutil.rmtree(where, ignore_errors=True)
                if done.returncode == 3:
                    break
                tried += 1
                self.assertEqual(done.returncode, 0, f"killed at {call} {point}:\n{done.stdout}")
            else:
                self.fail(f"more than {POINTS_MAX} calls of {call}")
        print(f"{tried} points", file=sys.stderr)
        self.assertGreater(tried, 10)


if __name__ == "__main__":
    sys.exit(inside(sys.argv[1], int(sys.argv[2])))
