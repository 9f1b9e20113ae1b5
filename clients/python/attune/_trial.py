"""What a rank knows of its trial, and what becomes of its reports."""

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
_LONG_SILENCE_S = 30 * 60  # before the first sign of training, and while a checkpoint is written
_PROGRESS_INTERVAL_S = 1.0
_SAVE_INTERVAL_S = 60  # between two checkpoints that nobody asked for, or longer:
_SAVE_SHARE = 20  # saving takes a twentieth of the time at most


_Number = typing.Union[typing.SupportsFloat, typing.SupportsIndex]
_Metrics = typing.Mapping[str, _Number]


def short_seed(seed: int) -> int:
    """What numpy takes (32 bits), and has room for a step or a rank to be added."""
    return seed % 2**31


class TrialEnded(SystemExit):
    """The trial is over, or paused, at the step that was just reported; `action` says which.

    A SystemExit of status 0: code around the loop may catch it, and has nothing to decide.
    """

    def __init__(self, action: str) -> None:
        super().__init__(0)
        self.action = action  # "stop" or "pause"


class Config(typing.Dict[str, typing.Any]):
    """The trial's parameters by name, in the order of the sweep file."""

    def __missing__(self, name: str) -> typing.NoReturn:
        raise KeyError(f"{name}: no parameter of this trial (it has {', '.join(self) or 'none'}); name "
                       "it in the sweep file, or give it a default in attune.init()")

    def add_defaults(self, defaults: typing.Mapping[str, typing.Any]) -> None:
        """Adds parameters that the trial does not have. Raises ValueError if `defaults` is not a mapping."""
        if not hasattr(defaults, "items"):
            raise ValueError(f"defaults is {defaults!r} and must map names to values, as in {{\"lr\": 0.1}}")
        for name, value in defaults.items():
            self.setdefault(name, value)


