"""How rank 0 tells the others what was decided, so that every rank takes the same branch.

Each of the other ranks has a TCP connection to rank 0, with lines of JSON: on loopback if all ranks are
on this host, otherwise on the address of rank 0's host that the executor names.
It needs no tensor library, and does not touch the process group of the training code.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import json
import pathlib
import select
import selectors
import socket
import sys
import threading
import time
import typing

from attune import _checkpoint
from attune._channel import Message

_NO_WAY = (errno.EHOSTUNREACH, errno.ENETUNREACH)
_NO_WAY_PATIENCE_S = 120  # about as long as TCP tries, where it is the one that does
_NO_WAY_PAUSE_S = 1
_LINE_BYTES_MAX = 64 * 1024
_PIECE_BYTES = 1 << 20
_SAY_AFTER_S = 1  # until the executor hears that a rank waits for others
_LOG_AFTER_S = 5  # until the log says so


class LostPeer(RuntimeError):
    """Another rank of the gang has gone."""


class Wait:
    """Says whom this rank waits for, once that takes long: first to the executor, then in the log."""

    def __init__(self, text: typing.Callable[[list[int]], str], say: typing.Callable[[list[int]], None]) -> None:
        """`text(ranks)` is the line for the log, `say(ranks)` tells the executor."""
        self._text, self._say = text, say
        self._began = time.monotonic()
        self._due = [_SAY_AFTER_S, _LOG_AFTER_S]

    def timeout(self) -> float | None:
        """How many seconds to wait before the next tick(); None: until there is an answer."""
        return max(self._began + self._due[0] - time.monotonic(), 0) if self._due else None

    def tick(self, ranks: list[int]) -> None:
        """Says what is due."""
        while self._due and time.monotonic() >= self._began + self._due[0]:
            if self._due.pop(0) == _SAY_AFTER_S:
                self._say(ranks)
            else:
                print(f"attune: {self._text(ranks)}", file=sys.stderr, flush=True)


class _Other:
    """A connection to rank 0: of one of the other ranks once that has said so."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.rank: int | None = None
        self.said: collections.deque[typing.Any] = collections.deque()  # what nobody has asked for yet
        self.stuck: Message | None = None  # what it waits for, as it has said since the last take_stuck()
        self.gone = ""  # why it is, if it is
        self._unread, self.unsent = b"", b""
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self) -> None:
        """Takes what has come, without waiting."""
        try:
            while chunk := self.socket.recv(_LINE_BYTES_MAX):
                *lines, self._unread = (self._unread + chunk).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
                if len(self._unread) > _LINE_BYTES_MAX:
                    raise ValueError("a line is too long")
            self.gone = self.gone or "it has left"
        except BlockingIOError:
            pass
        except (OSError, ValueError, RecursionError) as error:
            self.gone = self.gone or str(error)

    def _take(self, message: typing.Any) -> None:
        if isinstance(message, dict) and "stuck" in message:
            self.stuck = message["stuck"]
        else:
            self.said.append(message)

    def write(self) -> None:
        """Sends what the connection takes, without waiting."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent):]
        except BlockingIOError:
            pass
        except OSError as error:
            self.gone = self.gone or str(error)


class Leader:
    """Rank 0's side.

    What rank 0 tells is queued for each of the others, also for those that have not connected yet: a
    thread sends it. So rank 0 waits for another rank only if it asks for its answer.
    """

    def __init__(self, gang: str, world_size: int, address: str) -> None:
        self._gang, self._world_size = gang, world_size
        self._listener = socket.create_server((address, 0), backlog=world_size)
        self.host, self.port = self._listener.getsockname()
        self._listener.setblocking(False)
        self._others: dict[int, _Other] = {}
        self._words: list[bytes] = []  # all that was told, until every rank has connected
        self.told = 0  # words about steps
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wake, wakes = socket.socketpair()
        self._wake.setblocking(False)
        wakes.setblocking(False)
        self._selector.register(wakes, selectors.EVENT_READ)
        self._thread: threading.Thread | None = None

    def finish(self, timeout: float) -> None:
        """Waits until every rank has connected and all that was told is sent, for at most so many seconds."""
        def is_sent() -> bool:
            return len(self._others) == self._world_size - 1 and all(
                other.gone or not other.unsent for other in self._others.values())

        with self._changed:
            self._changed.wait_for(is_sent, timeout)

    def close(self) -> None:
        """Ends the connections. For tests: those of a rank end with its process."""
        for key in list(self._selector.get_map().values()):
            typing.cast(socket.socket, key.fileobj).close()
        self._wake.close()

    def tell(self, message: Message) -> None:
        """To all others, without waiting for them. Raises LostPeer if one has connected and gone."""
        line = json.dumps(message).encode() + b"\n"
        with self._changed:
            self.told += "step" in message
            if len(self._others) < self._world_size - 1:
                self._words.append(line)
            for rank, other in self._others.items():
                if other.gone:
                    raise _gone(rank, other.gone)
                other.unsent += line
                other.write()
            has_unsent = any(other.unsent for other in self._others.values())
        if has_unsent:
            with contextlib.suppress(BlockingIOError):
                self._wake.send(b"x")

    def share(self, folder: pathlib.Path, files: dict[str, int]) -> None:
        """Sends these files to the ranks that want them; waits until every rank has them. Before serve()."""
        wishes = self._hear_here()
        for rank, wish in wishes.items():
            other = self._others[rank].socket
            other.setblocking(True)
            for name, size in files.items() if wish["wants"] else ():
                with open(folder / name, "rb") as file, _talking_to(rank):
                    _send(other, {"file": name, "bytes": size})
                    if size:  # sendfile() knows no count of 0
                        other.sendfile(file, count=size)
            with _talking_to(rank):
                _send(other, {"file": None})
            other.setblocking(False)
        self._hear_here()
        self.tell({"shared": True})

    def hear_all(self, wait: Wait) -> None:
        """Waits until each of the others has said something. Raises LostPeer if one has gone."""
        with self._changed:
            while missing := self._missing():
                self._changed.wait(wait.timeout())
                wait.tick(missing)
            self._take()

    def take_stuck(self) -> dict[int, Message]:
        """What ranks wait for that have said so since the last call."""
        with self._changed:
            stuck = {rank: other.stuck for rank, other in self._others.items() if other.stuck}
            for other in self._others.values():
                other.stuck = None
        return stuck

    def missing(self) -> list[int]:
        """The ranks that have said nothing since the last hear_all()."""
        with self._changed:
            return [rank for rank, other in self._others.items() if not other.said]

    def _hear_here(self) -> dict[int, Message]:
        """As hear_all(), while there is no thread yet."""
        while self._missing():
            self._turn()
        return self._take()

    def _missing(self) -> list[int]:
        for rank, other in self._others.items():
            if other.gone and not other.said:
                raise _gone(rank, other.gone)
        ranks = range(1, self._world_size)
        return [rank for rank in ranks if rank not in self._others or not self._others[rank].said]

    def _take(self) -> dict[int, Message]:
        return {rank: other.said.popleft() for rank, other in self._others.items()}

    def serve(self) -> None:
        """Begins to send, and to let the others connect, in the background."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="attune-control", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            self._turn()

    def _turn(self) -> None:
        """Waits for the sockets and does what they are ready for."""
        for key, events in self._selector.select():
            with self._changed:
                if key.fileobj is self._listener:
                    self._accept()
                elif key.data is None:
                    typing.cast(socket.socket, key.fileobj).recv(1 << 10)
                else:
                    self._talk(key.data, events)
                self._watch()
                self._changed.notify_all()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connected, _ = self._listener.accept()
            self._selector.register(connected, selectors.EVENT_READ, _Other(connected))

    def _talk(self, other: _Other, events: int) -> None:
        if events & selectors.EVENT_READ:
            other.read()
        if other.rank is None and (other.said or other.gone):
            self._admit(other)
        if other.rank is not None:
            other.write()
        if other.gone:
            self._selector.unregister(other.socket)
            if other.rank is None:  # not one of this gang: somebody else's port, or a scanner
                other.socket.close()

    def _admit(self, other: _Other) -> None:
        hello = other.said.popleft() if other.said else None
        rank = hello.get("rank") if isinstance(hello, dict) and hello.get("gang") == self._gang else None
        if type(rank) is not int or not 0 < rank < self._world_size or rank in self._others:
            other.gone = "it is not of this gang"
            return
        other.rank, other.unsent = rank, b"".join(self._words)
        self._others[rank] = other
        if len(self._others) == self._world_size - 1:
            self._words.clear()

    def _watch(self) -> None:
        for other in self._others.values():
            if not other.gone:
                writes = selectors.EVENT_WRITE if other.unsent else 0
                self._selector.modify(other.socket, selectors.EVENT_READ | writes, other)


