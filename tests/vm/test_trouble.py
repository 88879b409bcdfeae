# SPDX-License-Identifier: Apache-2.0
"""kmm-worker on a real kernel when things go wrong: killed in the middle, two at once, modules that are slow, fail or
complain."""
import json
import time

from lab.testing import SingleCase

NODE = "node-a"
ODD = "/sys/module/kmm_odd"
FIRMWARE = "/run/kmm-test-firmware"


class TroubleCase(SingleCase):
    LET_GO = f"echo 1 >{ODD}/parameters/let_go"

    def setUp(self):
        super().setUp()
        self.fleet.shell(NODE, f"rm -rf /run/kmm-worker {FIRMWARE} /run/trouble; mkdir /run/trouble; "
                               "printf '\\0' >/sys/module/firmware_class/parameters/path")
        self.addCleanup(
            self.fleet.shell,
            NODE,
            f"if [ \"$(cat {ODD}/initstate 2>/dev/null)\" != live ]; then {self.LET_GO}; fi 2>/dev/null || true",
        )

    def odd(self, *parameters, **options):
        return self.config(self.image("kmm-misc", "v1"), module="kmm_odd", parameters=parameters, **options)

    def with_firmware(self, *parameters):
        config = self.config(
            self.image("kmm-firmware", "v1"), module="kmm_odd", parameters=parameters, remove=["dummy"]
        )
        return config + "  firmwarePath: /opt/firmware\n"

    def state(self):
        """"live", "coming", "going", or None."""
        return self.fleet.shell(NODE, f"cat {ODD}/initstate 2>/dev/null || true").strip() or None

    def wait_for(self, state):
        """Waits until the module is in that state."""
        self.fleet.shell(
            NODE, f"while [ \"$(cat {ODD}/initstate 2>/dev/null)\" != '{state or ''}' ]; do usleep 50000; done"
        )

    def let_go(self):
        """Ends the init or exit that holds."""
        self.fleet.shell(NODE, self.LET_GO)

    def begin(self, name, arguments, config=""):
        """Starts a worker in the background, its words in files; `ended` waits for it."""
        self.fleet.shell(
            NODE,
            f"cat >/run/trouble/{name}.yaml; cd /run/trouble; "
            f"(kmm-worker {arguments} -o json <{name}.yaml >{name}.out 2>{name}.err; echo $? >{name}.code) "
            f"</dev/null >/dev/null 2>&1 & echo $! >/run/trouble/{name}.shell",
            config,
        )

    def ended(self, name, expect=0):
        text = self.fleet.shell(
            NODE, f"cd /run/trouble; while [ ! -s {name}.code ]; do usleep 50000; done; cat {name}.code {name}.out"
        )
        code, _, document = text.partition("\n")
        self.assertEqual(int(code), expect, text)
        return json.loads(document)

    def kill(self, name, signal):
        """Ends the worker itself, not the helper that is in the kernel."""
        self.fleet.shell(
            NODE,
            f"for p in /proc/[0-9]*; do [ \"$(cut -d' ' -f4 $p/stat 2>/dev/null)\" = \"$(cat "
            f"/run/trouble/{name}.shell)\" ] "
            f"&& kill -{signal} ${{p#/proc/}}; done; true",
        )

    def left_behind(self):
        """Files of records, firmware and temporary places, but for what is noted of modules that are live."""
        found = self.fleet.shell(
            NODE, f"find /run/kmm-worker {FIRMWARE} /tmp /var/tmp -type f ! -name lock 2>/dev/null || true"
        ).split()
        live = self.fleet.shell(NODE, "ls /sys/module").split()
        return [
            path
            for path in found
            if not path.startswith("/run/kmm-worker/bytes/") or path.rsplit("/", 1)[1] not in live
        ]


