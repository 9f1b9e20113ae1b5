"""The trial of this process: its attributes, its reports and its checkpoints."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import types
import typing

from attune import _checkpoint, _connect, _metrics
from attune._channel import ERROR_CHARACTERS_MAX, Channel, Message
from attune._control import LostPeer
from attune._peers import Peers

PUBLIC = ("attempt", "by_hand", "checkpoint", "checkpoint_dir", "config", "cpus", "device",
          "devices", "local_rank", "local_world_size", "max_step", "rank", "seed", "step", "sweep", "time",
          "trial", "world_size")

_PROTOCOL = 1
_SILENCE_S_MAX = 7 * 24 * 3600
_LONG_SILENCE_S = 30 * 60  # allowed before training begins and while a checkpoint is written
_PROGRESS_INTERVAL_S = 1.0
_SAVE_INTERVAL_S = 60  # at least, between checkpoints that are not due at a milestone or by `checkpoint.every`
_SAVE_SHARE = 20  # these checkpoints take at most 1/20 of the time


_Number = typing.Union[typing.SupportsFloat, typing.SupportsIndex]
_Metrics = typing.Mapping[str, _Number]


def short_seed(seed: int) -> int:
    """Returns a seed below 2^31. numpy accepts 32 bits, so a step or a rank can be added."""
    return seed % 2**31


class TrialEnded(SystemExit):
    """The trial is over or paused after the step that was just reported. `action` says which.

    It is a SystemExit with status 0. A program may catch it to clean up, and must not train any further.
    """

    def __init__(self, action: str) -> None:
        super().__init__(0)
        self.action = action  # "stop" or "pause"


class Config(typing.Dict[str, typing.Any]):
    """The trial's parameters by name, in the order of the sweep file."""

    def __missing__(self, name: str) -> typing.NoReturn:
        raise KeyError(f"{name} is not a parameter of this trial (it has {', '.join(self) or 'none'}); name "
                       "it in the sweep file, or give it a default in attune.init()")

    def add_defaults(self, defaults: typing.Mapping[str, typing.Any]) -> None:
        """Adds parameters that the trial does not have. Raises ValueError if `defaults` is not a mapping."""
        if not hasattr(defaults, "items"):
            raise ValueError(f"defaults is {defaults!r} and must map names to values, as in {{\"lr\": 0.1}}")
        for name, value in defaults.items():
            self.setdefault(name, value)


