"""What a rank knows of its trial, and what becomes of its reports."""

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
import unicodedata

from attune import _checkpoint
from attune._channel import ERROR_CHARACTERS_MAX, Channel
from attune._control import Follower, Leader, LostPeer

PUBLIC = ("attempt", "by_hand", "checkpoint", "checkpoint_dir", "config", "cpus", "device",
          "devices", "local_rank", "local_world_size", "max_step", "rank", "seed", "step", "sweep", "time",
          "trial", "world_size")

_PROTOCOL = 1
_STEP_MAX = 2**53 - 1
_METRICS_MAX = 1000
_METRIC_NAME_BYTES_MAX = 256
_SILENCE_S_MAX = 7 * 24 * 3600
_LONG_SILENCE_S = 30 * 60  # before the first sign of training, and while a checkpoint is written
_PROGRESS_INTERVAL_S = 1.0
_SAVE_INTERVAL_S = 60  # between two checkpoints that nobody asked for, or longer:
_SAVE_SHARE = 20  # saving takes a twentieth of the time at most


def short_seed(seed):
    """What numpy takes (32 bits), and has room for a step or a rank to be added."""
    return seed % 2**31


class TrialEnded(SystemExit):
    """The trial is over, or paused, at the step that was just reported; `action` says which.

    A SystemExit of status 0: code around the loop may catch it, and has nothing to decide.
    """

    def __init__(self, action):
        super().__init__(0)
        self.action = action  # "stop" or "pause"


class Config(dict):
    """The trial's parameters by name, in the order of the sweep file."""

    def __missing__(self, name):
        raise KeyError(f"{name}: no parameter of this trial (it has {', '.join(self) or 'none'}); name "
                       "it in the sweep file, or give it a default in attune.init()")

    def add_defaults(self, defaults):
        if not hasattr(defaults, "items"):
            raise ValueError(f"defaults is {defaults!r} and must map names to values, as in {{\"lr\": 0.1}}")
        for name, value in defaults.items():
            self.setdefault(name, value)


