"""Sends decisions from rank 0 to the other ranks, so that every rank takes the same branch.

Each of the other ranks has a TCP connection to rank 0, which carries lines of JSON. The address is loopback if all
ranks are on this host. Otherwise the executor names an address of rank 0's host. This module needs no tensor library
and does not use the process group of the training code.
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

_UNREACHABLE_ERRNOS = (errno.EHOSTUNREACH, errno.ENETUNREACH)
_UNREACHABLE_PATIENCE_S = 120  # about as long as TCP tries to connect by itself
_UNREACHABLE_PAUSE_S = 1
_LINE_BYTES_MAX = 64 * 1024
_PIECE_BYTES = 1 << 20
_NOTIFY_AFTER_S = 1  # after this time the executor is told that a rank waits for others
_LOG_AFTER_S = 5  # after this time the log says it too


class LostPeer(RuntimeError):
    """Another rank of the gang has ended."""


class SlowWait:
    """Announces a long wait to the executor, and later in the log. It names the ranks that this rank waits for."""

    def __init__(self, log_line: typing.Callable[[list[int]], str], notify: typing.Callable[[list[int]], None]) -> None:
        """`log_line(ranks)` returns the line for the log, and `notify(ranks)` tells the executor."""
        self._log_line, self._notify = log_line, notify
        self._began = time.monotonic()
        self._due = [_NOTIFY_AFTER_S, _LOG_AFTER_S]

    def timeout(self) -> float | None:
        """Returns how many seconds to wait before the next tick(); None if nothing is left to announce."""
        return max(self._began + self._due[0] - time.monotonic(), 0) if self._due else None

    def tick(self, ranks: list[int]) -> None:
        """Announces the wait if it has taken long enough. `ranks` are the ranks that have not answered."""
        while self._due and time.monotonic() >= self._began + self._due[0]:
            if self._due.pop(0) == _NOTIFY_AFTER_S:
                self._notify(ranks)
            else:
                print(f"attune: {self._log_line(ranks)}", file=sys.stderr, flush=True)


class _Connection:
    """Rank 0's connection to another rank. Any process can connect, so `rank` is None until its first message."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.rank: int | None = None
        self.received: collections.deque[typing.Any] = collections.deque()  # messages that nobody has taken yet
        # What the rank waits for, if it has sent this since the last take_wait_states().
        self.wait_state: Message | None = None
        self.failure = ""  # why the connection has ended; empty while it is open
        self._unread, self.unsent = b"", b""
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self) -> None:
        """Reads the bytes that have arrived, without waiting."""
        try:
            while chunk := self.socket.recv(_LINE_BYTES_MAX):
                *lines, self._unread = (self._unread + chunk).split(b"\n")
                for line in lines:
                    self._handle_message(json.loads(line))
                if len(self._unread) > _LINE_BYTES_MAX:
                    raise ValueError("a line is too long")
            self.failure = self.failure or "it has ended"
        except BlockingIOError:
            pass
        except (OSError, ValueError, RecursionError) as error:
            self.failure = self.failure or str(error)

    def _handle_message(self, message: typing.Any) -> None:
        if isinstance(message, dict) and "stuck" in message:
            self.wait_state = message["stuck"]
        else:
            self.received.append(message)

    def write(self) -> None:
        """Sends as many bytes as the socket accepts, without waiting."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent):]
        except BlockingIOError:
            pass
        except OSError as error:
            self.failure = self.failure or str(error)


class Leader:
    """Rank 0's end of the connections to all other ranks.

    Messages are queued for each of the other ranks, also for ranks that have not connected yet, and a thread sends them.
    So rank 0 waits for other ranks only in share() and wait_for_all().
    """

    def __init__(self, gang: str, world_size: int, address: str) -> None:
        self._gang, self._world_size = gang, world_size
        self._listener = socket.create_server((address, 0), backlog=world_size)
        self.host, self.port = self._listener.getsockname()
        self._listener.setblocking(False)
        self._connections: dict[int, _Connection] = {}
        self._backlog: list[bytes] = []  # all messages so far, until every rank has connected
        self.step_messages_sent = 0  # messages that have a step
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wake_sender, wake_receiver = socket.socketpair()
        self._wake_sender.setblocking(False)
        wake_receiver.setblocking(False)
        self._selector.register(wake_receiver, selectors.EVENT_READ)
        self._thread: threading.Thread | None = None

    def finish(self, timeout: float) -> None:
        """Waits until every rank has connected and all messages are sent, for at most `timeout` seconds."""
        def is_sent() -> bool:
            return len(self._connections) == self._world_size - 1 and all(
                connection.failure or not connection.unsent for connection in self._connections.values())

        with self._changed:
            self._changed.wait_for(is_sent, timeout)

    def close(self) -> None:
        """Closes the connections. Only tests need it, because the connections of a rank end with its process."""
        for key in list(self._selector.get_map().values()):
            typing.cast(socket.socket, key.fileobj).close()
        self._wake_sender.close()

    def broadcast(self, message: Message) -> None:
        """Sends a message to all other ranks, without waiting. Raises LostPeer if a connected rank has ended."""
        line = json.dumps(message).encode() + b"\n"
        with self._changed:
            self.step_messages_sent += "step" in message
            if len(self._connections) < self._world_size - 1:
                self._backlog.append(line)
            for rank, connection in self._connections.items():
                if connection.failure:
                    raise _lost_peer(rank, connection.failure)
                connection.unsent += line
                connection.write()
            has_unsent = any(connection.unsent for connection in self._connections.values())
        if has_unsent:
            with contextlib.suppress(BlockingIOError):
                self._wake_sender.send(b"x")

    def share(self, folder: pathlib.Path, files: dict[str, int]) -> None:
        """Sends files to the ranks that want them, and waits until every rank has them. Call it before serve()."""
        requests = self._receive_from_all()
        for rank, request in requests.items():
            connection = self._connections[rank].socket
            connection.setblocking(True)
            for name, size in files.items() if request["wants"] else ():
                with open(folder / name, "rb") as file, _lost_peer_on_error(rank):
                    _send(connection, {"file": name, "bytes": size})
                    if size:  # sendfile() knows no count of 0
                        connection.sendfile(file, count=size)
            with _lost_peer_on_error(rank):
                _send(connection, {"file": None})
            connection.setblocking(False)
        self._receive_from_all()
        self.broadcast({"shared": True})

    def wait_for_all(self, wait: SlowWait) -> None:
        """Waits until each of the other ranks has sent a message. Raises LostPeer if one has ended."""
        with self._changed:
            while silent_ranks := self._ranks_without_message():
                self._changed.wait(wait.timeout())
                wait.tick(silent_ranks)
            self._take_messages()

    def take_wait_states(self) -> dict[int, Message]:
        """Returns what ranks wait for, for each rank that has sent this since the last call."""
        with self._changed:
            wait_states = {rank: connection.wait_state for rank, connection in self._connections.items()
                           if connection.wait_state}
            for connection in self._connections.values():
                connection.wait_state = None
        return wait_states

    def silent_ranks(self) -> list[int]:
        """Returns the ranks that have sent nothing since the last wait_for_all()."""
        with self._changed:
            return [rank for rank, connection in self._connections.items() if not connection.received]

    def _receive_from_all(self) -> dict[int, Message]:
        """Does the same as wait_for_all() before the thread runs, and returns the messages."""
        while self._ranks_without_message():
            self._handle_sockets()
        return self._take_messages()

    def _ranks_without_message(self) -> list[int]:
        for rank, connection in self._connections.items():
            if connection.failure and not connection.received:
                raise _lost_peer(rank, connection.failure)
        ranks = range(1, self._world_size)
        return [rank for rank in ranks if rank not in self._connections or not self._connections[rank].received]

    def _take_messages(self) -> dict[int, Message]:
        return {rank: connection.received.popleft() for rank, connection in self._connections.items()}

    def serve(self) -> None:
        """Starts the thread that accepts connections and sends messages."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="attune-control", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            self._handle_sockets()

    def _handle_sockets(self) -> None:
        """Waits until a socket is ready, then accepts, reads or writes."""
        for key, events in self._selector.select():
            with self._changed:
                if key.fileobj is self._listener:
                    self._accept()
                elif key.data is None:
                    typing.cast(socket.socket, key.fileobj).recv(1 << 10)
                else:
                    self._handle_connection(key.data, events)
                self._select_events()
                self._changed.notify_all()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connected, _ = self._listener.accept()
            self._selector.register(connected, selectors.EVENT_READ, _Connection(connected))

    def _handle_connection(self, connection: _Connection, events: int) -> None:
        if events & selectors.EVENT_READ:
            connection.read()
        if connection.rank is None and (connection.received or connection.failure):
            self._admit(connection)
        if connection.rank is not None:
            connection.write()
        if connection.failure:
            self._selector.unregister(connection.socket)
            if connection.rank is None:  # not a rank of this gang, but a port scanner, for example
                connection.socket.close()

    def _admit(self, connection: _Connection) -> None:
        hello = connection.received.popleft() if connection.received else None
        rank = hello.get("rank") if isinstance(hello, dict) and hello.get("gang") == self._gang else None
        if type(rank) is not int or not 0 < rank < self._world_size or rank in self._connections:
            connection.failure = "it does not belong to this gang"
            return
        connection.rank, connection.unsent = rank, b"".join(self._backlog)
        self._connections[rank] = connection
        if len(self._connections) == self._world_size - 1:
            self._backlog.clear()

    def _select_events(self) -> None:
        for connection in self._connections.values():
            if not connection.failure:
                write_event = selectors.EVENT_WRITE if connection.unsent else 0
                self._selector.modify(connection.socket, selectors.EVENT_READ | write_event, connection)


