"""A switch between network namespaces. Its wires can be cut, lossy, slow or long.

    switch.py ADDRESS...

The first host is the namespace in which the switch starts. The switch creates one more namespace for each other
address. Each host has its address on an interface `wire`. The switch prints the paths of the namespaces as one line of
JSON. Then it reads orders, one line of JSON each, and answers each with an empty line. Everything ends with stdin or
with this process. The switch forwards the frames of TAP devices itself, because few kernels have netem.

    {"wire": 1, "towards": {...}, "from": {...}, "plugged": true}   fields of Way and Port; missing fields are reset
    {"apart": [[1, 2]]}                                       pairs of hosts that cannot reach each other
"""

import ctypes
import dataclasses
import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, TUNSETCARRIER = 0x400454CA, 0x400454E2
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_BYTES_MAX = 1 << 16
FRAMES_AT_ONCE = 64   # of one host, before the next host's turn
BACKLOG_S_MAX = 0.5   # frames that would wait longer are dropped
INTERFACE = "wire"


@dataclasses.dataclass
class Way:
    """One direction of a host's wire."""
    loss: float = 0.0         # probability of losing a frame
    delay_s: float = 0.0
    bits_per_s: float = 0.0   # 0: unlimited
    free_at: float = 0.0      # time at which the wire is free again

    def due(self, now, size, draw):
        """Returns the arrival time of a frame that is sent now; None if it is lost."""
        if self.loss and draw.random() < self.loss:
            return None
        left = now
        if self.bits_per_s:
            if self.free_at - now > BACKLOG_S_MAX:
                return None
            left = self.free_at = max(now, self.free_at) + 8 * size / self.bits_per_s
        return left + self.delay_s


class Port:
    def __init__(self, tap, namespace, address):
        self.tap, self.namespace, self.address = tap, namespace, address
        self.towards, self.away, self.plugged = Way(), Way(), True

    def plug(self, plugged):
        """Plugs or unplugs the cable. The host sees the state of its link."""
        if plugged != self.plugged:
            fcntl.ioctl(self.tap, TUNSETCARRIER, struct.pack("i", plugged))
            self.plugged = plugged


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def hardware(number):
    return bytes([2, 0, 0, 0, 0, number])


def make_host(number, address):
    """Sets up the network of the current namespace."""
    with open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w") as off:  # avoids IPv6 neighbour discovery
        off.write("1")
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", INTERFACE.encode(), IFF_TAP | IFF_NO_PI))
    ip("link", "set", INTERFACE, "address", hardware(number).hex(":"))
    ip("addr", "add", f"{address}/24", "dev", INTERFACE)
    ip("link", "set", INTERFACE, "up")
    ip("link", "set", "lo", "up")
    return Port(tap, os.open("/proc/self/ns/net", os.O_RDONLY), address)


def make_hosts(addresses):
    libc = ctypes.CDLL(None, use_errno=True)
    ports = [make_host(0, addresses[0])]
    for number, address in enumerate(addresses[1:], 1):
        if libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        ports.append(make_host(number, address))
    libc.setns(ports[0].namespace, CLONE_NEWNET)
    return ports


class Switch:
    def __init__(self, ports):
        self.ports = ports
        self.numbers = {hardware(number): number for number in range(len(ports))}
        self.apart = set()
        self.waiting = []  # (when, count, to, frame)
        self.count = 0
        self.draw = random.Random(os.environ.get("ATTUNE_SEED"))

    def run(self):
        poll = select.poll()
        taps = {port.tap: number for number, port in enumerate(self.ports)}
        for descriptor in [0, *taps]:
            poll.register(descriptor, select.POLLIN)
        pending = b""
        while True:
            for descriptor, _ in poll.poll(self.pause_ms()):
                if descriptor:
                    self.take(taps[descriptor])
                    continue
                said = os.read(0, 1 << 16)
                if not said:
                    return
                *lines, pending = (pending + said).split(b"\n")
                for line in lines:
                    self.change(json.loads(line))
                    print(flush=True)
            self.deliver()

    def pause_ms(self):
        return max(0, (self.waiting[0][0] - time.monotonic()) * 1000) if self.waiting else None

    def take(self, number):
        port = self.ports[number]
        for _ in range(FRAMES_AT_ONCE):
            try:
                frame = os.read(port.tap, FRAME_BYTES_MAX)
            except BlockingIOError:
                return
            if not port.plugged:
                continue
            known = self.numbers.get(frame[:6])
            for other in range(len(self.ports)) if known is None else [known]:
                if other != number and frozenset((number, other)) not in self.apart:
                    self.send(frame, number, other)

    def send(self, frame, number, other):
        now = time.monotonic()
        left = self.ports[number].away.due(now, len(frame), self.draw)
        due = left and self.ports[other].towards.due(left, len(frame), self.draw)
        if due:
            self.count += 1
            heapq.heappush(self.waiting, (due, self.count, other, frame))

    def deliver(self):
        now = time.monotonic()
        while self.waiting and self.waiting[0][0] <= now:
            _, _, number, frame = heapq.heappop(self.waiting)
            if self.ports[number].plugged:
                try:
                    os.write(self.ports[number].tap, frame)
                except OSError:
                    pass  # the receiver's queue is full, so the frame is lost

    def change(self, words):
        if "apart" in words:
            self.apart = {frozenset(pair) for pair in words["apart"]}
            return
        port = self.ports[words["wire"]]
        port.towards, port.away = Way(**words.get("towards", {})), Way(**words.get("from", {}))
        port.plug(words.get("plugged", True))


if __name__ == "__main__":
    made = make_hosts(sys.argv[1:])
    print(json.dumps([f"/proc/{os.getpid()}/fd/{port.namespace}" for port in made]), flush=True)
    Switch(made).run()
