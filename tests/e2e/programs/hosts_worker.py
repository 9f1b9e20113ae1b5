"""A script with the package `attune` that detects another running attempt of its trial on any host.

All hosts share the folder TRACES. Each rank locks a file there until it ends. A rank that finds a locked file of
another attempt writes to the file `twice`. If two attempts overlap, the later one finds the earlier one.
"""

import fcntl
import itertools
import json
import os
import pathlib
import time

import attune

attune.init()
traces = pathlib.Path(os.environ["TRACES"])
name = f"{attune.trial}.{attune.attempt}.{attune.rank}"
trace = open(traces / name, "w")
fcntl.flock(trace, fcntl.LOCK_EX)
json.dump({"pid": os.getpid(), "host": os.environ["HOST"], "from": attune.step}, trace)
trace.flush()
for path in traces.glob(f"{attune.trial}.*"):
    if path.name.split(".")[1] != str(attune.attempt):
        with open(path) as other:
            try:
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                with open(traces / "twice", "a") as out:
                    out.write(f"{name} on {os.environ['HOST']} while {path.name}: {path.read_text()}\n")

total = 0
if attune.checkpoint:
    total = json.loads((attune.checkpoint / "total.json").read_text())
assert total == sum(range(attune.step + 1)), total


def save(folder):
    (folder / "total.json").write_text(json.dumps(total))
    (folder / "ballast").write_bytes(os.urandom(attune.config.get("ballast", 0)))


for step in itertools.count(attune.step + 1):
    gate = os.path.join(os.environ["GATES"], f"step-{step}")
    if attune.rank == 0 and os.path.exists(gate):
        with open(gate) as held:
            fcntl.flock(held, fcntl.LOCK_SH)
    time.sleep(attune.config.get("pause", 0))
    total += step
    attune.progress()
    attune.report({"score": total}, step, checkpoint=save)
