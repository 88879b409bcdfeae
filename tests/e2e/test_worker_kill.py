# SPDX-License-Identifier: Apache-2.0
"""The real kmm-worker killed at every call that changes a file: the next run is clean, and unload puts everything back;
the cache holds what it says."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from fleet import scratch
from injection import inject, usable

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
CALLS = ("write", "rename,renameat,renameat2", "unlink,unlinkat", "mkdir,mkdirat", "fsync")
AGAIN = ("again:write", "again:rename,renameat,renameat2", "again:mkdir,mkdirat")
POINTS_MAX = 60  # of one kind; more means that the count below never ends

CONFIG = """containerImage: "@REGISTRY@/drivers/demo:v2"
insecurePull: true
inTreeModulesToRemove: [plain]
modprobe: {moduleName: demo, dirName: /opt, firmwarePath: /firmware}
"""
CASE = {
    "host": {
        "live": {"plain": {"srcversion": "P", "taint": ""}},
        "modules": [{"name": "plain", "srcversion": "P", "modinfo": ["intree=Y"]}],
        "files": {"fw/vendor/old.bin": "of the host", "fw/vendor/same.bin": "same"},
    },
    "image": {
        "modules": [{"name": "demo", "depends": "dep"}, {"name": "dep"}],
        "files": {
            "firmware/vendor/old.bin": "of the image",
            "firmware/vendor/same.bin": "same",
            "firmware/new.bin": "new",
        },
    },
    "kernel": {},
}


def inside(call, point):
    """Runs in the made-up host: a load killed at the point-th `call`, a second one, an unload. Exit 3: there is no such
    point. With "again:CALL" a module that is live is loaded with another firmware path, killed there, and unloaded."""
    config = pathlib.Path("config.yaml")
    config.write_text(sys.stdin.read())
    words = ["--firmware-path", "/fw"]
    again = call.startswith("again:")
    if again:
        quiet(["kmm-worker", "load", config, "--firmware-path", "/first"])
    kill = inject(call.removeprefix("again:"), f"signal=KILL:when={point}")
    first = subprocess.run(
        [*kill, "kmm-worker", "load", config, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    if first.returncode == 0:
        return 3
    load, unload = ["load", config, *words], ["unload", config, *words, "--restore-in-tree"]
    for command in (unload, ["check", config]) if again else (load, unload):  # a check clears what a pull left
        done = subprocess.run(
            ["kmm-worker", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0:
            print(f"{command[0]}: exit {done.returncode}\n{done.stdout}")
            return 1
    left = {str(path): path.read_text() for path in sorted(pathlib.Path("host/fw").rglob("*")) if path.is_file()}
    faults = (
        []
        if left == {"host/fw/vendor/old.bin": "of the host", "host/fw/vendor/same.bin": "same"}
        else [f"firmware: {left}"]
    )
    path = pathlib.Path("host/sys/module/firmware_class/parameters/path").read_text().strip("\n\0")
    faults += [f"firmware path: {path}"] if path else []
    faults += [f"{name} is not live" for name in ("plain",) if not pathlib.Path("host/sys/module", name).is_dir()]
    faults += [f"{name} is live" for name in ("demo", "dep") if pathlib.Path("host/sys/module", name).is_dir()]
    faults += [f"record: {name}" for name in os.listdir("host/run/kmm-worker/loaded")]
    print(*faults, sep="\n")
    return 1 if faults else 0


PULL_CALLS = (*CALLS, "link,linkat", "copy_file_range", "utimensat", "flock", "chmod,fchmodat", "symlinkat")
PULL = ["kmm-worker", "pull", "--insecure", "--cache-dir", "cache", "-q", "-o", "name"]
# What the killed pull finds: an empty cache, a good one, one whose list and one of whose files are damaged.
FOUND = ("empty", "good", "damaged")


def quiet(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def tree(directory):
    return {str(path.relative_to(directory)): os.readlink(path) if path.is_symlink() else path.read_bytes()
            for path in sorted(pathlib.Path(directory).rglob("*")) if path.is_symlink() or path.is_file()}


def remove_layers():
    """Takes every layer out of the cache."""
    for blob in list(pathlib.Path("cache/blobs/sha256").iterdir()):
        if blob.exists() and blob.read_bytes().startswith(b"{"):
            for layer in json.loads(blob.read_text()).get("layers", []):
                pathlib.Path("cache/blobs/sha256", layer["digest"].split(":")[1]).unlink(missing_ok=True)


def pull_then_look(call, point, found, reference):
    """None: there is no such point; else what was wrong after a pull that was killed at it."""
    shutil.rmtree("cache", ignore_errors=True)
    for name in ("out", "again", "last"):
        shutil.rmtree(name, ignore_errors=True)
    if found != "empty":
        shutil.copytree("full", "cache")
    if found == "damaged":
        for path in pathlib.Path("cache/extractions").iterdir():
            path.write_text(path.read_text()[:-9])
        for blob in pathlib.Path("cache/blobs/sha256").iterdir():
            if blob.read_bytes().startswith(b"\x7fELF"):
                blob.chmod(0o600)
                blob.write_bytes(b"\x7fELF")
    kill = inject(call, f"signal=KILL:when={point}")
    if quiet([*kill, *PULL, reference, "--out", "out"]).returncode == 0:
        return None
    if found != "damaged":
        looked = quiet(["kmm-worker", "cache", "verify", "--cache-dir", "cache"])
        if looked.returncode not in (0, 66):  # 66: killed before there was one
            return f"verify: {looked.stdout}"
    for name in ("again", "last"):
        done = quiet([*PULL, reference, "--out", name])
        if done.returncode != 0 or tree(name) != tree("good"):
            return f"{name}: exit {done.returncode}, {sorted(tree(name))}\n{done.stdout}"
        remove_layers()
    left = [path for path in pathlib.Path("cache").rglob("*") if ".kmm-tmp" in path.name]
    return f"left: {left}" if left else ""


def inside_pulls(reference):
    """Runs beside a registry: pulls killed everywhere. Prints the faults, or how many points there were."""
    for _ in range(2):
        shutil.rmtree("good", ignore_errors=True)
        done = quiet([*PULL, reference, "--out", "good"])
        if done.returncode != 0:
            print(done.stdout)
            return 1
    shutil.copytree("cache", "full")
    tried = 0
    for found in FOUND:
        for call in PULL_CALLS:
            for point in range(1, POINTS_MAX + 1):
                fault = pull_then_look(call, point, found, reference)
                if fault is None:
                    break
                tried += 1
                if fault:
                    print(f"{found} cache, killed at {call} {point}: {fault}")
                    return 1
            else:
                print(f"more than {POINTS_MAX} calls of {call}")
                return 1
    print(tried)
    return 0


def inside_faults(reference):
    """Pulls into a cache that cannot be written at some point: they succeed, the cache holds what it says, and the next
    one as well."""
    done = quiet([*PULL, reference, "--out", "good"])
    if done.returncode != 0:
        print(done.stdout)
        return 1
    faults = [("copy_file_range", "error=EXDEV"), ("utimensat", "error=EROFS")]
    faults += [("link,linkat", f"error=ENOSPC:when={point}+") for point in range(1, 7)]
    faults += [("fsync", f"error=EIO:when={point}+") for point in range(1, 5)]
    for call, what in faults:
        for name in ("cache", "out", "again"):
            shutil.rmtree(name, ignore_errors=True)
        for name, command in (("out", [*inject(call, what), *PULL]), ("again", PULL)):
            done = quiet([*command, reference, "--out", name])
            looked = quiet(["kmm-worker", "cache", "verify", "--cache-dir", "cache"])
            # What a pull makes must be durable, too: without fsync it fails, and leaves nothing.
            is_refused = call == "fsync" and name == "out" and done.returncode == 74 and not tree(name)
            is_made = done.returncode == 0 and tree(name) == tree("good")
            if not (is_refused or is_made) or looked.returncode not in ((0, 66) if is_refused else (0,)):
                print(f"{call} {what}, {name}: exit {done.returncode}\n{done.stdout}{looked.stdout}")
                return 1
    print(len(faults))
    return 0


def inside_no_locks(reference):
    """Pulls where a file system has no locks: they succeed. What a killed one left is not taken for that of another
    pull, and not removed."""
    quiet([*PULL, reference, "--out", "good"])
    made = quiet([*inject("flock", "error=ENOLCK"), *PULL, reference, "--out", "out"])
    if made.returncode != 0 or tree("out") != tree("good"):
        print(f"exit {made.returncode}\n{made.stdout}")
        return 1
    os.makedirs("left/.kmm-pull/tree")
    refused = quiet([*inject("flock", "error=ENOLCK"), *PULL, reference, "--out", "left"])
    words = ("found .kmm-pull, and it cannot be locked: No locks available (ENOLCK)", "remove left/.kmm-pull")
    if refused.returncode != 74 or any(word not in refused.stdout for word in words):
        print(f"exit {refused.returncode}\n{refused.stdout}")
        return 1
    # Too few open files, as each open of the directory says, are no other pull either.
    few = 0
    for point in range(1, 240, int(os.environ.get("KMM_FULL", 5))):
        done = quiet([*inject("openat", f"error=EMFILE:when={point}"), *PULL, reference, "--out", "few"])
        if "no other pull" in done.stdout or (done.returncode != 0 and tree("few")):
            print(f"open {point}: exit {done.returncode}, {sorted(tree('few'))}\n{done.stdout}")
            return 1
        few += done.returncode != 0
        shutil.rmtree("few", ignore_errors=True)
    print(few)
    return 0


READ_ONLY = (
    "unshare",
    "-m",
    "sh",
    "-c",
    'mount --bind cache cache && mount -o remount,bind,ro cache && exec "$@"',
    "sh",
)


def inside_read_only(reference):
    """Pulls from a cache on a file system that is mounted for reading alone: whole, damaged, without the image. Prints
    the faults, or how many."""
    faults, tried = [], 0

    def look(what, code, command, *words):
        nonlocal tried
        tried += 1
        shutil.rmtree("out", ignore_errors=True)
        done = quiet([*READ_ONLY, *command])
        wrong = (
            done.returncode != code
            or [word for word in words if word not in done.stdout]
            or (not words and done.stdout.count("warning"))
        )
        if command[1] == "pull" and tree("out") != (tree("good") if code == 0 else {}):
            wrong = True
        if wrong:
            faults.append(f"{what}: {command}: exit {done.returncode}, {sorted(tree('out'))}\n{done.stdout}")
    quiet([*PULL, reference, "--out", "good"])
    shutil.copytree("cache", "full")
    caches = [["kmm-worker", "cache", verb, "--cache-dir", "cache"] for verb in ("list", "verify", "prune")]
    policies = [
        [*PULL, reference, "--out", "out", "--image-pull-policy", policy]
        for policy in ("IfNotPresent", "Always", "Never")
    ]
    pulls = [[word for word in command if word not in ("-q", "-o", "name")] for command in policies]
    for command in pulls:
        look("whole", 0, command)
    for command in caches:
        look("whole", 0, command)
    look("whole", 74, [*caches[2], "--all"], "Read-only file system (EROFS)", "removed: no image", "freed:   0 B")
    look("whole", 0, caches[0], reference)
    for path in pathlib.Path("cache/blobs/sha256").iterdir():
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    for command in pulls[:2]:
        look(
            "damaged",
            0,
            command,
            "cache-damaged: sha256:",
            "cannot be removed",
            "cache-not-written: a new file in the cache cache: Read-only file system (EROFS)",
        )
    look("damaged", 66, pulls[2], "image-not-cached")
    look("damaged", 76, caches[1], "cache-damaged", "hint:    --remove takes them away")
    look("damaged", 76, [*caches[1], "--remove"], "cache-damaged", "not all of them can be removed")
    for directory in ("blobs/sha256", "images", "extractions"):
        for path in pathlib.Path("cache", directory).iterdir():
            path.unlink()
    for command in pulls[:2]:
        look("empty", 0, command, "cache-not-written: a new file in the cache cache: Read-only file system (EROFS)")
    look("empty", 66, pulls[2], "image-not-cached")
    shutil.rmtree("cache")
    os.mkdir("cache")
    for command in pulls[:2]:
        look("none", 0, command, "cache-not-used: cannot create directory cache/blobs: Read-only file system (EROFS)")
    look("none", 74, pulls[2], "EROFS", "hint:")
    for command in caches:
        look("none", 66, command, "no-cache")
    print(*faults or [tried], sep="\n")
    return 1 if faults else 0


class KilledPull(unittest.TestCase):
    """A pull with a cache killed anywhere: the cache never lies, and the next pulls make the same files, at last
    without layers."""

    def test_pull_after_a_kill_anywhere(self):
        self.assertGreater(self.inside("pulls"), 40)

    def test_pull_with_a_cache_that_cannot_be_written(self):
        self.assertGreater(self.inside("faults"), 10)

    def test_pull_without_locks(self):
        self.assertGreater(self.inside("no-locks"), 0)

    def test_pull_with_a_cache_that_is_mounted_to_be_read(self):
        if subprocess.run(
            ["unshare", "-m", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        ).returncode:
            raise unittest.SkipTest("nothing can be mounted here")
        self.assertGreater(self.inside("read-only"), 20)

    def inside(self, what):
        """How many points inside_WHAT() tried."""
        if not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        import case
        environment = dict(os.environ, PATH=f"{case.TOOLS.bin}:{os.environ['PATH']}")
        where = scratch("kill")
        self.addCleanup(shutil.rmtree, where, ignore_errors=True)
        image = {"modules": [{"name": "demo", "depends": "dep"}, {"name": "dep", "file": "extra/dep.ko"}],
                 "links": {"opt/lib/modules/6.1.0-99-demo/link.ko": "demo.ko"}}
        pathlib.Path(where, "case.json").write_text(json.dumps({"image": image}))
        done = subprocess.run(
            [
                "python3",
                SUPPORT / "worker_case.py",
                "case.json",
                "python3",
                __file__,
                what,
                "@REGISTRY@/drivers/demo:v2",
            ],
            cwd=where,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        print(f"{done.stdout.strip()} points", file=sys.stderr)
        return int(done.stdout)


class Killed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not usable():
            raise unittest.SkipTest("processes cannot be traced here")

    def test_load_then_unload_after_a_kill_anywhere(self):
        import case
        environment = dict(os.environ, PATH=f"{case.TOOLS.bin}:{os.environ['PATH']}")
        tried = 0
        for call in (*CALLS, *AGAIN):
            for point in range(1, POINTS_MAX + 1):
                where = scratch("kill")
                try:
                    pathlib.Path(where, "case.json").write_text(json.dumps(CASE))
                    pathlib.Path(where, "stdin").write_text(CONFIG)
                    done = subprocess.run(
                        ["python3", SUPPORT / "worker_case.py", "case.json", "python3", __file__, call, str(point)],
                        cwd=where,
                        env=environment,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        timeout=600,
                        check=False,
                    )
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
    INSIDE = {"pulls": inside_pulls, "faults": inside_faults, "read-only": inside_read_only,
              "no-locks": inside_no_locks}
    sys.exit(INSIDE[sys.argv[1]](sys.argv[2]) if sys.argv[1] in INSIDE else inside(sys.argv[1], int(sys.argv[2])))
