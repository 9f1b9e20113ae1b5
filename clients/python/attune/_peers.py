"""How a rank communicates with the other ranks of its gang."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import typing

from attune import _deadlock
from attune._channel import Channel, Message
from attune._control import Follower, Leader, LostPeer, SlowWait

if typing.TYPE_CHECKING:
    import pathlib

_LEAVE_TIMEOUT_S = 30  # limit for sending rank 0's messages after the end of its script
_ANSWER_TIMEOUT_S = 5  # limit for the executor's answer after rank 0 has ended


class Peers:
    """The messages of one rank to the other ranks, and the waits for them.

    A rank that waits tells the executor after one second (`waiting`), and writes to its log after five seconds. If the
    rank that it waits for has exited, the executor ends the attempt or sends rank 0's last verdict.
    """

    def __init__(self, gang: str, start: Message, channel: Channel) -> None:
        self._gang, self._channel = gang, channel
        self._rank: int = start["rank"]
        self._world_size: int = start["world_size"]
        self._is_on_one_host = start.get("local_world_size", self._world_size) == self._world_size
        self._address: str = start.get("address", "127.0.0.1")
        self._leader: Leader | None = None  # on rank 0
        self._connected_follower: Follower | None = None  # on other ranks
        self._lost_peer: LostPeer | None = None  # on other ranks, after rank 0 has ended: then the executor answers
        self._rendezvous: Message | None = None  # on other ranks: the address of rank 0
        self._listening = threading.RLock()  # on other ranks: held by the thread that reads the channel
        self._thread = threading.main_thread().ident or 0  # the thread that reports
        self._step_messages_received = 0  # messages of rank 0 about steps
        self._detector = _deadlock.Detector()  # on rank 0
        self._last_wait_state: _deadlock.WaitState | None = None  # what this rank waited for at the last check
        self._waits_at: int | None = None  # the step at which this rank waits for others in a report
        self._saves_alone_at: int | None = None  # the step at which rank 0 saves and the others do not

    def open(self) -> None:
        """Starts to listen on rank 0. The executor sends the address to the other ranks."""
        if self._rank == 0 and self._world_size > 1:
            self._leader = Leader(self._gang, self._world_size, self._address)
            self._channel.send("rendezvous", host=self._leader.host, port=self._leader.port)
            atexit.register(self.leave)

    # ---- rank 0

    def broadcast(self, message: Message) -> None:
        """Sends a message to all other ranks, without waiting for them."""
        if self._leader:
            self._leader.broadcast(message)

    def serve(self) -> None:
        """Starts the threads that accept connections and look for deadlocks."""
        if self._leader:
            self._leader.serve()
            _deadlock.call_periodically(self._check_for_deadlock, _deadlock.CHECK_INTERVAL_S)
        elif self._world_size > 1:
            _deadlock.call_periodically(self._report_wait_state, _deadlock.CHECK_INTERVAL_S / 2)

    def leave(self) -> None:
        """Waits until rank 0's messages are sent, if the gang has several hosts.

        On one host this is not necessary, because the executor sends rank 0's last verdict to late ranks.
        """
        if self._leader and not self._is_on_one_host:
            self._leader.finish(_LEAVE_TIMEOUT_S)

    def share(self, folder: pathlib.Path, files: dict[str, int]) -> None:
        """Sends files to the other ranks, which call fetch()."""
        if self._leader:
            self._leader.share(folder, files)

    def request_parts(self, step: int, folder: pathlib.Path) -> None:
        """Asks the other ranks to save their parts of a checkpoint, and waits until all have begun."""
        self.broadcast({"step": step, "save": str(folder)})
        self._wait_for_all(step, "did not call it with every_rank=True yet; every rank has to")

    def wait_for_parts(self, step: int) -> None:
        """Waits until every other rank has saved its part."""
        self._wait_for_all(step, "did not finish its part of the checkpoint yet")

    def _wait_for_all(self, step: int, missing_step: str) -> None:
        if self._leader:
            with self._waiting_at(step):
                self._leader.wait_for_all(SlowWait(
                    lambda ranks: f"rank 0 waits in attune.report() at step {step} for "
                                  f"{_deadlock.text_of_ranks(ranks)}, which {missing_step}",
                    lambda ranks: self._channel.send("waiting", ranks=ranks, step=step)))

    @contextlib.contextmanager
    def saving_alone(self, step: int) -> typing.Iterator[None]:
        """Marks that rank 0 saves and the others do not. A collective in the checkpoint function would be a deadlock."""
        self._thread, self._saves_alone_at = threading.get_ident(), step
        try:
            yield
        finally:
            self._saves_alone_at = None

    @contextlib.contextmanager
    def _waiting_at(self, step: int) -> typing.Iterator[None]:
        self._thread, self._waits_at = threading.get_ident(), step
        try:
            yield
        finally:
            self._waits_at = None

    def _check_for_deadlock(self) -> None:
        """Ends rank 0 if it and other ranks wait for each other."""
        leader = typing.cast(Leader, self._leader)
        waits, saves = self._waits_at, self._saves_alone_at
        others = {rank: _deadlock.WaitState(**message) for rank, message in leader.take_wait_states().items()}
        problem = self._detector.find_deadlock(_deadlock.RankZero(
            _deadlock.wait_state_of(self._thread), leader.step_messages_sent,
            tuple(leader.silent_ranks()) if waits is not None else (),
            step=next((step for step in (waits, saves) if step is not None), 0), saves_alone=saves is not None), others)
        if problem:
            print(f"attune: {problem}", file=sys.stderr, flush=True)
            self._channel.send("error", message=problem)
            os._exit(1)

    # ---- other ranks

    def receive(self, step: int) -> Message:
        """Waits for rank 0's message about this step. If rank 0 has ended, asks the executor instead."""
        wait = SlowWait(lambda _: f"rank {self._rank} waits in attune.report() at step {step} for rank 0, which has not called "
                        "it or still saves a checkpoint. Let every rank call it equally often, or rank 0 alone",
                        lambda ranks: self._channel.send("waiting", ranks=ranks, step=step))
        try:
            if not self._lost_peer:
                with self._waiting_at(step):
                    message = self._follower(wait).receive(step, wait)
                    self._step_messages_received += 1
                    return message
        except LostPeer as error:
            self._lost_peer = error
        action = self._ask_executor(step) if self._is_on_one_host else None
        if not action:
            raise self._lost_peer
        return {"step": step, "action": action}

    def fetch(self, folder: pathlib.Path | None) -> None:
        """Receives the files that rank 0 shares into a new folder, or no files if `folder` is None."""
        self._follower().fetch(folder)

    def send(self, message: Message) -> None:
        """Sends a message to rank 0."""
        self._follower().send(message)

    def _report_wait_state(self) -> None:
        """Tells rank 0 what this rank waits for, if that has not changed since the last check."""
        heard = self._step_messages_received
        state = _deadlock.wait_state_of(self._thread, heard if self._waits_at is not None else None)
        last_state, self._last_wait_state = self._last_wait_state, state
        if not state.waits or state != last_state or not self._listening.acquire(blocking=False):
            return
        try:
            with contextlib.suppress(LostPeer, OSError):
                if follower := self._connect(time.monotonic()):
                    follower.send({"stuck": state.message()})
        finally:
            self._listening.release()

    def _ask_executor(self, step: int) -> str | None:
        """Returns the action at this step, if rank 0 has reported it and ended; None if there is no answer."""
        self._channel.send("waiting", ranks=[0], step=step)
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        with self._listening:
            answer = self._next_message("verdict", deadline)
            while answer and answer["step"] != step:
                answer = self._next_message("verdict", deadline)
        return answer["action"] if answer else None

    def _follower(self, wait: SlowWait | None = None) -> Follower:
        with self._listening:
            while True:
                timeout = wait.timeout() if wait else None
                if follower := self._connect(None if timeout is None else time.monotonic() + timeout):
                    return follower
                if wait:
                    wait.tick([0])

    def _connect(self, deadline: float | None) -> Follower | None:
        """Returns the connection to rank 0; None if the executor has not sent the address by the deadline."""
        if not self._connected_follower:
            self._rendezvous = self._rendezvous or self._next_message("rendezvous", deadline)
            if self._rendezvous:
                self._connected_follower = Follower(self._rendezvous["host"], self._rendezvous["port"], self._gang, self._rank)
        return self._connected_follower

    def _next_message(self, kind: str, deadline: float | None) -> Message | None:
        """Returns the executor's next message of this kind; None if none arrives by the deadline. Drops other messages."""
        while self._channel.has_message(None if deadline is None else max(deadline - time.monotonic(), 0)):
            message = self._channel.receive()
            if message["type"] == kind:
                return message
        return None
