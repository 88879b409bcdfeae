#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""world.py DIR ADDRESS SERVER...: the first process of the namespaces in which the lab's nodes are: the bridge, the
registry, and what stands before the API servers and passes connections to those that listen. The addresses of two
Services are here: that of the API servers, and that of DNS, from which questions go to the Pods of CoreDNS. All of the
lab ends with it."""
import asyncio
import base64
import json
import os
import pathlib
import re
import signal
import ssl
import sys
import threading
import time
import urllib.request

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


API, DNS = "10.96.0.1", "10.96.0.10"


class Backends:
    """The Pods of CoreDNS that are ready, as EndpointSlices have them. The administrator's kubeconfig of the lab is
    there once kubeadm has made the cluster."""

    def __init__(self, directory, address):
        self.dir, self.url, self.known, self.asked, self.turn = directory, f"https://{address}:6443", [], 0.0, 0

    def read(self):
        text = (self.dir / "kubeconfig").read_text()
        data = {name: base64.b64decode(value).decode() for name, value in re.findall(r"([a-z-]+)-data: (\S+)", text)}
        pair = self.dir / "world.pem"
        pair.write_text(data["client-certificate"] + data["client-key"])
        context = ssl.create_default_context(cadata=data["certificate-authority"])
        context.load_cert_chain(pair)
        path = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"
        query = "?labelSelector=kubernetes.io/service-name=kube-dns"
        with urllib.request.urlopen(self.url + path + query, context=context, timeout=5) as answer:
            slices = json.load(answer)["items"]
        return [address for part in slices for one in part.get("endpoints") or ()
                if one.get("conditions", {}).get("ready") for address in one["addresses"]]

    async def next(self):
        """One after the other; None while there is none. While the API server is away, those of before."""
        if time.monotonic() - self.asked > 1:
            self.asked = time.monotonic()
            try:
                self.known = await asyncio.to_thread(self.read)
            except (OSError, ValueError, KeyError):
                pass
        self.turn += 1
        return self.known[self.turn % len(self.known)] if self.known else None


class Asked(asyncio.DatagramProtocol):
    """A question, and where its answer goes."""

    def __init__(self, answer):
        self.answer = answer

    def datagram_received(self, data, _):
        if not self.answer.done():
            self.answer.set_result(data)


class Resolver(asyncio.DatagramProtocol):
    """Passes questions on, as kube-proxy has the kernel do it. Without a Pod that is ready nobody answers."""

    def __init__(self, backends):
        self.backends, self.tasks, self.door = backends, set(), None

    def connection_made(self, transport):
        self.door = transport

    def datagram_received(self, data, addr):
        task = asyncio.get_running_loop().create_task(self.pass_on(data, addr))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def pass_on(self, data, addr):
        pod = await self.backends.next()
        if pod is None:
            return
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        transport, _ = await loop.create_datagram_endpoint(lambda: Asked(answer), remote_addr=(pod, 53))
        try:
            transport.sendto(data)
            self.door.sendto(await asyncio.wait_for(answer, 5), addr)
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            transport.close()


async def balance(address, port, servers):
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

    async with await asyncio.start_server(serve, address, port) as server:
        await server.serve_forever()


async def serve_all(directory, address, servers):
    backends = Backends(directory, address)
    await asyncio.get_running_loop().create_datagram_endpoint(lambda: Resolver(backends), local_addr=(DNS, 53))
    await asyncio.gather(balance(address, 6443, servers), balance(API, 443, servers))


def main():
    directory, address, servers = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    for line in ("link set lo up", "link add lab type bridge", f"address add {address}/24 dev lab",
                 f"address add {API}/32 dev lab", f"address add {DNS}/32 dev lab", "link set lab up"):
        if os.spawnvp(os.P_WAIT, "ip", ["ip", *line.split()]) != 0:
            raise SystemExit(f"ip {line} failed")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    threading.Thread(target=images.registry(directory / "images", address, 5000).serve_forever, daemon=True).start()
    (directory / "world.ready").touch()
    asyncio.run(serve_all(directory, address, servers))


if __name__ == "__main__":
    main()
