"""The other ranks of a gang, as one rank deals with them."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import typing

from attune._channel import Channel, Message
from attune._control import LOG_AFTER_S, Follower, Leader, LostPeer, Wait

if typing.TYPE_CHECKING:
    import pathlib

_FAREWELL_S = 30  # at most, from the end of rank 0's script until all of its words are sent
_ANSWER_S = 5  # until the executor has said how rank 0 has left


class Peers:
    """What a rank tells the others, and what it waits for.

    While a rank waits, it says so to the executor after a second (`waiting`) and in its log after five. If
    the rank that it waits for has exited, the executor ends the attempt, or says how rank 0 has left.
    """

    def __init__(self, gang: str, start: Message, channel: Channel) -> None:
        self._gang, self._channel = gang, channel
        self._rank: int = start["rank"]
        self._world_size: int = start["world_size"]
        self._is_on_one_host = start.get("local_world_size", self._world_size) == self._world_size
        self._address: str = start.get("address", "127.0.0.1")
        self._leader: Leader | None = None  # of rank 0
        self._connected: Follower | None = None  # of the others
        self._lost: LostPeer | None = None  # of the others, once rank 0 has left: the executor answers from then on

    def open(self) -> None:
        """Lets rank 0 listen; the executor tells the others where."""
        if self._rank == 0 and self._world_size > 1:
            self._leader = Leader(self._gang, self._world_size, self._address)
            self._channel.send("rendezvous", host=self._leader.host, port=self._leader.port)
            atexit.register(self.leave)

    # ---- for rank 0

    def tell(self, message: Message) -> None:
        """To all others, without waiting for them."""
        if self._leader:
            self._leader.tell(message)

    def serve(self) -> None:
        """Lets the others connect from now on, whatever this rank does."""
        if self._leader:
            self._leader.serve()

    def leave(self) -> None:
        """Waits until the words of rank 0 are sent, in a gang over several hosts.

        On one host the executor tells late ranks what rank 0 has said; it does not know those of other hosts.
        """
        if self._leader and not self._is_on_one_host:
            self._leader.finish(_FAREWELL_S)

    def share(self, folder: pathlib.Path, files: dict[str, int]) -> None:
        """Sends files to the ranks that want them; they call fetch()."""
        if self._leader:
            self._leader.share(folder, files)

    def call_for_parts(self, step: int, folder: pathlib.Path) -> None:
        """Calls the others to save their parts of a checkpoint; waits until all have begun."""
        self.tell({"step": step, "save": str(folder)})
        self._await_all(step, "did not call it with every_rank=True yet; every rank has to")

    def await_parts(self, step: int) -> None:
        """Waits until every other rank has saved its part."""
        self._await_all(step, "did not finish its part of the checkpoint yet")

    def _await_all(self, step: int, what: str) -> None:
        if self._leader:
            self._leader.hear_all(Wait(
                lambda ranks: f"rank 0 waits in attune.report() at step {step} for {_listed(ranks)}, which {what}",
                lambda ranks: self._channel.send("waiting", ranks=ranks, step=step)))

    @contextlib.contextmanager
    def watching_lone_save(self, step: int) -> typing.Iterator[None]:
        """Ends this rank if it calls a collective while the others wait for it: nobody would ever answer."""
        leader, before = self._leader, _collectives()
        if not leader or before is None:
            yield
            return

        def look() -> None:
            waiting = leader.waiting_at(step)
            if waiting and _collectives() != before:
                message = (f"the checkpoint function of rank 0 calls a collective of torch.distributed at step {step}, "
                           f"and {_listed(waiting)} cannot answer while waiting for rank 0 in attune.report(); pass "
                           "every_rank=True, so that every rank calls the function")
                print(f"attune: {message}", file=sys.stderr, flush=True)
                self._channel.send("error", message=message)
                os._exit(1)

        watch = threading.Timer(LOG_AFTER_S, look)
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    # ---- for the others

    def hear(self, step: int) -> Message:
        """What rank 0 says at this step; if it has left, what the executor knows of it."""
        def say(ranks: list[int]) -> None:
            self._channel.send("waiting", ranks=ranks, step=step)
            if self._connected:
                self._connected.say({"waits_at": step})

        wait = Wait(lambda _: f"rank {self._rank} waits in attune.report() at step {step} for rank 0, which has not called "
                    "it or still saves a checkpoint. Let every rank call it equally often, or rank 0 alone", say)
        try:
            if not self._lost:
                return self._follower(wait).hear(step, wait)
        except LostPeer as lost:
            self._lost = lost
        action = self._ask_executor(step) if self._is_on_one_host else None
        if not action:
            raise typing.cast(LostPeer, self._lost)
        return {"step": step, "action": action}

    def fetch(self, folder: pathlib.Path | None) -> None:
        """Takes the files that rank 0 shares into a new folder; none if there is no folder."""
        self._follower().fetch(folder)

    def say(self, message: Message) -> None:
        """To rank 0, which waits for it."""
        self._follower().say(message)

    def _ask_executor(self, step: int) -> str | None:
        """The action at this step, if rank 0 has reported it and left; None if there is no answer."""
        self._channel.send("waiting", ranks=[0], step=step)
        until = time.monotonic() + _ANSWER_S
        answer = self._next("verdict", until)
        while answer and answer["step"] != step:
            answer = self._next("verdict", until)
        return answer["action"] if answer else None

    def _follower(self, wait: Wait | None = None) -> Follower:
        if not self._connected:
            message = None
            while not message:
                timeout = wait.timeout() if wait else None
                message = self._next("rendezvous", None if timeout is None else time.monotonic() + timeout)
                if wait:
                    wait.tick([0])
            self._connected = Follower(message["host"], message["port"], self._gang, self._rank)
        return self._connected

    def _next(self, kind: str, until: float | None) -> Message | None:
        """The executor's next message of this kind, or None if none comes until then; without `until`, waits."""
        while self._channel.has_message(None if until is None else max(until - time.monotonic(), 0)):
            message = self._channel.receive()
            if message["type"] == kind:
                return message
        return None


def _collectives() -> int | None:
    """How many collectives this process has called in torch's default group; None if that is not known."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed and distributed.is_available() and distributed.is_initialized():
            count: int = distributed.group.WORLD._get_sequence_number_for_group()
            return count
    except (AttributeError, RuntimeError):
        pass
    return None


def _listed(ranks: list[int]) -> str:
    """Ranks as text: "rank 1", "ranks 1 and 2"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
