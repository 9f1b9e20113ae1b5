"""Makes a training script one rank of a gang. A gang is the set of processes that train one trial.

    import attune

    config = attune.init({"lr": 0.1})      # values without an executor; a sweep replaces them
    for step in range(attune.step + 1, 11):
        loss = train(config["lr"])
        attune.report({"loss": loss}, checkpoint=save)

Every rank runs the same script. Either every rank calls `report` equally often, or rank 0 alone does. An Attune
executor starts the script, or torchrun does, or you start it by hand as a gang of one. Decisions, such as stopping a
trial early, are only made if an executor started the script.

Attributes of this module describe the trial:

- `config`: the parameters by name
- `rank`, `world_size`, `local_rank`, `local_world_size`: the place of this process in the gang
- `device`: "cpu" or "cuda:N"; `devices`: every device of this rank, `device` first
- `cpus`: the number of cores of this rank
- `seed`: below 2^31, and the same on all ranks and in all attempts
- `sweep`, `trial`, `attempt`: the identity of this attempt
- `step`: the last completed step; 0 at the beginning
- `time`: if `time_attr` in the sweep file names a metric, its value in the last report, rounded down; otherwise `step`
- `max_step`: the last step that the sweep needs (with `time_attr`: the last time); 0 if there is no limit yet
- `checkpoint`: the folder to resume from, or None; the hashes of its files have been checked
- `checkpoint_dir`: the folder of the trial's checkpoints; None without an executor
- `by_hand`: whether there is no executor

docs/reference/python.md is the user guide. docs/reference/worker-channel.md describes the protocol.
"""

from __future__ import annotations

import attune._distribution  # first: it raises if pip mixed two packages

import typing

from attune._checkpoint import Checkpoint, CheckpointError, DiskFull
from attune._control import LostPeer
from attune._trial import PUBLIC, Config, TrialEnded, current

if typing.TYPE_CHECKING:
    import os
    import pathlib

__all__ = ["Checkpoint", "CheckpointError", "DiskFull", "LostPeer", "TrialEnded", "heartbeat", "init", "log",
           "progress", "report",
           "attempt", "by_hand", "checkpoint", "checkpoint_dir", "config", "cpus", "device", "devices", "local_rank",
           "local_world_size", "max_step", "rank", "seed", "step", "sweep", "time", "trial", "world_size"]

# The attributes that __getattr__ returns, declared for type checkers.
attempt: int
by_hand: bool
checkpoint: pathlib.Path | None
checkpoint_dir: str | None
config: Config
cpus: int
device: str
devices: list[str]
local_rank: int
local_world_size: int
max_step: int
rank: int
seed: int
step: int
sweep: str
time: int
trial: int
world_size: int


def init(defaults: typing.Mapping[str, typing.Any] | None = None) -> Config:
    """Joins the gang unless this process has joined already, and returns the configuration.

    `defaults` maps parameter names to values. A value is used if the sweep file does not name the parameter. Without an
    executor, `defaults` is the whole configuration. Any other use of this module also joins the gang.

    Raises ValueError if `defaults` is not a mapping, and RuntimeError if the executor speaks another protocol.
    """
    config: Config = current().config
    config.add_defaults({} if defaults is None else defaults)
    return config


def report(metrics: typing.Mapping[str, typing.SupportsFloat | typing.SupportsIndex],
           step: typing.SupportsIndex | None = None,
           checkpoint: typing.Callable[[pathlib.Path], typing.Any] | str | os.PathLike[str] | None = None,
           every_rank: bool = False) -> None:
    """Reports how good the trial is at `step`. Every rank calls it; the metrics of rank 0 count.

    `metrics` maps at most 1,000 names to numbers. Tensors and arrays of one element, NaN and infinities are allowed;
    text is not. `step` is an integer of any type above the last step; the default is the last step plus 1.

    `checkpoint` is a folder (a path, or a `Checkpoint`) or a function. It is used only if a checkpoint is due: at
    milestones, and as the sweep file's `checkpoint.every` says. The content of a folder is copied, so you may delete
    the folder when `report` returns. A function is called as `checkpoint(folder)` and writes files into `folder`, a
    pathlib.Path. Only rank 0 saves, unless `every_rank` is true: then each rank writes its own files, or none. The
    checkpoint is valid when all files are complete.

    Returns if training continues. Otherwise raises TrialEnded, on all ranks at the same step. If nothing catches it,
    the program ends with exit status 0.

    Raises ValueError if metrics, step or checkpoint are not allowed, CheckpointError if the checkpoint cannot be
    written, LostPeer if another rank has ended, and DiskFull if a disk or a quota has no space for the checkpoint.
    DiskFull is a failure of the host: it does not use up a restart of the trial.
    """
    current().report(metrics, step, checkpoint, every_rank)


def log(metrics: typing.Mapping[str, typing.SupportsFloat | typing.SupportsIndex],
        step: typing.SupportsFloat | typing.SupportsIndex) -> None:
    """Logs values between reports, such as the loss of every hundredth batch. They become points of the trial's curves.

    `step` counts like the steps of reports: 2.25 is a quarter of the way from the report of step 2 to that of step 3.
    Logged values do not influence decisions. Only rank 0 sends them. It does not wait, unless the server cannot store
    more. If the trial resumes from a checkpoint, new values replace the values of earlier attempts after that step.

    Raises ValueError if metrics or step are not allowed; see `report` for metrics.
    """
    current().log(metrics, step)


def progress() -> None:
    """Tells the executor that this rank makes progress within a step. Call it after each batch if steps are long.

    The first call also tells that training has begun. At most one message a second is sent.
    """
    current().progress()


def heartbeat(silence: float) -> None:
    """Tells the executor that this rank is alive, and may be silent for `silence` seconds longer than `stall_timeout`.

    Raises ValueError if `silence` is negative or longer than a week.
    """
    current().heartbeat(silence)


if not typing.TYPE_CHECKING:  # otherwise a type checker would accept every misspelled name
    def __getattr__(name):
        if name in PUBLIC:
            return getattr(current(), name)
        raise AttributeError(f"module 'attune' has no attribute {name!r}")
