"""What the programs of this folder note of each rank, and how a rank ends in the middle of a trial.

Each rank trains within training(), and calls after_step() after each report. The folder NOTES gets a file for each event
(started, trained, left), named EVENT-TRIAL-ATTEMPT-RANK. AFTER_STEP_1 says what happens in a first attempt:

    kill    rank 1 kills itself, as the kernel does where memory is short
    stay    the ranks stay until SIGTERM
"""

import contextlib
import json
import os
import pathlib
import signal
import sys

import attune

_TELLS = signal.SIGTERM, signal.SIGINT  # the second comes from torch.multiprocessing


def note(event, **values):
    name = f"{event}-{attune.trial}-{attune.attempt}-{attune.rank}"
    whole = pathlib.Path(os.environ["NOTES"]) / f".{name}"
    whole.write_text(json.dumps({"world_size": attune.world_size, "step": attune.step, "pid": os.getpid(), **values}))
    whole.rename(whole.with_name(name))


@contextlib.contextmanager
def training(model):
    """Notes how the rank begins and ends, and that it leaves when it is told to.

    It notes a number of the model, which only ranks that trained together share.
    """
    note("started")
    for number in _TELLS:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        note("trained", weights=sum(float(parameter.sum()) for parameter in model.parameters()))


def _leave(*_):
    for number in _TELLS:
        signal.signal(number, signal.SIG_IGN)
    note("left")
    sys.exit()


def after_step():
    wish = os.environ.get("AFTER_STEP_1") if (attune.step, attune.attempt) == (1, 1) else None
    if wish == "kill" and attune.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if wish == "stay":
        with open(pathlib.Path(os.environ["NOTES"]) / "stays", "w") as pipe:
            pipe.write(f"{os.getpid()}\n")
        while True:
            signal.pause()
