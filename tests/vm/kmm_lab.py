#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes for tests and the demo: virtual machines with a real kernel, and a registry with module images."""
import argparse
import pathlib
import sys

sys.dont_write_bytecode = True

from lab import cluster  # noqa: E402
from lab.common import NODES, Lab, LabError, say  # noqa: E402
from lab.nodes import GROUPS, Fleet  # noqa: E402
from lab.registry import Registry  # noqa: E402


def up(lab, options):
    registry = Registry(lab).start()
    registry.publish()
    fleet = Fleet(lab)
    if options.reuse and fleet.running() and fleet.names() == sorted(options.nodes or NODES):
        say("the nodes are up already")
    else:
        say(f"starting {' '.join(options.nodes or NODES)} with kernel {lab.kernel}")
        fleet.up(options.nodes or NODES, options.worker, registry.certificates() / "ca.pem")
    fleet.wait_ready()


def single(lab, _):
    """The node of the tests that need only one; beside those that are up, with the same guest."""
    fleet = Fleet(lab, "single")
    fleet.start(NODES[:1])
    fleet.wait_ready()


def down(lab, _):
    for group in ("nodes", *GROUPS):
        Fleet(lab, group).down()
    Registry(lab).stop()


def ssh(lab, options):
    done = Fleet(lab).ssh(options.node, " ".join(options.command), timeout=600)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def reboot(lab, options):
    print(Fleet(lab).reboot(options.node))


def link(lab, options):
    Fleet(lab).link(options.node, options.state == "on")


def images(lab, _):
    registry = Registry(lab).start()
    for image, digest in sorted(registry.publish().items()):
        print(f"{registry.reference(*image.split(':', 1))} {digest}")


def write_cluster(lab, options):
    """A directory cluster of the running nodes with one Module at the given version."""
    directory = pathlib.Path(options.directory)
    fleet, registry = Fleet(lab), Registry(lab)
    if not (directory / "nodes").exists():
        cluster.write_nodes(directory, lab, {name: fleet.boot_id(name) for name in fleet.names()})
    cluster.write_module(directory, registry.reference("kmm-hello", options.version), options.version,
                         parameters=["greeting=hello"])


def info(lab, _):
    fleet = Fleet(lab)
    print(f"kernel={lab.kernel}\nnodes={' '.join(fleet.names())}\nssh_config={fleet.ssh_config}")
    if lab.state().get("registry"):
        print(f"registry=127.0.0.1:{Registry(lab).port}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True, help="directory of the lab; everything it makes is in there")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("up", help="start registry and nodes, wait until they answer")
    verb.add_argument("--worker", help="the kmm-worker to put into the nodes")
    verb.add_argument("--reuse", action="store_true", help="keep nodes that run already")
    verb.add_argument("nodes", nargs="*")
    verb.set_defaults(call=up)
    verbs.add_parser("single", help="start one more node, for tests that need no more").set_defaults(call=single)
    verbs.add_parser("down", help="stop everything").set_defaults(call=down)
    verb = verbs.add_parser("ssh", help="run a command on a node")
    verb.add_argument("node")
    verb.add_argument("command", nargs=argparse.REMAINDER)
    verb.set_defaults(call=ssh)
    verb = verbs.add_parser("reboot", help="restart a node, wait for it, print its new boot id")
    verb.add_argument("node")
    verb.set_defaults(call=reboot)
    verb = verbs.add_parser("link", help="plug the network of a node in or out")
    verb.add_argument("node")
    verb.add_argument("state", choices=("on", "off"))
    verb.set_defaults(call=link)
    verbs.add_parser("images", help="start the registry, list the images it has").set_defaults(call=images)
    verb = verbs.add_parser("cluster", help="write a directory cluster for the running nodes")
    verb.add_argument("directory")
    verb.add_argument("--version", default="v1")
    verb.set_defaults(call=write_cluster)
    verbs.add_parser("info", help="print the lab's kernel, nodes and addresses").set_defaults(call=info)
    options = parser.parse_args()
    try:
        return options.call(Lab(options.dir), options) or 0
    except LabError as error:
        say(f"error: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