class Trial:
    """One rank, from the `start` line on."""

    def __init__(self, start, channel):
        self.by_hand = channel is None
        self.sweep, self.trial = start.get("sweep", ""), start.get("trial", 0)
        self.attempt = start.get("attempt", 1)
        self.rank, self.world_size = start["rank"], start["world_size"]
        self.local_rank = start.get("local_rank", self.rank)
        self.local_world_size = start.get("local_world_size", self.world_size)
        self._address = start.get("address", "127.0.0.1")
        self.device, self.cpus = start.get("device", "cpu"), start.get("cpus", 1)
        self.devices = start.get("devices", [self.device])
        self.seed = short_seed(start.get("seed", 0))
        self.config = Config(start.get("config", {}))
        self.max_step = start.get("max_step", 0)
        self.checkpoint_dir = start.get("checkpoint_dir") or None
        self.step = self.time = start.get("resume", {}).get("step", 0)
        self._time_attr = start.get("time_attr", "")
        self._resume = start.get("resume")
        self._sweep_config = dict(self.config)
        self._checked = None
        self._milestone = start.get("milestone", 0)
        self._every = start.get("checkpoint_every", 0)
        self._channel = channel
        self._began = self._saved = time.monotonic()
        self._save_took = 0
        self._progressed = -math.inf
        self._yielding = self._told_of_units = False
        self._control = None

    def join(self):
        """Meets the others. To be called once, before anything else, where there is an executor."""
        if self.rank == 0 and self.checkpoint_dir:
            _checkpoint.remove_unfinished(self.checkpoint_dir, self.attempt)
        if self.rank == 0 and self.world_size > 1:
            self._control = Leader(self._gang, self.world_size, self._address)
            self._channel.send("rendezvous", host=self._control.host, port=self._control.port)
        if self._resume and self.local_world_size < self.world_size:
            self._share_checkpoint()
        if self._resume and self._time_attr:
            self.step = _checkpoint.step_of(self._resume)
        self.heartbeat(_LONG_SILENCE_S)  # last: whatever a rank says ends the silence that it announced

    def _share_checkpoint(self):
        """To every host of the gang, from rank 0's, where it is not on a folder that they share."""
        self.heartbeat(_LONG_SILENCE_S)
        folder = pathlib.Path(self._resume["path"])
        if self.rank == 0:
            self._control.share(folder, _checkpoint.sizes(_checkpoint.check(self._resume)))
        elif _checkpoint.is_there(self._resume):
            self._follower().fetch(None)
        else:
            copy = pathlib.Path(self.checkpoint_dir) / f".attempt-{self.attempt}-resumed-{self.rank - self.local_rank}"
            self._resume = {**self._resume, "path": str(copy)}
            if self.local_rank == 0:
                _checkpoint.remove_unfinished(self.checkpoint_dir, self.attempt)
                copy.mkdir(parents=True)
                atexit.register(shutil.rmtree, copy, ignore_errors=True)
            self._follower().fetch(copy if self.local_rank == 0 else None)

    @property
    def _gang(self):
        return f"{self.sweep}/{self.trial}.{self.attempt}"

    @property
    def checkpoint(self):
        if self._resume and not self._checked:
            self.heartbeat(_LONG_SILENCE_S)
            self._checked = _checkpoint.check(self._resume)
        return self._checked

    # ---- said on the way

    def heartbeat(self, silence):
        try:
            can_be = 0 <= silence <= _SILENCE_S_MAX
        except TypeError:
            can_be = False
        if not can_be:
            raise ValueError(f"silence is {silence!r} and must be 0 to {_SILENCE_S_MAX} seconds")
        if self._channel:
            self._channel.send("heartbeat", silence_ms=int(silence * 1000))

    def progress(self):
        now = time.monotonic()
        if now - self._progressed >= _PROGRESS_INTERVAL_S:
            self._send_progress(now)

    def _send_progress(self, now):
        self._progressed = now
        if self._channel:
            self._channel.send("progress", step=self.step)

    def error(self, message, lost_peer, disk_full):
        if self._channel:
            # Lone surrogates, as in names of files that are no UTF-8, are no text to the executor.
            message = message.encode("utf-8", "replace").decode()[:ERROR_CHARACTERS_MAX]
            self._channel.send("error", message=message, lost_peer=lost_peer, disk_full=disk_full)

    def is_disk_full(self, error):
        """Whether an exception comes of a full disk, or the disk for checkpoints is full whatever the exception says."""
        if any(isinstance(each, _checkpoint.DiskFull) for each in _checkpoint.chain(error)):
            return True
        return bool(self.checkpoint_dir and not _checkpoint.has_room(self.checkpoint_dir))

    def log(self, metrics, step):
        try:
            at = float(step)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            at = math.nan
        if not 0 <= at < math.inf:
            raise ValueError(f"step is {step!r} and must be a finite number of at least 0")
        values = numbers(metrics)
        if self.rank != 0 or not values:
            return
        if self.by_hand:
            print(f"at step {at:.12g}  {_text(values)}", flush=True)
        else:
            self._channel.send("log", step=at, metrics=_spoken(values))

    # ---- reports

    def report(self, metrics, step, checkpoint, every_rank):
        step = self.step + 1 if step is None else step
        if type(step) is not int or not self.step < step <= _STEP_MAX:
            raise ValueError(f"step is {step!r} and must be a whole number above {self.step}, the last "
                             "one")
        values = numbers(metrics)
        if self.by_hand:
            if self.rank == 0:
                print(f"step {step}  {_text(values)}", flush=True)
            self.step = self.time = step
        elif self.rank == 0:
            self._lead(values, step, checkpoint, every_rank)
        else:
            self._follow(step, checkpoint, every_rank)

    def _lead(self, metrics, step, checkpoint, every_rank):
        now = self._time_of(metrics, step)
        reports = now > self.time  # or it lies within the unit of time of the report before
        if not reports and not self._told_of_units:
            self._told_of_units = True
            print(f"attune: step {step} lies within the unit of {self._time_attr} that was reported before, and "
                  "the first report of a unit counts: this one and others like it are not kept",
                  file=sys.stderr, flush=True)
        waits = reports and self._is_to_wait(now)
        if checkpoint and self.checkpoint_dir and reports and (waits or self._is_to_save(now)):
            begins = time.monotonic()
            self._save(step, now, checkpoint, every_rank)
            self._saved = time.monotonic()
            self._save_took = self._saved - begins
        elif checkpoint and every_rank:
            self._tell({"step": step, "save": None})
        if reports:
            self._channel.send("report", step=now, metrics=_spoken(metrics),
                               seconds=time.monotonic() - self._began, waits=waits)
        self.step, self.time = step, now
        self._send_progress(time.monotonic())
        action = self._await_verdict(now) if waits else "continue"
        self._tell({"step": step, "action": action, "time": now})
        if action != "continue":
            raise TrialEnded(action)

    def _is_to_wait(self, now):
        while self._channel.has_message():
            self._take(self._channel.receive())
        limit = self._milestone or self.max_step
        return self._yielding or (limit > 0 and now >= limit)

    def _is_to_save(self, now):
        if self._every > 0:
            return now // self._every > self.time // self._every
        if not self._milestone and not self.max_step:
            return True  # each report may be the last
        since = time.monotonic() - self._saved
        return since >= max(_SAVE_INTERVAL_S, _SAVE_SHARE * self._save_took)

    def _time_of(self, metrics, step):
        """The time of a report: the metric that the sweep measures it in, rounded down, or its step."""
        if not self._time_attr:
            return step
        name, value = self._time_attr, metrics.get(self._time_attr)
        what = f"metric {name!r}, in which the sweep measures time,"
        if value is None:
            raise ValueError(f"{what} is not in the report, which has {', '.join(metrics) or 'none'}")
        if not 0 <= value <= _STEP_MAX:
            raise ValueError(f"{what} is {value!r} and must be finite, at least 0 and exact")
        if int(value) < self.time:
            raise ValueError(f"{what} is {value!r} after {self.time}; it must grow, and go on from there "
                             "where the trial goes on from a checkpoint: attune.time has it")
        return int(value)

    def _follow(self, step, checkpoint, every_rank):
        if checkpoint and every_rank:
            self._save_part(checkpoint, self._hear(step)["save"])
        self.step = step
        self._send_progress(time.monotonic())
        word = self._hear(step)
        self.time, action = word["time"], word["action"]
        if action != "continue":
            raise TrialEnded(action)

    def _take(self, message):
        if message["type"] == "yield":
            self._yielding = True

    def _await_verdict(self, step):
        while True:
            message = self._channel.receive()
            self._take(message)
            if message["type"] == "verdict" and message["step"] == step:
                self._milestone, self._yielding = message.get("milestone", 0), False
                return message["action"]

    # ---- checkpoints

    def _save(self, step, now, save, every_rank):
        self.heartbeat(_LONG_SILENCE_S)
        with _blaming_full_disks(self.checkpoint_dir):
            partial = _checkpoint.begin(self.checkpoint_dir, self.attempt)
        try:
            with _blaming_full_disks(partial):  # before what was written so far is deleted
                if every_rank:
                    self._tell({"step": step, "save": str(partial)})
                save(partial)
                if every_rank and self._control:
                    self._control.hear_all()
                path, digest, size = _checkpoint.finish(partial, self.checkpoint_dir, step, now, self.attempt,
                                                        self.world_size, self._sweep_config)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        self._channel.send("checkpoint", step=now, path=str(path), digest=digest, bytes=size)

    def _save_part(self, save, folder):
        if folder is None:
            return
        self.heartbeat(_LONG_SILENCE_S)
        if os.path.isdir(folder):
            with _blaming_full_disks(folder):
                save(pathlib.Path(folder))
        else:  # rank 0 is on another host; this one may take part in what is gathered there
            with tempfile.TemporaryDirectory() as own:
                save(pathlib.Path(own))
                if written := os.listdir(own):
                    raise _checkpoint.CheckpointError(
                        f"{folder}: rank 0 writes the checkpoint there on another host, and this host has no such "
                        f"folder for {', '.join(sorted(written))}; files of ranks on several hosts need a data "
                        "folder that all of them share")
        self._control.say({"saved": True})

    # ---- the other ranks

    def _tell(self, message):
        if self._control:
            self._control.tell(message)

    def _hear(self, step):
        return self._follower().hear(step)

    def _follower(self):
        if not self._control:
            message = self._channel.receive()
            while message["type"] != "rendezvous":
                message = self._channel.receive()
            self._control = Follower(message["host"], message["port"], self._gang, self.rank)
        return self._control


