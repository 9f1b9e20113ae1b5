"""A training script as one rank of a gang of Attune's.

    import attune

    config = attune.init({"lr": 0.1})      # what holds by hand; a sweep's values replace it
    for step in range(attune.step + 1, 11):
        loss = train(config["lr"])
        attune.report({"loss": loss}, checkpoint=save)

Every rank runs the same script and calls `report` equally often. The script is started by an executor
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

docs/python.md tells the story; docs/worker-channel.md is what is spoken underneath.
"""

import attune._distribution  # first: it may refuse
from attune._checkpoint import CheckpointError, DiskFull
from attune._control import LostPeer
from attune._trial import PUBLIC, TrialEnded, current

__all__ = ["CheckpointError", "DiskFull", "LostPeer", "TrialEnded", "heartbeat", "init", "log", "progress",
           "report", *PUBLIC]


def init(defaults=None):
    """Joins the gang, where that has not happened yet, and returns the configuration.

    `defaults` (name → value) are the values of parameters that the sweep file does not name, and all
    there are by hand. Called by the first use of anything else here, too.
    """
    trial = current()
    trial.config.add_defaults({} if defaults is None else defaults)
    return trial.config


def report(metrics, step=None, checkpoint=None, every_rank=False):
    """Says how good the trial is at `step`, on every rank; those of rank 0 count.

    `metrics` maps at most 1,000 names to numbers, also tensors of one element; NaN and infinities are
    numbers. `step` is above the last one, and that plus 1 if left out.

    `checkpoint(folder)` is called when a checkpoint is due (at milestones, and as the sweep file's
    `checkpoint.every` says) and writes files into `folder`, a pathlib.Path. Rank 0 calls it alone, with
    `every_rank` all ranks do, each writing files of its own, or none. The folder is kept when all is written.

    Returns when training goes on. Otherwise raises TrialEnded, on all ranks at the same step, which
    ends the program with exit status 0 if nothing catches it.

    Raises ValueError for metrics or a step that cannot be, LostPeer when another rank has gone, DiskFull when a disk
    or a quota has no room for the checkpoint. DiskFull is the host's failure: the trial spends no restart.
    """
    current().report(metrics, step, checkpoint, every_rank)


def log(metrics, step):
    """Logs values between reports, such as the loss of every hundredth batch: points of the trial's curves.

    `step` counts as that of reports does: 2.25 is a quarter of the way from the report of step 2 to that of
    step 3. Nothing is decided by what is logged, and nobody is waited for, but for room where the server cannot
    store what comes. Only rank 0 says something. Once a trial goes on from a checkpoint, what it logs replaces
    what an earlier attempt had logged from there on.

    Raises ValueError for metrics or a step that cannot be.
    """
    current().log(metrics, step)


def progress():
    """Says that this rank gets on within a step; to be called after each batch where steps are long.

    The first call tells when training began. Costs nothing more than once a second.
    """
    current().progress()


def heartbeat(silence):
    """Says that this rank is alive, and may be silent for `silence` seconds beyond `stall_timeout`."""
    current().heartbeat(silence)


def __getattr__(name):
    if name in PUBLIC:
        return getattr(current(), name)
    raise AttributeError(f"module 'attune' has no attribute {name!r}")