class Follower:
    """The end of the connection on every rank but rank 0."""

    def __init__(self, host: str, port: int, gang: str, rank: int) -> None:
        with _lost_peer_on_error(0):
            self._socket = _connect_with_retries(host, port)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._file = self._socket.makefile("rb")
            self._using = threading.Lock()
            self.send({"gang": gang, "rank": rank})

    def close(self) -> None:
        """Closes the connection. The end of the process does the same."""
        self._file.close()
        self._socket.close()

    def receive(self, step: int, wait: SlowWait | None = None) -> Message:
        """Waits for rank 0's message about this step, and returns it."""
        while wait and not self._has_message(wait.timeout()):
            wait.tick([0])
        message = self._read_message()
        if message["step"] != step:
            raise RuntimeError(f"rank 0 reports step {message['step']} and this rank step {step}; let every "
                               "rank call attune.report() equally often, with the same steps")
        return message

    def _has_message(self, timeout: float | None) -> bool:
        """Returns whether a message begins to arrive within `timeout` seconds, or is in the buffer already."""
        with _lost_peer_on_error(0), self._using:
            self._socket.setblocking(False)
            try:
                buffered = self._file.peek(1)
            finally:
                self._socket.setblocking(True)
        with _lost_peer_on_error(0):
            return bool(buffered) or bool(select.select([self._socket], [], [], timeout)[0])

    def _read_message(self) -> Message:
        with _lost_peer_on_error(0):
            line = self._file.readline(_LINE_BYTES_MAX)
        if not line.endswith(b"\n"):
            raise LostPeer("rank 0 has ended without a report of this step; let every rank call attune.report() equally "
                           "often, or rank 0 alone")
        message: Message = json.loads(line)
        return message

    def fetch(self, folder: pathlib.Path | None) -> None:
        """Receives rank 0's files into a new folder, or no files if `folder` is None. Waits for all ranks."""
        self.send({"wants": folder is not None})
        while (file := self._read_message())["file"] is not None:
            path = _checkpoint.path_inside(typing.cast(pathlib.Path, folder), file["file"])
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "xb") as copy:
                for piece in self._receive_pieces(file["bytes"]):
                    copy.write(piece)
        self.send({"has": True})
        self._read_message()

    def _receive_pieces(self, size: int) -> typing.Iterator[bytes]:
        while size > 0:
            with _lost_peer_on_error(0):  # not around the write, because a full disk is not a lost peer
                piece = self._file.read(min(size, _PIECE_BYTES))
                if not piece:
                    raise ConnectionError("it has ended")
            size -= len(piece)
            yield piece

    def send(self, message: Message) -> None:
        """Sends a message to rank 0. Any thread may call it."""
        with _lost_peer_on_error(0), self._using:
            _send(self._socket, message)


def _send(connected: socket.socket, message: Message) -> None:
    connected.sendall(json.dumps(message).encode() + b"\n")


def _connect_with_retries(host: str, port: int) -> socket.socket:
    """Connects, and retries if the host is unreachable: a network that loses packets can report this by mistake."""
    give_up = time.monotonic() + _UNREACHABLE_PATIENCE_S
    while True:
        try:
            return socket.create_connection((host, port))
        except OSError as error:
            if error.errno not in _UNREACHABLE_ERRNOS or time.monotonic() > give_up:
                raise
        time.sleep(_UNREACHABLE_PAUSE_S)


@contextlib.contextmanager
def _lost_peer_on_error(rank: int) -> typing.Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _lost_peer(rank, error) from error


def _lost_peer(rank: int, why: object) -> LostPeer:
    return LostPeer(f"rank {rank} has ended ({why}); let every rank call attune.report() equally often, or rank 0 alone")