class Trial:
    """One rank of a trial, from the `start` message to its end."""

    def __init__(self, start: Message, channel: Channel | None, must_claim: bool = False) -> None:
        self._process, self._must_claim = os.getpid(), must_claim
        self.by_hand = channel is None
        self.sweep: str = start.get("sweep", "")
        self.trial: int = start.get("trial", 0)
        self.attempt: int = start.get("attempt", 1)
        self.rank, self.world_size = int(start["rank"]), int(start["world_size"])
        self.local_rank: int = start.get("local_rank", self.rank)
        self.local_world_size: int = start.get("local_world_size", self.world_size)
        self.device: str = start.get("device", "cpu")
        self.cpus: int = start.get("cpus", 1)
        self.devices: list[str] = start.get("devices", [self.device])
        self.seed = short_seed(start.get("seed", 0))
        self.config = Config(start.get("config", {}))
        self.max_step: int = start.get("max_step", 0)
        self.checkpoint_dir: str | None = start.get("checkpoint_dir") or None
        self._resume: Message = start.get("resume", {})  # empty: the trial starts from the beginning
        self.step: int = self._resume.get("step", 0)
        self.time: int = self.step
        self._time_attr: str = start.get("time_attr", "")
        self._sweep_config = dict(self.config)
        self._checked: pathlib.Path | None = None
        self._milestone: int = start.get("milestone", 0)
        self._every: int = start.get("checkpoint_every", 0)
        self._channel = typing.cast(Channel, channel)  # None by hand, when nothing is sent
        self._began = self._saved = time.monotonic()
        self._save_took = 0.0
        self._progressed = -math.inf
        self._is_refused = self._has_sent_error = False
        self._yielding = self._has_warned_of_unit = False
        self._peers = Peers(self._gang, start, self._channel)

    def join(self) -> None:
        """Connects to the other ranks. Call it once, before anything else, if there is an executor."""
        if self.rank == 0 and self.checkpoint_dir:
            _checkpoint.remove_unfinished(self.checkpoint_dir, self.attempt)
        self._peers.open()
        if self._resume and self.local_world_size < self.world_size:
            self._share_checkpoint()
        self._peers.serve()
        if self._resume and self._time_attr:
            self.step = _checkpoint.read_step(self._resume)
        self.heartbeat(_LONG_SILENCE_S)  # last, because each later message ends the announced silence

    def is_inherited_by_fork(self) -> bool:
        """Returns whether this process inherited the object in a fork, and can join by itself."""
        return self._process != os.getpid() and "ATTUNE_CHANNEL" in os.environ

    def _claim_rank(self) -> None:
        """Claims the rank for this process and joins the gang, if it must still do so."""
        if self._must_claim:
            _connect.claim(self._channel)
            self._must_claim = False
            self.join()

    def _can_send_signs_of_life(self) -> bool:
        """Claims the rank, if necessary. Returns False by hand, or if another process has the rank."""
        if self._is_refused or self.by_hand:
            return False
        try:
            self._claim_rank()
        except RuntimeError:
            self._is_refused = True
        return not self._is_refused

    def _share_checkpoint(self) -> None:
        """Copies the checkpoint from rank 0's host to the hosts that do not have it."""
        self.heartbeat(_LONG_SILENCE_S)
        folder = pathlib.Path(self._resume["path"])
        if self.rank == 0:
            self._peers.share(folder, _checkpoint.file_sizes(_checkpoint.verify(self._resume)))
        elif _checkpoint.is_present(self._resume):
            self._peers.fetch(None)
        else:
            directory = typing.cast(str, self.checkpoint_dir)
            copy = pathlib.Path(directory) / f".attempt-{self.attempt}-resumed-{self.rank - self.local_rank}"
            self._resume = {**self._resume, "path": str(copy)}
            if self.local_rank == 0:
                _checkpoint.remove_unfinished(directory, self.attempt)
                copy.mkdir(parents=True)
                atexit.register(shutil.rmtree, copy, ignore_errors=True)
            self._peers.fetch(copy if self.local_rank == 0 else None)

    @property
    def _gang(self) -> str:
        return f"{self.sweep}/{self.trial}.{self.attempt}"

    @property
    def checkpoint(self) -> pathlib.Path | None:
        if self._resume and not self._checked:
            if self.local_world_size < self.world_size:
                self._claim_rank()  # the checkpoint may have to come from another host
            if not self._must_claim:
                self.heartbeat(_LONG_SILENCE_S)
            self._checked = _checkpoint.verify(self._resume)
        return self._checked

    # ---- messages between reports

    def heartbeat(self, silence: float) -> None:
        try:
            is_allowed = 0 <= silence <= _SILENCE_S_MAX
        except TypeError:
            is_allowed = False
        if not is_allowed:
            raise ValueError(f"silence is {silence!r} and must be 0 to {_SILENCE_S_MAX} seconds")
        if self._can_send_signs_of_life():
            self._channel.send("heartbeat", silence_ms=int(silence * 1000))

    def progress(self) -> None:
        now = time.monotonic()
        if now - self._progressed >= _PROGRESS_INTERVAL_S:
            self._send_progress(now, self.step)

    def _send_progress(self, now: float, step: int) -> None:
        self._progressed = now
        if self._can_send_signs_of_life():
            self._channel.send("progress", step=step)

    def error(self, message: str, lost_peer: bool, disk_full: bool) -> None:
        """Tells the executor why this rank fails. A process that has not claimed the rank may call it, too."""
        if self._channel:
            self._has_sent_error = True
            self._channel.send("error", message=_to_valid_text(message), lost_peer=lost_peer, disk_full=disk_full)

    def leave(self, message: str) -> None:
        """Tells the executor that this program ends, and why if that is known, before connections to other ranks close."""
        if self._channel and not self._has_sent_error and (message or not self._must_claim):
            self._channel.send("leaving", message=_to_valid_text(message))

    def is_disk_full(self, error: BaseException) -> bool:
        """Returns whether a full disk caused an exception, or the disk for checkpoints is full now."""
        if any(isinstance(each, _checkpoint.DiskFull) for each in _checkpoint.exception_chain(error)):
            return True
        return bool(self.checkpoint_dir and not _checkpoint.has_free_space(self.checkpoint_dir))

    def log(self, metrics: _Metrics, step: _Number) -> None:
        at = _metrics.to_logged_step(step)
        values = _metrics.to_floats(metrics)
        if self.rank != 0 or not values:
            return
        if self.by_hand:
            print(f"at step {at:.12g}  {_metrics.to_text(values)}", flush=True)
        else:
            self._claim_rank()
            self._channel.send("log", step=at, metrics=_metrics.to_json(values))

    # ---- reports

    def report(self, metrics: _Metrics, step: typing.SupportsIndex | None,
               checkpoint: _checkpoint.Save | str | os.PathLike[str] | None, every_rank: bool) -> None:
        step = self.step + 1 if step is None else _metrics.to_step(step, self.step)
        values = _metrics.to_floats(metrics)
        save = _checkpoint.make_save_function(checkpoint, self.checkpoint_dir)
        if self.by_hand:
            if self.rank == 0:
                print(f"step {step}  {_metrics.to_text(values)}", flush=True)
            self.step = self.time = step
            return
        self._claim_rank()
        if self.rank == 0:
            self._report_as_rank_zero(values, step, save, every_rank)
        else:
            self._report_as_other_rank(step, save, every_rank)

    def _report_as_rank_zero(self, metrics: dict[str, float], step: int, save: _checkpoint.Save | None,
                             every_rank: bool) -> None:
        now = self._time_of(metrics, step)
        is_new_time = now > self.time  # otherwise, the time is still that of the last report
        if not is_new_time and not self._has_warned_of_unit:
            self._has_warned_of_unit = True
            print(f"attune: the report of step {step} is not kept, because {self._time_attr}, rounded down, is still "
                  f"{self.time}. The same is true for later reports until it grows by 1",
                  file=sys.stderr, flush=True)
        waits = is_new_time and self._must_wait(now)
        if save and self.checkpoint_dir and is_new_time and (waits or self._must_save(now)):
            begins = time.monotonic()
            self._save(self.checkpoint_dir, step, now, save, every_rank)
            self._saved = time.monotonic()
            self._save_took = self._saved - begins
        elif save and every_rank:
            self._peers.broadcast({"step": step, "save": None})
        if is_new_time:
            self._channel.send("report", step=now, metrics=_metrics.to_json(metrics),
                               seconds=time.monotonic() - self._began, waits=waits)
        self.step, self.time = step, now
        self._send_progress(time.monotonic(), step)
        action = self._await_verdict(now) if waits else "continue"
        self._peers.broadcast({"step": step, "action": action, "time": now})
        if action != "continue":
            if threading.current_thread() is not threading.main_thread():
                self._channel.send("done")  # the exception ends only this thread, so the executor must end the process
            raise TrialEnded(action)

    def _must_wait(self, now: int) -> bool:
        while self._channel.has_message():
            self._handle_message(self._channel.receive())
        limit = self._milestone or self.max_step
        return self._yielding or (limit > 0 and now >= limit)

    def _must_save(self, now: int) -> bool:
        if self._every > 0:
            return now // self._every > self.time // self._every
        if not self._milestone and not self.max_step:
            return True  # any report may be the last
        since = time.monotonic() - self._saved
        return since >= max(_SAVE_INTERVAL_S, _SAVE_SHARE * self._save_took)

    def _time_of(self, metrics: dict[str, float], step: int) -> int:
        """Returns the time of a report: its metric `time_attr`, rounded down; without `time_attr`, its step."""
        if not self._time_attr:
            return step
        name, value = self._time_attr, metrics.get(self._time_attr)
        metric = f"metric {name!r}, the sweep's time_attr,"
        if value is None:
            raise ValueError(f"{metric} is not in the report, which has {', '.join(metrics) or 'no metrics'}; report it")
        if not 0 <= value <= _metrics.STEP_MAX:
            raise ValueError(f"{metric} is {value!r} and must be from 0 to {_metrics.STEP_MAX}")
        if int(value) < self.time:
            raise ValueError(f"{metric} is {value!r} after {self.time}, and must not decrease; after a resume, continue "
                             "from attune.time")
        return int(value)

    def _report_as_other_rank(self, step: int, save: _checkpoint.Save | None, every_rank: bool) -> None:
        self._send_progress(time.monotonic(), step)
        message = self._peers.receive(step)
        if "save" in message:
            if not (save and every_rank):
                raise ValueError(f"rank 0 calls attune.report() at step {step} with every_rank=True and rank {self.rank} "
                                 "does not; call it with checkpoint=… and every_rank=True on every rank, or on none")
            self._save_part(save, message["save"])
            message = self._peers.receive(step)
        elif save and every_rank and "time" in message:
            raise ValueError(f"rank {self.rank} calls attune.report() at step {step} with every_rank=True and rank 0 does "
                             "not; call it with checkpoint=… and every_rank=True on every rank, or on none")
        self.step, self.time = step, message.get("time", self.time)
        if message["action"] != "continue":
            raise TrialEnded(message["action"])

    def _handle_message(self, message: Message) -> None:
        if message["type"] == "yield":
            self._yielding = True

    def _await_verdict(self, step: int) -> str:
        while True:
            message = self._channel.receive()
            self._handle_message(message)
            if message["type"] == "verdict" and message["step"] == step:
                self._milestone, self._yielding = message.get("milestone", 0), False
                action: str = message["action"]
                return action

    # ---- checkpoints

    def _save(self, directory: str, step: int, now: int, save: _checkpoint.Save, every_rank: bool) -> None:
        self.heartbeat(_LONG_SILENCE_S)
        with _disk_full_on_error(directory):
            partial = _checkpoint.make_partial_folder(directory, self.attempt)
        try:
            with _disk_full_on_error(partial):  # checks the disk before the incomplete files are deleted
                if every_rank and self.world_size > 1:
                    self._peers.request_parts(step, partial)
                    self.heartbeat(_LONG_SILENCE_S)
                    save(partial)
                    self._peers.wait_for_parts(step)
                else:
                    with self._peers.saving_alone(step):
                        save(partial)
                path, digest, size = _checkpoint.finish(partial, directory, step, now, self.attempt,
                                                        self.world_size, self._sweep_config)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        self._channel.send("checkpoint", step=now, path=str(path), digest=digest, bytes=size)

    def _save_part(self, save: _checkpoint.Save, folder: str | None) -> None:
        if folder is None:
            return
        self._peers.send({"saving": True})
        self.heartbeat(_LONG_SILENCE_S)
        if os.path.isdir(folder):
            with _disk_full_on_error(folder):
                save(pathlib.Path(folder))
        else:  # rank 0 is on another host, and this rank may take part in its collectives but must write nothing
            with tempfile.TemporaryDirectory() as folder_of_rank:
                save(pathlib.Path(folder_of_rank))
                if written := os.listdir(folder_of_rank):
                    raise _checkpoint.CheckpointError(
                        f"{folder}: this host does not have this folder of rank 0, so it cannot save "
                        f"{', '.join(sorted(written))}; use a data folder that all hosts share, or write files on "
                        "rank 0's host only")
        self._peers.send({"saved": True})


