"""How rank 0 tells the others what was decided, so that every rank takes the same branch.

A TCP connection from each of the other ranks to rank 0, with lines of JSON: on loopback where all are
on this host, else on its address that the executor says.
It needs no tensor library, and does not touch the process group of the training code.
"""

import contextlib
import errno
import json
import pathlib
import selectors
import socket
import time

_NO_WAY = (errno.EHOSTUNREACH, errno.ENETUNREACH)
_NO_WAY_PATIENCE_S = 120  # about as long as TCP tries, where it is the one that does
_NO_WAY_PAUSE_S = 1
_HELLO_TIMEOUT_S = 10  # of whoever has begun to say which rank it is, until it has
_LINE_BYTES_MAX = 64 * 1024
_PIECE_BYTES = 1 << 20


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

    def receive_bytes(self, size):
        """So many, in pieces. Raises ConnectionError at the end."""
        while size > 0:
            piece = self._file.read(min(size, _PIECE_BYTES))
            if not piece:
                raise ConnectionError("it has left")
            size -= len(piece)
            yield piece

    def close(self):
        self._file.close()
        self.socket.close()


class Leader:
    """Rank 0's side. Waits for the other ranks when it first has something to say."""

    def __init__(self, gang, world_size, address):
        self._gang, self._world_size = gang, world_size
        self._listener = socket.create_server((address, 0), backlog=world_size)
        self.host, self.port = self._listener.getsockname()
        self._others = {}

    def tell(self, message):
        """To all others. Raises LostPeer if one has gone."""
        self._gather()
        for rank, other in self._others.items():
            with _talking_to(rank):
                if other.has_ended():
                    raise ConnectionError("it has left")
                other.send(message)

    def share(self, folder, files):
        """Sends these files to the ranks that want them; waits until every rank has said."""
        self._gather()
        for rank, other in self._others.items():
            with _talking_to(rank):
                wish = other.receive()
                if wish is None:
                    raise ConnectionError("it has left")
            for name, size in files.items() if wish["wants"] else ():
                with open(folder / name, "rb") as file, _talking_to(rank):
                    other.send({"file": name, "bytes": size})
                    if size:  # sendfile() knows no count of 0
                        other.socket.sendfile(file, count=size)
            with _talking_to(rank):
                other.send({"file": None})
        self.hear_all()
        self.tell({"shared": True})

    def hear_all(self):
        """Waits until each of the others has said something; what that is does not matter."""
        for rank, other in self._others.items():
            with _talking_to(rank):
                if other.receive() is None:
                    raise ConnectionError("it has left")

    def _gather(self):
        """Who connects and is silent is waited for, since a bad network may hold its first word back for long; but
        it holds up nobody, since it may not be one of this gang."""
        silent = set()
        with selectors.DefaultSelector() as heard:
            heard.register(self._listener, selectors.EVENT_READ)
            while len(self._others) < self._world_size - 1:
                for key, _ in heard.select():
                    if key.fileobj is self._listener:
                        connected, _ = self._listener.accept()
                        heard.register(connected, selectors.EVENT_READ)
                        silent.add(connected)
                        continue
                    heard.unregister(key.fileobj)
                    silent.remove(key.fileobj)
                    self._admit(key.fileobj)
        for connected in silent:
            connected.close()

    def _admit(self, connected):
        connected.settimeout(_HELLO_TIMEOUT_S)
        other = _Line(connected)
        rank = self._rank_of(other)
        if rank is None:  # not one of this gang: somebody else's port, or a scanner
            other.close()
            return
        connected.settimeout(None)
        self._others[rank] = other

    def _rank_of(self, other):
        try:
            hello = other.receive()
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(hello, dict) or hello.get("gang") != self._gang:
            return None
        rank = hello.get("rank")
        fits = type(rank) is int and 0 < rank < self._world_size and rank not in self._others
        return rank if fits else None


class Follower:
    """The side of every other rank."""

    def __init__(self, host, port, gang, rank):
        with _talking_to(0):
            self._leader = _Line(_connect(host, port))
            self._leader.send({"gang": gang, "rank": rank})

    def hear(self, step):
        """What rank 0 says at this step; waits for it."""
        message = self._receive()
        if message["step"] != step:
            raise RuntimeError(f"rank 0 reports step {message['step']} and this rank step {step}; every "
                               "rank calls attune.report() equally often, with the same steps")
        return message

    def _receive(self):
        with _talking_to(0):
            message = self._leader.receive()
        if message is None:
            raise LostPeer("rank 0 has left; every rank calls attune.report() equally often")
        return message

    def fetch(self, folder):
        """Takes rank 0's files into a new folder; none if there is no folder. Waits for all ranks."""
        self.say({"wants": folder is not None})
        while (file := self._receive())["file"] is not None:
            path = _inside(folder, file["file"])
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "xb") as copy:
                for piece in self._pieces(file["bytes"]):
                    copy.write(piece)
        self.say({"has": True})
        self._receive()

    def _pieces(self, size):
        pieces = self._leader.receive_bytes(size)
        while True:
            with _talking_to(0):  # not while a piece is written: a full disk is no lost peer
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece

    def say(self, message):
        with _talking_to(0):
            self._leader.send(message)


def _connect(host, port):
    """On a network that loses packets a host may not be found in one try, and in the next."""
    give_up = time.monotonic() + _NO_WAY_PATIENCE_S
    while True:
        try:
            return socket.create_connection((host, port))
        except OSError as error:
            if error.errno not in _NO_WAY or time.monotonic() > give_up:
                raise
        time.sleep(_NO_WAY_PAUSE_S)


def _inside(folder, name):
    path = pathlib.PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"rank 0 sends a file named {name!r}, which is not inside its checkpoint")
    return folder / path


@contextlib.contextmanager
def _talking_to(rank):
    try:
        yield
    except OSError as error:
        raise _gone(rank, error) from error


def _gone(rank, why):
    return LostPeer(f"rank {rank} is gone ({why}); every rank calls attune.report() equally often")