class Follower:
    """The side of every other rank."""

    def __init__(self, host: str, port: int, gang: str, rank: int) -> None:
        with _talking_to(0):
            self._socket = _connect(host, port)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._file = self._socket.makefile("rb")
            self._using = threading.Lock()
            self.say({"gang": gang, "rank": rank})

    def close(self) -> None:
        """Ends the connection, as the end of the process does."""
        self._file.close()
        self._socket.close()

    def hear(self, step: int, wait: Wait | None = None) -> Message:
        """What rank 0 says at this step; waits for it."""
        while wait and not self._has_word(wait.timeout()):
            wait.tick([0])
        message = self._receive()
        if message["step"] != step:
            raise RuntimeError(f"rank 0 reports step {message['step']} and this rank step {step}; every "
                               "rank calls attune.report() equally often, with the same steps")
        return message

    def _has_word(self, timeout: float | None) -> bool:
        """Whether there is something to read within this time; the file may hold more than a line."""
        with _talking_to(0), self._using:
            self._socket.setblocking(False)
            try:
                buffered = self._file.peek(1)
            finally:
                self._socket.setblocking(True)
        with _talking_to(0):
            return bool(buffered) or bool(select.select([self._socket], [], [], timeout)[0])

    def _receive(self) -> Message:
        with _talking_to(0):
            line = self._file.readline(_LINE_BYTES_MAX)
        if not line.endswith(b"\n"):
            raise LostPeer("rank 0 has left without a report of this step; let every rank call attune.report() equally often, or rank 0 alone")
        message: Message = json.loads(line)
        return message

    def fetch(self, folder: pathlib.Path | None) -> None:
        """Takes rank 0's files into a new folder; none if there is no folder. Waits for all ranks."""
        self.say({"wants": folder is not None})
        while (file := self._receive())["file"] is not None:
            path = _checkpoint.inside(typing.cast(pathlib.Path, folder), file["file"])
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "xb") as copy:
                for piece in self._pieces(file["bytes"]):
                    copy.write(piece)
        self.say({"has": True})
        self._receive()

    def _pieces(self, size: int) -> typing.Iterator[bytes]:
        while size > 0:
            with _talking_to(0):  # not while a piece is written: a full disk is no lost peer
                piece = self._file.read(min(size, _PIECE_BYTES))
                if not piece:
                    raise ConnectionError("it has left")
            size -= len(piece)
            yield piece

    def say(self, message: Message) -> None:
        """To rank 0, from any thread."""
        with _talking_to(0), self._using:
            _send(self._socket, message)


def _send(connected: socket.socket, message: Message) -> None:
    connected.sendall(json.dumps(message).encode() + b"\n")


def _connect(host: str, port: int) -> socket.socket:
    """On a network that loses packets a host may not be found in one try, and in the next."""
    give_up = time.monotonic() + _NO_WAY_PATIENCE_S
    while True:
        try:
            return socket.create_connection((host, port))
        except OSError as error:
            if error.errno not in _NO_WAY or time.monotonic() > give_up:
                raise
        time.sleep(_NO_WAY_PAUSE_S)


@contextlib.contextmanager
def _talking_to(rank: int) -> typing.Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _gone(rank, error) from error


def _gone(rank: int, why: object) -> LostPeer:
    return LostPeer(f"rank {rank} is gone ({why}); let every rank call attune.report() equally often, or rank 0 alone")