@contextlib.contextmanager
def _blaming_full_disks(folder):
    """Turns exceptions that come of a full disk into DiskFull."""
    try:
        yield
    except (_checkpoint.DiskFull, LostPeer):
        raise
    except Exception as error:
        if not _checkpoint.is_disk_full(error, folder):
            raise
        raise _checkpoint.DiskFull(f"{folder}: a disk or a quota of this host is full: {error}") from error


def numbers(metrics):
    """The metrics as floats, or ValueError."""
    if not hasattr(metrics, "items"):
        raise ValueError(f"metrics is {metrics!r} and must map names to numbers, as in {{\"loss\": 0.1}}")
    if len(metrics) > _METRICS_MAX:
        raise ValueError(f"{len(metrics)} metrics; a report has at most {_METRICS_MAX}")
    values = {}
    for name, value in metrics.items():
        if not isinstance(name, str) or not 0 < len(name.encode()) <= _METRIC_NAME_BYTES_MAX or any(
                unicodedata.category(c) == "Cc" for c in name):
            raise ValueError(f"a metric is named {name!r}; a name has 1 to {_METRIC_NAME_BYTES_MAX} "
                             "bytes and no control characters")
        try:
            values[name] = float(value.item() if hasattr(value, "item") else value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"metric {name!r} is {value!r}, which is not one number") from error
        except OverflowError as error:
            raise ValueError(f"metric {name!r} is an integer that is too large for a float") from error
    return values


