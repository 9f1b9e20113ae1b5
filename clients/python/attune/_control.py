"""How rank 0 tells the others what was decided, so that every rank takes the same branch.

A TCP connection from each of the other ranks to rank 0, on this host's loopback, with lines of JSON.
It needs no tensor library, and does not touch the process group of the training code.
"""

import json
import socket

_HELLO_TIMEOUT_S = 10  # of whoever connects, until it has said which rank it is
_LINE_BYTES_MAX = 64 * 1024


class LostPeer(RuntimeError):
    """Another rank of the gang has gone."""


class _Line:
    """A connected socket as lines of JSON."""

    def __init__(self, connected):
        self.socket = connected
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = connected.makefile("rb")

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self):
        """None at the end."""
        line = self._file.readline(_LINE_BYTES_MAX)
        return json.loads(line) if line.endswith(b"\n") else None

    def has_ended(self):
        """Whether the other end has left without a word more; does not wait."""
        try:
            return self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False

    def close(self):
        self._file.close()
        self.socket.close()


class Leader:
    """Rank 0's side. Waits for the other ranks when it first has something to say."""

    def __init__(self, gang, world_size):
        self._gang, self._world_size = gang, world_size
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=world_size)
        self.host, self.port = self._listener.getsockname()
        self._others = {}

    def tell(self, message):
        """To all others. Raises LostPeer if one has gone."""
        self._gather()
        for rank, other in self._others.items():
            try:
                if other.has_ended():
                    raise ConnectionError("it has left")
                other.send(message)
            except OSError as error:
                raise _gone(rank, error) from error

    def hear_all(self):
        """Waits until each of the others has said something; what that is does not matter."""
        for rank, other in self._others.items():
            try:
                if other.receive() is None:
                    raise ConnectionError("it has left")
            except OSError as error:
                raise _gone(rank, error) from error

    def _gather(self):
        while len(self._others) < self._world_size - 1:
            connected, _ = self._listener.accept()
            connected.settimeout(_HELLO_TIMEOUT_S)
            other = _Line(connected)
            rank = self._rank_of(other)
            if rank is None:  # not one of this gang: somebody else's port, or a scanner
                other.close()
                continue
            connected.settimeout(None)
            self._others[rank] = other

    def _rank_of(self, other):
        try:
            hello = other.receive()
        except (OSError, ValueError):
            return None
        if not isinstance(hello, dict) or hello.get("gang") != self._gang:
            return None
        rank = hello.get("rank")
        fits = type(rank) is int and 0 < rank < self._world_size and rank not in self._others
        return rank if fits else None


class Follower:
    """The side of every other rank."""

    def __init__(self, host, port, gang, rank):
        try:
            self._leader = _Line(socket.create_connection((host, port)))
            self._leader.send({"gang": gang, "rank": rank})
        except OSError as error:
            raise _gone(0, error) from error

    def hear(self, step):
        """What rank 0 says at this step; waits for it."""
        try:
            message = self._leader.receive()
        except OSError as error:
            raise _gone(0, error) from error
        if message is None:
            raise LostPeer("rank 0 has left; every rank calls attune.report() equally often")
        if message["step"] != step:
            raise RuntimeError(f"rank 0 reports step {message['step']} and this rank step {step}; every "
                               "rank calls attune.report() equally often, with the same steps")
        return message

    def say(self, message):
        try:
            self._leader.send(message)
        except OSError as error:
            raise _gone(0, error) from error


def _gone(rank, why):
    return LostPeer(f"rank {rank} is gone ({why}); every rank calls attune.report() equally often")
