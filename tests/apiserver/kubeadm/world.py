#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""world.py DIR ADDRESS SERVER...: the first process of the namespaces in which the lab's nodes are: the bridge, the
registry, and what stands before the API servers and passes connections to those that listen. All of the lab ends with
it."""
import asyncio
import os
import pathlib
import signal
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from testbed import images  # noqa: E402


async def pump(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def balance(address, servers):
    turn = 0

    async def serve(reader, writer):
        nonlocal turn
        turn += 1
        for number in range(len(servers)):
            server = servers[(turn + number) % len(servers)]
            try:
                there = await asyncio.wait_for(asyncio.open_connection(server, 6443), 1)
            except (OSError, asyncio.TimeoutError):
                continue
            await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
            return
        writer.transport.abort()

    async with await asyncio.start_server(serve, address, 6443) as server:
        await server.serve_forever()


def main():
    directory, address, servers = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    for line in ("link set lo up", "link add lab type bridge", f"address add {address}/24 dev lab", "link set lab up"):
        if os.spawnvp(os.P_WAIT, "ip", ["ip", *line.split()]) != 0:
            raise SystemExit(f"ip {line} failed")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    threading.Thread(target=images.registry(directory / "images", address, 5000).serve_forever, daemon=True).start()
    (directory / "world.ready").touch()
    asyncio.run(balance(address, servers))


if __name__ == "__main__":
    main()
