"""The worker channel, as a rank uses it: lines of JSON over an inherited socket."""

from __future__ import annotations

import json
import select
import socket
import threading
import typing

Message = typing.Dict[str, typing.Any]  # one line; `type` is a string

LINE_BYTES_MAX = 1 << 20
ERROR_CHARACTERS_MAX = 4096  # at most 16 KiB in UTF-8, the limit of an executor


class Channel:
    """The channel to the executor. Any thread may send; only one thread may receive."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._socket.setblocking(True)
        self._unread = b""
        self._sending = threading.Lock()

    def send(self, kind: str, **fields: typing.Any) -> None:
        line = json.dumps({"type": kind, **fields}, allow_nan=False).encode() + b"\n"
        if len(line) > LINE_BYTES_MAX:
            raise ValueError(f"the message {kind} has {len(line)} bytes, and the worker channel allows "
                             f"{LINE_BYTES_MAX} a line; report fewer values at a time")
        with self._sending:
            self._socket.sendall(line)

    def receive(self) -> Message:
        """Waits for the next message of the executor, and returns it."""
        while b"\n" not in self._unread:
            chunk = self._socket.recv(65536)
            if not chunk:
                raise ConnectionError("the executor has closed the worker channel")
            self._unread += chunk
        line, self._unread = self._unread.split(b"\n", 1)
        message: Message = json.loads(line)
        return message

    def has_message(self, timeout: float | None = 0) -> bool:
        """Waits up to `timeout` seconds (None: forever) for the beginning of a message. Returns whether there is one."""
        return b"\n" in self._unread or bool(select.select([self._socket], [], [], timeout)[0])
