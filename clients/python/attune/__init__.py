"""A training script as one rank of a gang of Attune's.

    import attune

    config = attune.init({"lr": 0.1})      # what holds by hand; a sweep's values replace it
    for step in range(attune.step + 1, 11):
        loss = train(config["lr"])
        attune.report({"loss": loss}, checkpoint=save)

Every rank runs the same script. Either every rank calls `report` equally often, or rank 0 alone does. The script is started by an executor
of Attune's, by torchrun, or by hand as a gang of one; only with the first is anything decided.

Known of the trial, as attributes of this module: `config` (name → value), `rank`, `world_size`,
`local_rank`, `local_world_size`, `device` ("cpu" or "cuda:N"), `devices` (a list of every device of
this rank, `device` first), `cpus` (cores of this rank), `seed` (the
same on all ranks and attempts, below 2^31), `sweep`, `trial`, `attempt`, `step` (the last one that is done, 0 at
the beginning), `time` (what the sweep measures time in, where its `time_attr` names a metric: that of
the last report, rounded down; else `step`), `max_step` (the last time that the sweep wants, as far as
it is known; 0: none),
`checkpoint` (the folder to go on from, whose files have been checked, or None), `checkpoint_dir` (None
by hand) and `by_hand` (whether there is no executor).

docs/reference/python.md tells the story; docs/reference/worker-channel.md is what is spoken underneath.
"""

from __future__ import annotations

import attune._distribution  # first: it may refuse

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

# What __getattr__ finds, for type checkers.
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
    """Joins the gang, if that has not happened yet, and returns the configuration.

    `defaults` maps names to values of parameters that the sweep file does not name; by hand, these are all values. The
    first use of anything else in this module also joins the gang.

    Raises ValueError if `defaults` is not a mapping, and RuntimeError if the executor speaks another protocol.
    """
    own: Config = current().config
    own.add_defaults({} if defaults is None else defaults)
    return own


def report(metrics: typing.Mapping[str, typing.SupportsFloat | typing.SupportsIndex],
           step: typing.SupportsIndex | None = None,
           checkpoint: typing.Callable[[pathlib.Path], typing.Any] | str | os.PathLike[str] | None = None,
           every_rank: bool = False) -> None:
    """Reports how good the trial is at `step`. Every rank calls it; the metrics of rank 0 count.

    `metrics` maps at most 1,000 names to numbers. A tensor or an array of one element is a number, and so are NaN and
    infinities; text is not. `step` is an integer of any type above the last step; by default the last step plus 1.

    `checkpoint` is a folder (a path, or a `Checkpoint`) or a function. It is used only if a checkpoint is due: at
    milestones, and as the sweep file's `checkpoint.every` says. The content of a folder is copied, so you may delete
    the folder when `report` returns. A function is called as `checkpoint(folder)` and writes files into `folder`, a
    pathlib.Path. Rank 0 alone saves; with `every_rank` each rank does, and each writes other files, or none. The
    checkpoint counts when all files are complete.

    Returns if training continues. Otherwise raises TrialEnded, on all ranks at the same step. If nothing catches it,
    the program ends with exit status 0.

    Raises ValueError if metrics, step or checkpoint are not allowed, CheckpointError if the checkpoint cannot be
    written, LostPeer if another rank has gone, and DiskFull if a disk or a quota has no room for the checkpoint.
    DiskFull is the host's failure: the trial spends no restart.
    """
    current().report(metrics, step, checkpoint, every_rank)


def log(metrics: typing.Mapping[str, typing.SupportsFloat | typing.SupportsIndex],
        step: typing.SupportsFloat | typing.SupportsIndex) -> None:
    """Logs values between reports, such as the loss of every hundredth batch. They become points of the trial's curves.

    `step` counts like the steps of reports: 2.25 is a quarter of the way from the report of step 2 to that of step 3.
    Nothing is decided by logged values. Only rank 0 sends them, and it does not wait, unless the server cannot store
    more. If the trial resumes from a checkpoint, its values replace those that an earlier attempt logged from there on.

    Raises ValueError if metrics or step are not allowed; see `report` for metrics.
    """
    current().log(metrics, step)


def progress() -> None:
    """Says that this rank makes progress within a step. Call it after each batch if steps are long.

    The first call also says that training has begun. It sends at most one message a second.
    """
    current().progress()


def heartbeat(silence: float) -> None:
    """Says that this rank is alive, and may be silent for `silence` seconds longer than `stall_timeout`.

    Raises ValueError if `silence` is negative or longer than a week.
    """
    current().heartbeat(silence)


if not typing.TYPE_CHECKING:  # else no name would be misspelled
    def __getattr__(name):
        if name in PUBLIC:
            return getattr(current(), name)
        raise AttributeError(f"module 'attune' has no attribute {name!r}")