class Killed(TroubleCase):
    def test_while_init_runs(self):
        config = self.with_firmware("init_holds=1")
        self.fleet.shell(NODE, "modprobe dummy numdummies=0")
        self.begin("first", f"load - --firmware-path {FIRMWARE}", config)
        self.wait_for("coming")
        self.kill("first", "KILL")
        self.assertEqual(self.worker(NODE, "status kmm_odd")["modules"][0]["state"], "coming")
        for verb in ("load - --verify-after 0s", "unload -"):
            self.assertEqual(self.worker(NODE, verb, config, expect=15)["code"], "loader-hung")
        self.let_go()
        self.wait_for("live")
        self.assertEqual(self.worker(NODE, f"load - --firmware-path {FIRMWARE}", config)["outcome"], "already-loaded")
        result = self.worker(NODE, "unload - --restore-in-tree", config)
        self.assertEqual(
            [(m["name"], m["action"]) for m in result["modules"]], [("dummy", "restored"), ("kmm_odd", "unloaded")]
        )
        self.assertEqual(self.left_behind(), [])
        self.assertEqual(self.fleet.shell(NODE, "cat /sys/module/firmware_class/parameters/path").strip(), "")

    def test_while_exit_runs(self):
        self.worker(NODE, "load -", self.odd("exit_holds=1"))
        self.begin("first", "unload -", self.odd())
        self.wait_for("going")
        self.kill("first", "KILL")
        for verb in ("load -", "unload -"):
            self.assertEqual(self.worker(NODE, verb, self.odd(), expect=15)["details"]["state"], "going")
        self.let_go()
        self.wait_for(None)
        self.assertEqual(self.worker(NODE, "unload -", self.odd())["outcome"], "not-loaded")
        self.assertEqual(self.left_behind(), [])

    def test_the_helper_alone(self):
        """The kernel finishes what it has begun; that is this worker's doing."""
        for verb, state, outcome in (("load", "coming", "loaded"), ("unload", "going", "unloaded")):
            self.begin(verb, f"{verb} -", self.odd("init_holds=1", "exit_holds=1"))
            self.wait_for(state)
            self.fleet.shell(
                NODE,
                "until [ -n \"$killed\" ]; do for p in /proc/[0-9]*; do "
                "[ \"$(cat $p/wchan 2>/dev/null)\" = msleep ] && kill -9 ${p#/proc/} && killed=yes; done; done; true",
            )
            self.let_go()
            self.assertEqual(self.ended(verb)["outcome"], outcome)
        self.assertEqual(self.left_behind(), [])

    def test_by_the_clock(self):
        """A time that is over is no proof that the module never comes."""
        self.worker(NODE, "check -", self.odd())  # so that the time goes to the load
        error = self.worker(NODE, "load - --timeout 10s", self.odd("init_holds=1"), expect=15)
        self.assertEqual(error["code"], "loader-hung")
        self.assertIn("kmm-worker status shows whether it comes back", error["hint"])
        self.let_go()
        self.wait_for("live")
        self.assertEqual(self.worker(NODE, "unload -", self.odd())["outcome"], "unloaded")
        self.assertEqual(self.left_behind(), [])

    def test_a_boot_later_nothing_is_believed_but_the_firmware_on_the_disk(self):
        """What a reboot leaves: nothing of /run and of the kernel, but files of a directory on a disk."""
        config = self.with_firmware()
        self.fleet.shell(NODE, "modprobe dummy numdummies=0")
        self.worker(NODE, f"load - --firmware-path {FIRMWARE}", config)
        self.fleet.shell(
            NODE,
            "rm -r /run/kmm-worker; rmmod kmm_odd; printf '\\0' >/sys/module/firmware_class/parameters/path; modprobe "
            "dummy numdummies=0",
        )
        self.assertEqual(self.worker(NODE, "status kmm_odd")["modules"][0]["state"], "absent")
        result = self.worker(NODE, f"unload - --restore-in-tree --firmware-path {FIRMWARE}", config)
        self.assertEqual([(m["name"], m["action"]) for m in result["modules"]], [("kmm_odd", "not-loaded")])
        self.assertEqual(self.left_behind(), [])