@contextlib.contextmanager
def _disk_full_on_error(folder: str | os.PathLike[str]) -> typing.Iterator[None]:
    """Turns exceptions that a full disk causes into DiskFull."""
    try:
        yield
    except (_checkpoint.DiskFull, LostPeer):
        raise
    except Exception as error:
        if not _checkpoint.is_disk_full(error, folder):
            raise
        raise _checkpoint.DiskFull(f"{folder}: a disk or a quota of this host is full ({error}); free some space") from error


def is_lost_peer(error: BaseException) -> bool:
    """Returns whether an exception means that another rank has ended, and not that this rank is faulty."""
    if isinstance(error, LostPeer):
        return True
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    if names & {"torch.distributed.DistBackendError", "torch.distributed.DistNetworkError",
                "torch.distributed.DistStoreError"}:
        return True
    # Gloo raises RuntimeErrors, whose text names the source file.
    return isinstance(error, RuntimeError) and "gloo/transport/" in str(error)


def _report_exceptions(trial: Trial) -> None:
    """Sends uncaught exceptions to the executor before the process tears anything down, then calls the old hook."""
    previous, process = sys.excepthook, os.getpid()

    def hook(kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None) -> None:
        if os.getpid() == process:
            try:
                lost_peer = is_lost_peer(error)
                trial.error(f"{kind.__name__}: {error}", lost_peer, not lost_peer and trial.is_disk_full(error))
            except OSError:
                pass  # the executor has closed the channel; the traceback still goes to the log
        previous(kind, error, traceback)

    sys.excepthook = hook


