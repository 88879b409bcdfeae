#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes API server with fake nodes, on loopback: no root, no containers."""
import argparse
import os
import pathlib
import sys

sys.dont_write_bytecode = True

from testbed import binaries, nodes  # noqa: E402
from testbed.binaries import Unavailable  # noqa: E402
from testbed.kubelet import FakeKubelet  # noqa: E402
from testbed.machines import Machines  # noqa: E402
from testbed.servers import Cluster  # noqa: E402
from lab.common import LabError, say  # noqa: E402

SKIPPED = 77


def fetch(_, options):
    for program in (binaries.SOURCES, binaries.KUBELET):
        binaries.fetch(pathlib.Path(options.build), program)


def build(_, options):
    print(binaries.build(pathlib.Path(options.build), options.real))


def up(cluster, options):
    stop_machines(cluster)
    cluster.up(options.build, options.real)
    if options.real:
        Machines(cluster).up(options.real, options.programs, options.build)
    if options.nodes:
        nodes.create(cluster.api(), [nodes.node(f"node-{i}") for i in range(options.nodes)])


def stop_machines(cluster):
    """What only a cluster with machines needs is not asked for in any other."""
    if (cluster.dir / "machines").exists():
        Machines(cluster).down()


def down(cluster, _):
    stop_machines(cluster)
    cluster.down()


def info(cluster, _):
    state = cluster.state()
    print(
        f"kubeconfig={cluster.kubeconfig}\nserver=https://127.0.0.1:{state.get('port', '')}\nrunning={cluster.running()}"
    )


def kubelet(cluster, _):
    FakeKubelet(cluster.api()).run()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True, help="directory of the cluster; everything it makes is in there")
    parser.add_argument("--build", help="directory where Go may work; default: DIR.build")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("build", help="build the servers, if the cache does not have them")
    verb.add_argument("--real", action="store_true", help="the kubelet, too")
    verb.set_defaults(call=build)
    verbs.add_parser("fetch", help="only download what `build` needs").set_defaults(call=fetch)
    verb = verbs.add_parser("up", help="build if needed, start an empty cluster, wait until it is ready")
    verb.add_argument("--nodes", type=int, default=0, help="create that many fake nodes, node-0 and so on")
    verb.add_argument(
        "--real", nargs="+", default=[], metavar="NAME", help="start that many machines with kubelets, too"
    )
    verb.add_argument(
        "--real-full", nargs="+", default=[], metavar="NAME", help="more of them, with KMM_FULL=1 in the environment"
    )
    verb.add_argument(
        "--programs",
        nargs="+",
        default=(),
        metavar="FILE",
        help="the kmm-worker and kmm-upgrade of their images, with tag 1",
    )
    verb.set_defaults(call=up)
    verbs.add_parser("down", help="stop everything").set_defaults(call=down)
    verbs.add_parser("info", help="print where it is").set_defaults(call=info)
    verbs.add_parser("kubelet", help="play the kubelets of all nodes (`up` starts this)").set_defaults(call=kubelet)
    options = parser.parse_args()
    options.build = options.build or options.dir + ".build"
    if options.verb == "up" and os.environ.get("KMM_FULL"):
        options.real += options.real_full
    cluster = Cluster(options.dir)
    try:
        return options.call(cluster, options) or 0
    except Unavailable as error:
        # Where nothing may be skipped, what is missing is an error.
        say(f"SKIP: no Kubernetes servers here: {error}")
        cluster.unavailable(str(error))
        return 1 if os.environ.get("CI") == "true" else SKIPPED
    except LabError as error:
        say(f"error: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
