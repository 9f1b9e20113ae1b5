"""Finds ranks that wait for each other: one in attune.report(), the other in a collective of torch.distributed."""

from __future__ import annotations

import dataclasses
import sys
import threading
import typing
import zlib

from attune._channel import Message

# Rank 0 checks in this interval. Other ranks report twice as often, so that each check has a new state of each rank.
CHECK_INTERVAL_S = 1.0
_CHECKS = 5  # a deadlock is certain if this number of checks in a row finds the same one

# Each of these returns only after every rank of the group has called it.
_OPERATIONS = frozenset((
    "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
    "monitored_barrier", "reduce_scatter", "reduce_scatter_tensor"))
# In a group of two ranks, these do the same, and both ranks count them.
_OPERATIONS_OF_TWO = frozenset(("broadcast", "gather", "recv", "reduce", "scatter", "send"))
_MODULE = "torch.distributed.distributed_c10d"


@dataclasses.dataclass(frozen=True)
class WaitState:
    """What a rank waits for, as far as it is known."""

    counts: dict[str, int]  # group of torch.distributed → how many collectives this rank has called in it
    operation: str = ""  # the collective that the rank is in; empty: none
    group: str = ""  # the group of this collective
    heard: int | None = None  # how many messages of rank 0 it has received, if it waits for the next one

    @property
    def waits(self) -> bool:
        return bool(self.operation) or self.heard is not None

    def message(self) -> Message:
        return dataclasses.asdict(self)

    def is_in_collective_without(self, other: WaitState) -> bool:
        """Returns whether this rank is in a collective that the other rank has not called yet."""
        return bool(self.operation) and self.group in other.counts and self.counts[self.group] > other.counts[self.group]

    def is_in_another_collective_than(self, other: WaitState) -> bool:
        """Returns whether both ranks are at the same count of the same group, but in different collectives."""
        return ({self.operation, other.operation} <= _OPERATIONS and self.group == other.group and
                self.operation != other.operation and self.counts[self.group] == other.counts[self.group])


def wait_state_of(thread: int, heard: int | None = None) -> WaitState:
    """Returns what this process waits for. `thread` is the thread that trains and reports."""
    counts: dict[str, int] = {}
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed and distributed.is_available() and distributed.is_initialized():
            frame = sys._current_frames().get(thread)
            groups = list(distributed.distributed_c10d._world.pg_names)
            counts = {_name_of_group(distributed, each): each._get_sequence_number_for_group() for each in groups}
            if frame and frame.f_globals.get("__name__") == _MODULE:
                group, operation = frame.f_locals.get("group") or distributed.group.WORLD, frame.f_code.co_name
                is_of_two = len(distributed.get_process_group_ranks(group)) == 2
                if operation in _OPERATIONS or is_of_two and operation in _OPERATIONS_OF_TWO:
                    return WaitState(counts, operation, _name_of_group(distributed, group), heard)
    except (AttributeError, KeyError, RuntimeError, ValueError):
        return WaitState({}, heard=heard)  # this version of torch, or the backend, lacks these functions
    return WaitState(counts, heard=heard)


def _name_of_group(distributed: typing.Any, group: typing.Any) -> str:
    """Returns a name for a group that is the same on all of its ranks."""
    ranks = distributed.get_process_group_ranks(group)
    return f"{group.group_name}/{zlib.crc32(repr(ranks).encode())}"


@dataclasses.dataclass(frozen=True)
class RankZero:
    """What rank 0 waits for, and the state of its report."""

    state: WaitState
    step_messages_sent: int  # how many messages about steps it has sent to the others
    missing: tuple[int, ...] = ()  # the ranks that its report waits for
    step: int = 0  # the step of its report
    saves_alone: bool = False  # whether it is in the checkpoint function, which the others do not call

    def describe_deadlock(self, rank: int, other: WaitState) -> str:
        """Returns why rank 0 and `rank` wait for each other, with {ranks} in place of the rank; empty if they do not."""
        own_state = self.state
        waits_for_message = other.heard == self.step_messages_sent
        in_call = f"in torch.distributed.{own_state.operation}() for {{ranks}}"
        place = f"torch.distributed.{other.operation}()" if other.operation else "attune.report()"
        where = f"where {place} waits for rank 0"
        if self.saves_alone and own_state.operation:
            needs_zero = waits_for_message or other.is_in_collective_without(own_state)
            is_deadlock = own_state.is_in_collective_without(other) and needs_zero
            if not is_deadlock and not own_state.is_in_another_collective_than(other):
                return ""
            return (f"the checkpoint function of rank 0 waits {in_call} at step {self.step}, {where}; call attune.report() "
                    "with every_rank=True on every rank, so that every rank calls the function")
        if waits_for_message and own_state.is_in_collective_without(other):
            return (f"rank 0 waits {in_call}, {where}; let every rank call attune.report() equally often and at the same "
                    "place among its collectives, or rank 0 alone")
        if rank in self.missing and other.is_in_collective_without(own_state):
            return (f"rank 0 waits in attune.report() with every_rank=True at step {self.step} for {{ranks}}, {where}; "
                    "call attune.report() with every_rank=True on every rank")
        return ""


class Detector:
    """Decides on rank 0 whether it and other ranks wait for each other."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[str, WaitState, WaitState]] = {}  # by rank: what the last check has found
        self._checks: dict[int, int] = {}  # by rank: how many checks in a row have found it

    def find_deadlock(self, zero: RankZero, others: dict[int, WaitState]) -> str | None:
        """Checks what each rank waits for now. Returns the error message if a deadlock is certain."""
        reasons = {rank: zero.describe_deadlock(rank, other) for rank, other in others.items()}
        found = {rank: (reason, zero.state, others[rank]) for rank, reason in reasons.items() if reason}
        self._checks = {rank: self._checks.get(rank, 0) + 1 if self._found.get(rank) == each else 1
                       for rank, each in found.items()}
        self._found = found
        for rank, checks in self._checks.items():
            if checks >= _CHECKS:
                ranks = sorted(each for each in found if reasons[each] == reasons[rank])
                return reasons[rank].format(ranks=text_of_ranks(ranks))
        return None


def text_of_ranks(ranks: typing.Sequence[int]) -> str:
    """Returns ranks as text, such as "rank 1" or "ranks 1 and 2"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def call_periodically(function: typing.Callable[[], None], seconds: float) -> None:
    """Calls a function in the background, with pauses of `seconds`, until the process ends."""
    never = threading.Event()

    def run() -> None:
        while not never.wait(seconds):
            function()

    threading.Thread(target=run, name="attune-watch", daemon=True).start()