def _report_exit(trial: Trial) -> None:
    """Tells the executor that this program ends, before connections to other ranks close.

    sys.excepthook does not see SystemExit. So sys.exit() is replaced by a function that records the text of its argument.
    If the program catches this SystemExit, the text does no harm: it is used only if the exit status is not 0.
    """
    previous, process, text = sys.exit, os.getpid(), ""

    def leave(status: typing.Any = None, /) -> typing.NoReturn:
        nonlocal text
        if threading.current_thread() is threading.main_thread():
            text = "" if status is None or isinstance(status, int) else f"SystemExit: {status}"
        previous(status)

    def report_exit() -> None:
        if os.getpid() == process:
            with contextlib.suppress(OSError):  # the executor has closed the channel
                trial.leave(text)

    setattr(sys, "exit", leave)  # a rank has one trial
    # Before functions of atexit, which may end process groups; not every Python has it.
    getattr(threading, "_register_atexit", atexit.register)(report_exit)


def _to_valid_text(message: str) -> str:
    """Shortens a text, and replaces lone surrogates, which occur in file names that are not UTF-8."""
    return message.encode("utf-8", "replace").decode()[:ERROR_CHARACTERS_MAX]


def _count_cpus() -> int:
    """Returns how many CPUs this process may use. On macOS, which does not tell it, these are all CPUs."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_by_hand() -> Message:
    """Returns a start message for a gang of one, or for the ranks that torchrun has started."""
    start = _connect.ranks_from_environment()
    return {**start, "cpus": max(1, _count_cpus() // start["local_world_size"])}


def _join_trial() -> Trial:
    connection = _connect.connect()
    if connection is None:
        return Trial(_start_by_hand(), None)
    start, channel, must_claim = connection
    if start.get("type") != "start" or start.get("protocol") != _PROTOCOL:
        raise RuntimeError(f"the executor speaks protocol {start.get('protocol')} of the worker channel "
                           f"and this package {_PROTOCOL}; install the same release as the executor")
    trial = Trial(start, channel, must_claim)
    _report_exceptions(trial)
    _report_exit(trial)
    if not must_claim:
        trial.join()
    return trial


_trial: Trial | None = None
_making = threading.Lock()


def current() -> Trial:
    """Returns this process's trial. The first call joins it."""
    global _trial
    with _making:
        if _trial is None or _trial.is_inherited_by_fork():
            _trial = _join_trial()
        return _trial