class Trial:
    """One rank, from the `start` line on."""

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
        self._resume: Message = start.get("resume", {})  # empty: the trial begins anew
        self.step: int = self._resume.get("step", 0)
        self.time: int = self.step
        self._time_attr: str = start.get("time_attr", "")
        self._sweep_config = dict(self.config)
        self._checked: pathlib.Path | None = None
        self._milestone: int = start.get("milestone", 0)
        self._every: int = start.get("checkpoint_every", 0)
        self._channel = typing.cast(Channel, channel)  # by hand None, and nothing is sent
        self._began = self._saved = time.monotonic()
        self._save_took = 0.0
        self._progressed = -math.inf
        self._is_refused = self._has_sent_error = False
        self._yielding = self._has_warned_of_unit = False
        self._peers = Peers(self._gang, start, self._channel)

    def join(self) -> None:
        """Meets the others. To be called once, before anything else, where there is an executor."""
        if self.rank == 0 and self.checkpoint_dir:
            _checkpoint.remove_unfinished(self.checkpoint_dir, self.attempt)
        self._peers.open()
        if self._resume and self.local_world_size < self.world_size:
            self._share_checkpoint()
        self._peers.serve()
        if self._resume and self._time_attr:
            self.step = _checkpoint.read_step(self._resume)
        self.heartbeat(_LONG_SILENCE_S)  # last: whatever a rank says ends the silence that it announced

    def is_inherited_by_fork(self) -> bool:
        """Whether this process is a fork of the one that has joined, and can join by itself."""
        return self._process != os.getpid() and "ATTUNE_CHANNEL" in os.environ

    def _claim_rank(self) -> None:
        """Claims this rank for this process, before it says something for the first time."""
        if self._must_claim:
            _connect.claim(self._channel)
            self._must_claim = False
            self.join()

    def _can_send_signs_of_life(self) -> bool:
        """As _speak(), for signs of life: those of a process that does not speak for its rank do not matter."""
        if self._is_refused or self.by_hand:
            return False
        try:
            self._claim_rank()
        except RuntimeError:
            self._is_refused = True
        return not self._is_refused

    def _share_checkpoint(self) -> None:
        """To every host of the gang, from rank 0's, where it is not on a folder that they share."""
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

    # ---- said on the way

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
        """Says why this rank fails; before it has claimed the rank, that explains a failure of the rank's process."""
        if self._channel:
            self._has_sent_error = True
            self._channel.send("error", message=_to_valid_text(message), lost_peer=lost_peer, disk_full=disk_full)

    def leave(self, message: str) -> None:
        """Says that this program ends, before its connections to other ranks close, and why if that is known."""
        if self._channel and not self._has_sent_error and (message or not self._must_claim):
            self._channel.send("leaving", message=_to_valid_text(message))

    def is_disk_full(self, error: BaseException) -> bool:
        """Whether an exception comes of a full disk, or the disk for checkpoints is full whatever the exception says."""
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

    def _report_as_rank_zero(self, metrics: dict[str, float], step: int, save: _checkpoint.Save | None, every_rank: bool) -> None:
        now = self._time_of(metrics, step)
        is_new_time = now > self.time  # or it lies within the unit of time of the report before
        if not is_new_time and not self._has_warned_of_unit:
            self._has_warned_of_unit = True
            print(f"attune: step {step} lies within the unit of {self._time_attr} that was reported before, and "
                  "the first report of a unit counts: this one and others like it are not kept",
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
                self._channel.send("done")  # the exception ends this thread only; the executor ends the process
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
            return True  # each report may be the last
        since = time.monotonic() - self._saved
        return since >= max(_SAVE_INTERVAL_S, _SAVE_SHARE * self._save_took)

    def _time_of(self, metrics: dict[str, float], step: int) -> int:
        """The time of a report: the metric that the sweep measures it in, rounded down, or its step."""
        if not self._time_attr:
            return step
        name, value = self._time_attr, metrics.get(self._time_attr)
        what = f"metric {name!r}, in which the sweep measures time,"
        if value is None:
            raise ValueError(f"{what} is not in the report, which has {', '.join(metrics) or 'none'}")
        if not 0 <= value <= _metrics.STEP_MAX:
            raise ValueError(f"{what} is {value!r} and must be finite, at least 0 and exact")
        if int(value) < self.time:
            raise ValueError(f"{what} is {value!r} after {self.time}; it must grow, and go on from there "
                             "where the trial goes on from a checkpoint: attune.time has it")
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
            with _disk_full_on_error(partial):  # before what was written so far is deleted
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
        else:  # rank 0 is on another host; this one may take part in what is gathered there
            with tempfile.TemporaryDirectory() as folder_of_rank:
                save(pathlib.Path(folder_of_rank))
                if written := os.listdir(folder_of_rank):
                    raise _checkpoint.CheckpointError(
                        f"{folder}: rank 0 writes the checkpoint there on another host, and this host has no such "
                        f"folder for {', '.join(sorted(written))}; files of ranks on several hosts need a data "
                        "folder that all of them share")
        self._peers.send({"saved": True})


@contextlib.contextmanager
def _disk_full_on_error(folder: str | os.PathLike[str]) -> typing.Iterator[None]:
    """Turns exceptions that come of a full disk into DiskFull."""
    try:
        yield
    except (_checkpoint.DiskFull, LostPeer):
        raise
    except Exception as error:
        if not _checkpoint.is_disk_full(error, folder):
            raise
        raise _checkpoint.DiskFull(f"{folder}: a disk or a quota of this host is full: {error}") from error


def is_lost_peer(error: BaseException) -> bool:
    """Whether an exception tells that another rank is gone, rather than what is wrong with this one."""
    if isinstance(error, LostPeer):
        return True
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    if names & {"torch.distributed.DistBackendError", "torch.distributed.DistNetworkError",
                "torch.distributed.DistStoreError"}:
        return True
    # Gloo's own are RuntimeErrors, known by the source that they name.
    return isinstance(error, RuntimeError) and "gloo/transport/" in str(error)


def _report_exceptions(trial: Trial) -> None:
    """Uncaught exceptions go to the executor before anything is torn down, then on as before."""
    previous, process = sys.excepthook, os.getpid()

    def hook(kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None) -> None:
        if os.getpid() == process:
            try:
                lost_peer = is_lost_peer(error)
                trial.error(f"{kind.__name__}: {error}", lost_peer, not lost_peer and trial.is_disk_full(error))
            except OSError:
                pass  # nobody listens any more; the traceback below is for the log
        previous(kind, error, traceback)

    sys.excepthook = hook


def _report_exit(trial: Trial) -> None:
    """The executor hears that this program ends before connections to other ranks are closed.

    sys.excepthook does not see SystemExit. So sys.exit() notes the text that it is called with. If the program catches
    that SystemExit, the text does no harm: it counts only if the exit status is not 0.
    """
    previous, process, text = sys.exit, os.getpid(), ""

    def leave(status: typing.Any = None, /) -> typing.NoReturn:
        nonlocal text
        if threading.current_thread() is threading.main_thread():
            text = "" if status is None or isinstance(status, int) else f"SystemExit: {status}"
        previous(status)

    def report_exit() -> None:
        if os.getpid() == process:
            with contextlib.suppress(OSError):  # nobody listens any more
                trial.leave(text)

    setattr(sys, "exit", leave)  # a rank has one trial
    # Before functions of atexit, which may end process groups; not every Python has it.
    getattr(threading, "_register_atexit", atexit.register)(report_exit)


def _to_valid_text(message: str) -> str:
    """Text for the executor: lone surrogates, as in names of files that are no UTF-8, are none."""
    return message.encode("utf-8", "replace").decode()[:ERROR_CHARACTERS_MAX]


def _count_cpus() -> int:
    """How many CPUs this process may use; all that there are where the system does not say, as on macOS."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_by_hand() -> Message:
    """A gang of one, or the ranks that torchrun has started."""
    start = _connect.ranks_from_environment()
    return {**start, "cpus": max(1, _count_cpus() // start["local_world_size"])}


def _join_trial() -> Trial:
    connection = _connect.connect()
    if connection is None:
        return Trial(_start_by_hand(), None)
    start, channel, must_claim = connection
    if start.get("type") != "start" or start.get("protocol") != _PROTOCOL:
        raise RuntimeError(f"the executor speaks protocol {start.get('protocol')} of the worker channel "
                           f"and this package {_PROTOCOL}; use the package of the executor's release")
    trial = Trial(start, channel, must_claim)
    _report_exceptions(trial)
    _report_exit(trial)
    if not must_claim:
        trial.join()
    return trial


_trial: Trial | None = None
_making = threading.Lock()


def current() -> Trial:
    """This process's trial, which the first call joins."""
    global _trial
    with _making:
        if _trial is None or _trial.is_inherited_by_fork():
            _trial = _join_trial()
        return _trial