class Foreseen(TroubleCase):
    """What a check says, and what the load then does."""

    def test_a_module_that_is_on_its_way(self):
        self.begin("first", "load -", self.odd("init_holds=1"))
        self.wait_for("coming")
        self.kill("first", "KILL")
        self.assertIn(
            "module-on-its-way: module kmm_odd is coming", str(self.worker(NODE, "check -", self.odd())["warnings"])
        )
        self.worker(NODE, "load -", self.odd(), expect=15)
        self.let_go()
        self.wait_for("live")

    def test_a_module_that_is_to_give_way_and_is_needed(self):
        self.fleet.shell(NODE, "modprobe bridge")
        config = self.odd(remove=["stp", "llc"])
        said = str(self.worker(NODE, "check -", config)["warnings"])
        self.assertIn("in-tree-in-use: module stp is to give way, and bridge of this host needs it", said)
        self.assertEqual(self.worker(NODE, "load -", config, expect=14)["code"], "module-in-use")
        self.assertEqual(self.fleet.ssh(NODE, "test -d /sys/module/llc").returncode, 0)
        config = self.odd(remove=["bridge", "stp", "llc"])
        self.assertNotIn("in-tree-in-use", str(self.worker(NODE, "check -", config)))
        self.assertEqual(self.worker(NODE, "load -", config)["outcome"], "loaded")
        self.worker(NODE, "unload - --restore-in-tree", config)

    def test_what_the_host_adds(self):
        self.addCleanup(self.fleet.shell, NODE, "rm -f /etc/modprobe.d/trouble.conf")
        for line, foreseen, done in (
                ('options kmm_odd rounded=16 text="x y"', "host-options", {"rounded": "16", "text": "x y"}),
                ("options kmm_odd rounded=16 \\\n text=z", "host-options", {"rounded": "16", "text": "z"}),
                ("blacklist kmm_odd", "blacklisted-module", {"rounded": "8"}),
                ("softdep kmm_odd pre: kmm_busy post: dummy", "'name': 'dummy'", {"rounded": "8"}),
                ("softdep kmm_odd post: kmm_nowhere", "kmm_nowhere should be loaded afterwards", {"rounded": "8"})):
            with self.subTest(line):
                self.fleet.shell(NODE, "mkdir -p /etc/modprobe.d; cat >/etc/modprobe.d/trouble.conf", line + "\n")
                check = self.worker(NODE, "check -", self.odd())
                load = self.worker(NODE, "load -", self.odd())
                self.assertIn(foreseen, str(check))
                self.assertEqual([m["name"] for m in check["modules"]], [m["name"] for m in load["modules"]])
                self.assertEqual(check.get("warnings"), load.get("warnings"))
                for name, value in done.items():
                    self.assertEqual(self.live_parameter(NODE, name, "kmm_odd"), value)
                self.worker(NODE, "unload -", self.odd())
        for line, code in (
            ("options kmm_odd rounded=abc", "bad-parameter"),
            ("install kmm_odd /bin/false", "install-command"),
        ):
            with self.subTest(line):
                self.fleet.shell(NODE, "cat >/etc/modprobe.d/trouble.conf", line + "\n")
                for verb in ("check -", "load -"):
                    self.assertIn(code, str(self.worker(NODE, verb, self.odd(), expect=10)))


class AtOnce(TroubleCase):
    def test_two_loads_of_one_module(self):
        for name in ("first", "second"):
            self.begin(name, "load -", self.odd("init_holds=1"))
        self.wait_for("coming")
        self.let_go()
        self.assertEqual(
            sorted(self.ended(name)["outcome"] for name in ("first", "second")), ["already-loaded", "loaded"]
        )
        for name in ("third", "fourth"):
            self.begin(name, "unload -", self.odd())
        self.assertEqual(
            sorted(self.ended(name)["outcome"] for name in ("third", "fourth")), ["not-loaded", "unloaded"]
        )
        self.assertEqual(self.left_behind(), [])

    def test_an_unload_waits_for_the_load(self):
        self.begin("first", "load -", self.odd("init_holds=1"))
        self.wait_for("coming")
        self.begin("second", "unload -", self.odd())
        time.sleep(3)  # longer than a load waits for a module on its way
        self.let_go()
        self.assertEqual(self.ended("second")["outcome"], "unloaded")
        self.assertEqual(self.ended("first")["outcome"], "loaded")
        self.assertEqual(self.left_behind(), [])

    def test_a_device_that_is_opened_again_and_again(self):
        image = self.image("kmm-misc", "v1")
        self.load(NODE, image, module="kmm_busy")
        self.fleet.shell(
            NODE, "(while exec 3</dev/kmm_busy; do usleep 100000; exec 3<&-; usleep 20000; done) >/dev/null 2>&1 & true"
        )
        self.assertEqual(
            self.worker(NODE, "unload - --wait 30s", self.config(image, module="kmm_busy"))["outcome"], "unloaded"
        )

    def test_interrupted_while_it_waits_for_users(self):
        config = self.config(self.image("kmm-misc", "v1"), module="kmm_busy")
        self.worker(NODE, "load -", config)
        holder = self.open_device(NODE, "/dev/kmm_busy")
        self.begin("first", "unload - --wait 60s", config)
        time.sleep(4)
        self.kill("first", "TERM")
        error = self.ended("first", expect=143)
        self.assertIn("which is still live", error["message"])
        self.close_device(NODE, holder)
        self.assertEqual(self.worker(NODE, "unload -", config)["outcome"], "unloaded")
        self.assertEqual(self.left_behind(), [])

    def test_a_dependency_that_is_wanted_for_itself(self):
        user, dep = (self.config(self.image("kmm-misc", "v1"), module=m) for m in ("kmm_user", "kmm_dep"))
        self.worker(NODE, "load -", user)
        self.assertEqual(self.worker(NODE, "load -", dep)["outcome"], "already-loaded")
        self.worker(NODE, "unload -", user)
        self.assertIsNotNone(self.live(NODE, "kmm_dep"))
        self.assertEqual(self.worker(NODE, "unload -", dep)["outcome"], "unloaded")
        self.assertEqual(self.left_behind(), [])


