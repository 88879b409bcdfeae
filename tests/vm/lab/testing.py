# SPDX-License-Identifier: Apache-2.0
"""What the tests on real nodes share. KMM_LAB_DIR names a lab that is up, KMM_BIN_DIR the tools under test."""
import json
import os
import pathlib
import unittest

from . import cluster, kmods
from .common import Lab
from .nodes import Fleet
from .registry import Registry

# Where a worker may have files of its own; compared before and after to prove that nothing is left behind.
WATCHED = "/tmp /var/tmp /var/lib /run /etc /opt /root"


class NodeCase(unittest.TestCase):
    """Tests against the nodes of a group; before each test no test module is loaded anywhere on them."""
    GROUP = "nodes"
    maxDiff = None
    longMessage = True

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(os.environ["KMM_LAB_DIR"])
        cls.bin = pathlib.Path(os.environ["KMM_BIN_DIR"])
        cls.registry = Registry(cls.lab)
        cls.digests = cls.registry.publish()
        cls.modules = kmods.build(cls.lab)
        cls.open_fleet()
        cls.fleet.wait_ready()

    @classmethod
    def open_fleet(cls):
        """Sets cls.fleet, whose nodes have been started."""
        cls.fleet = Fleet(cls.lab, cls.GROUP)

    def setUp(self):
        self.fleet.clean()

    def image(self, name, tag):
        return self.registry.reference(name, tag)

    def by_digest(self, name, tag):
        return self.registry.reference(name, self.digests[f"{name}:{tag}"])

    def config(self, image, **options):
        return cluster.module_config(image, self.lab.kernel, **options)

    def worker(self, node, arguments, stdin="", expect=0):
        """Runs kmm-worker on a node; returns its JSON document. The exit code must be the expected one."""
        done = self.fleet.ssh(node, f"kmm-worker {arguments} -o json", stdin=stdin)
        words = f"kmm-worker {arguments}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        self.assertEqual(done.returncode, expect, words)
        try:
            document = json.loads(done.stdout)
        except ValueError:
            self.fail(f"not one JSON document: {words}")
        self.assertEqual(document["kind"] == "Error", expect != 0, words)
        return document

    def load(self, node, image, expect=0, **options):
        return self.worker(node, "load -", self.config(image, **options), expect)

    def live(self, node, module="kmm_hello"):
        """The identity of a live module as the kernel shows it, or None."""
        out = self.fleet.shell(node, f"cat /sys/module/{module}/srcversion 2>/dev/null || true").strip()
        return out or None

    def live_parameter(self, node, parameter, module="kmm_hello"):
        return self.fleet.shell(node, f"cat /sys/module/{module}/parameters/{parameter}").strip()

    def file_identity(self, variant, module="kmm_hello"):
        """The srcversion in a built module file."""
        data = self.modules[variant][module].read_bytes()
        start = data.index(b"srcversion=") + len(b"srcversion=")
        return data[start:data.index(b"\0", start)].decode()

    def open_device(self, node, device):
        """Starts a process that has the device open; returns its id."""
        return self.fleet.shell(
            node,
            f"(exec 3<{device}; exec sleep 600) >/dev/null 2>&1 & echo $!; "
            "until [ -e /proc/$!/fd/3 ] && [ \"$(cat /proc/$!/comm)\" = sleep ]; do usleep 20000; done",
        ).strip()

    def close_device(self, node, pid):
        self.fleet.shell(node, f"kill {pid}; while [ -e /proc/{pid}/fd/3 ]; do usleep 20000; done")

    def files_on(self, node):
        return self.fleet.shell(node, f"find {WATCHED} -xdev 2>/dev/null | sort; "
                                      "find /tmp /var/tmp /var/lib /run | sort")


class SingleCase(NodeCase):
    """One node is enough: it is another than the three that are upgraded meanwhile."""
    GROUP = "single"
