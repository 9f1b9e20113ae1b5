"""Records events of each rank of the programs in this folder, and ends ranks in the middle of a trial.

Each rank trains within training(), and calls after_step() after each report. The folder NOTES gets a file for each event
(started, trained, left), named EVENT-TRIAL-ATTEMPT-RANK. AFTER_STEP_1 sets the event in a first attempt:

    kill    rank 1 kills itself, like the kernel when memory is short
    stay    the ranks run until SIGTERM
"""

import contextlib
import json
import os
import pathlib
import signal
import sys

import attune

_END_SIGNALS = signal.SIGTERM, signal.SIGINT  # the second comes from torch.multiprocessing


def note(event, **values):
    name = f"{event}-{attune.trial}-{attune.attempt}-{attune.rank}"
    temporary = pathlib.Path(os.environ["NOTES"]) / f".{name}"
    temporary.write_text(json.dumps({"world_size": attune.world_size, "step": attune.step, "pid": os.getpid(), **values}))
    temporary.rename(temporary.with_name(name))


@contextlib.contextmanager
def training(model):
    """Records the start and the end of the rank, and a signal that ends it.

    The record has a number that depends on the weights. It is equal only for ranks that trained together.
    """
    note("started")
    for number in _END_SIGNALS:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        note("trained", weights=sum(float(parameter.sum()) for parameter in model.parameters()))


def _leave(*_):
    for number in _END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    note("left")
    sys.exit()


def after_step():
    action = os.environ.get("AFTER_STEP_1") if (attune.step, attune.attempt) == (1, 1) else None
    if action == "kill" and attune.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "stay":
        with open(pathlib.Path(os.environ["NOTES"]) / "stays", "w") as pipe:
            pipe.write(f"{os.getpid()}\n")
        while True:
            signal.pause()
