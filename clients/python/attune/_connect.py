"""Connects a process to the executor of its trial (docs/reference/worker-channel.md)."""

from __future__ import annotations

import os
import socket
import stat
import sys

from attune._channel import Channel, Message

_ANSWER_S = 60  # how long the executor may take to answer `join` and `claim`


def connect() -> tuple[Message, Channel, bool] | None:
    """Returns the start message, the channel, and whether this process must still claim its rank; None without a trial.

    A process that the executor started inherits the channel. Its child processes connect to the executor's socket
    instead, and must claim the rank.

    Raises RuntimeError if this process belongs to a trial and cannot reach the executor.
    """
    descriptor = os.environ.pop("ATTUNE_CHANNEL_FD", None)
    path = os.environ.get("ATTUNE_CHANNEL")
    parent = os.environ.get("ATTUNE_CHANNEL_PARENT")
    if descriptor is not None and parent in (None, str(os.getppid())):
        if _is_socket(descriptor):
            channel = Channel(int(descriptor))
            return channel.receive(), channel, False
        if not path:
            raise RuntimeError(
                f"the channel to the executor is lost: ATTUNE_CHANNEL_FD is {descriptor}, which is not a socket in this "
                "process, because a program between the executor and this one has closed it. Let the sweep file's command "
                "start this script directly, or pass the descriptor on (subprocess.run(…, pass_fds=[…]))")
    if path:
        channel = _connect_to(path)
        return _join(channel), channel, True
    if descriptor is None and "ATTUNE_TRIAL" in os.environ:
        print("attune: this process belongs to a trial but has no channel to the executor, so its reports are only "
              "printed. Report from the process that the executor has started", file=sys.stderr, flush=True)
    return None


def claim(channel: Channel) -> None:
    """Claims the rank for this process. Raises RuntimeError if another process has it, or if no answer arrives."""
    channel.send("claim")
    _receive_answer(channel)


def ranks_from_environment() -> Message:
    """Returns rank and world size of this process, from the environment of its launcher or from torch.distributed."""
    def variable(name: str, otherwise: int) -> int:
        return int(os.environ.get(name, otherwise))

    world_size = variable("WORLD_SIZE", 1)
    distributed = sys.modules.get("torch.distributed")
    if distributed and distributed.is_available() and distributed.is_initialized():
        if distributed.get_world_size() != world_size:  # for example, in a child of torch.multiprocessing.spawn
            rank, world_size = distributed.get_rank(), distributed.get_world_size()
            return {"rank": rank, "world_size": world_size, "local_rank": rank, "local_world_size": world_size}
    return {"rank": variable("RANK", 0), "world_size": world_size, "local_rank": variable("LOCAL_RANK", 0),
            "local_world_size": variable("LOCAL_WORLD_SIZE", world_size)}


def _join(channel: Channel) -> Message:
    channel.send("join", **ranks_from_environment())
    return _receive_answer(channel)


def _receive_answer(channel: Channel) -> Message:
    """Returns the executor's answer. Raises RuntimeError if it refuses, or does not answer in time."""
    if not channel.has_message(_ANSWER_S):
        raise RuntimeError(f"the executor has not answered this process for {_ANSWER_S} s; read the executor's log, and "
                           "check that attune-hpo here and the executor have the same release")
    answer = channel.receive()
    if answer["type"] == "refused":
        raise RuntimeError(answer["message"])
    return answer


def _connect_to(path: str) -> Channel:
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connected.connect(path)
    except OSError as error:
        connected.close()
        raise RuntimeError(
            f"the channel to the executor is lost: {path}: {error.strerror}. In a container, mount the "
            f"folder {os.path.dirname(path)}; if the trial has ended, end this process") from error
    return Channel(connected.detach())


def _is_socket(descriptor: str) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(int(descriptor)).st_mode)
    except (OSError, ValueError):
        return False
