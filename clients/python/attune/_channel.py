"""A rank's end of the worker channel: lines of JSON over an inherited socket."""

from __future__ import annotations

import json
import select
import socket
import threading
import typing

Message = typing.Dict[str, typing.Any]  # a line; its member `type` is text

LINE_BYTES_MAX = 1 << 20
ERROR_CHARACTERS_MAX = 4096  # at most 16 KiB in UTF-8, which is what an executor keeps


class Channel:
    """Sends from any thread; receives on one."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._socket.setblocking(True)
        self._unread = b""
        self._sending = threading.Lock()

    def send(self, kind: str, **fields: typing.Any) -> None:
        line = json.dumps({"type": kind, **fields}, allow_nan=False).encode() + b"\n"
        if len(line) > LINE_BYTES_MAX:
            raise ValueError(f"a {kind} of {len(line)} bytes; the worker channel takes lines of "
                             f"{LINE_BYTES_MAX}, so report less at a time")
        with self._sending:
            self._socket.sendall(line)

    def receive(self) -> Message:
        """The next message of the executor's; waits for it."""
        while b"\n" not in self._unread:
            chunk = self._socket.recv(65536)
            if not chunk:
                raise ConnectionError("the executor has closed the worker channel")
            self._unread += chunk
        line, self._unread = self._unread.split(b"\n", 1)
        message: Message = json.loads(line)
        return message

    def has_message(self, timeout: float | None = 0) -> bool:
        """Whether receive() returns at once, or nearly so, within `timeout` seconds; None: wait for it."""
        return b"\n" in self._unread or bool(select.select([self._socket], [], [], timeout)[0])