def spoken(value):
    """A number as the channel has it: JSON has neither NaN nor infinities."""
    return value if math.isfinite(value) else "nan" if math.isnan(value) else (
        "inf" if value > 0 else "-inf")


def _spoken(metrics):
    return {name: spoken(value) for name, value in metrics.items()}


def _text(metrics):
    return "  ".join(f"{name}={value:.6g}" for name, value in metrics.items())


def is_lost_peer(error):
    """Whether an exception tells that another rank is gone, rather than what is wrong with this one."""
    if isinstance(error, LostPeer):
        return True
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    if names & {"torch.distributed.DistBackendError", "torch.distributed.DistNetworkError",
                "torch.distributed.DistStoreError"}:
        return True
    # Gloo's own are RuntimeErrors, known by the source that they name.
    return isinstance(error, RuntimeError) and "gloo/transport/" in str(error)


def _tell_of_exceptions(trial):
    """Uncaught exceptions go to the executor before anything is torn down, then on as before."""
    previous, process = sys.excepthook, os.getpid()

    def hook(kind, error, traceback):
        if os.getpid() == process:
            try:
                lost_peer = is_lost_peer(error)
                trial.error(f"{kind.__name__}: {error}", lost_peer, not lost_peer and trial.is_disk_full(error))
            except OSError:
                pass  # nobody listens any more; the traceback below is for the log
        previous(kind, error, traceback)

    sys.excepthook = hook


def _cpus():
    """How many CPUs this process may use; all that there are where the system does not say, as on macOS."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _by_hand():
    """A gang of one, or the ranks that torchrun has started."""
    def value(name, otherwise):
        return int(os.environ.get(name, otherwise))

    world_size = value("WORLD_SIZE", 1)
    local_world_size = value("LOCAL_WORLD_SIZE", world_size)
    return {"rank": value("RANK", 0), "world_size": world_size, "local_rank": value("LOCAL_RANK", 0),
            "local_world_size": local_world_size,
            "cpus": max(1, _cpus() // local_world_size)}


def _make():
    descriptor = os.environ.pop("ATTUNE_CHANNEL_FD", None)
    if descriptor is None:
        return Trial(_by_hand(), None)
    channel = Channel(int(descriptor))
    start = channel.receive()
    if start.get("type") != "start" or start.get("protocol") != _PROTOCOL:
        raise RuntimeError(f"the executor speaks protocol {start.get('protocol')} of the worker channel "
                           f"and this package {_PROTOCOL}; use the package of the executor's release")
    trial = Trial(start, channel)
    _tell_of_exceptions(trial)
    trial.join()
    return trial


_trial = None
_making = threading.Lock()


def current():
    """This process's trial, which the first call joins."""
    global _trial
    with _making:
        if _trial is None:
            _trial = _make()
        return _trial