class Init(TroubleCase):
    def test_a_failure_puts_everything_back(self):
        self.fleet.shell(NODE, "modprobe dummy numdummies=0")
        error = self.worker(NODE, f"load - --firmware-path {FIRMWARE}", self.with_firmware("result=-19"), expect=13)
        self.assertIn("ENODEV", error["message"])
        self.assertIsNone(self.state())
        self.assertEqual(self.fleet.ssh(NODE, "test -d /sys/module/dummy && test ! -e /dev/kmm_odd").returncode, 0)
        self.assertEqual(self.left_behind(), [])

    def test_an_errno_that_usually_means_something_else(self):
        for number, usual in ((-2, "a symbol"), (-17, "live already"), (-16, "under way")):
            error = self.worker(NODE, "load -", self.odd(f"result={number}"), expect=13)
            self.assertEqual(error["details"]["cause"], "the module's init function returned this error")
            self.assertNotIn(usual, error["hint"])

    def test_a_positive_result(self):
        result = self.worker(NODE, "load -", self.odd("result=3"))
        self.assertIn("init suspiciously returned 3", str(result["warnings"]))
        self.worker(NODE, "unload -", self.odd())

    def test_parameters_reach_the_kernel_as_they_are(self):
        config = self.odd('"list=0x10,2"', '"text=a b\'c=d"', "rounded=13")
        result = self.worker(NODE, "load -", config)
        self.assertEqual(
            [self.live_parameter(NODE, p, "kmm_odd") for p in ("list", "text", "rounded")], ["16,2", "a b'c=d", "8"]
        )
        self.assertIn("parameter-differs: kmm_odd is live with rounded=8, wanted 13", str(result["warnings"]))
        self.worker(NODE, "unload -", config)
        error = self.worker(NODE, "load -", self.odd('"list=1,2,3,4,5"'), expect=13)
        self.assertEqual(error["details"]["cause"], "the value of parameter list does not fit")

    def test_zz_a_warning_of_the_kernel_and_then_another(self):
        """The last but one: the node keeps the taint, and the second warning adds none."""
        for _ in range(2):
            error = self.worker(NODE, "load -", self.odd("complain=1"), expect=17)
            self.assertIn("kmm_odd_init", error["details"]["kernel"])
            self.worker(NODE, "unload -", self.odd())
        self.assertEqual(self.worker(NODE, "load -", self.odd())["outcome"], "loaded")
        self.worker(NODE, "unload -", self.odd())

    def test_zzz_an_oops(self):
        """The last one: the module stays on its way until the node is rebooted."""
        self.addCleanup(self.fleet.reboot, NODE)
        self.assertEqual(self.worker(NODE, "load -", self.odd("crash=1"), expect=17)["code"], "node-unhealthy")
        self.assertEqual(self.state(), "coming")
        for verb in ("load -", "unload -"):
            self.assertEqual(self.worker(NODE, verb, self.odd(), expect=15)["code"], "loader-hung")
