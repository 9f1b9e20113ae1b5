"""A training script with the package `attune`. The parameter `mode` selects its fault."""

import itertools
import json
import os
import sys

import attune

config = attune.init({"mode": "well"})
mode, last = config["mode"], attune.rank == attune.world_size - 1
with open(f"pid-{os.getpid()}", "w"):
    pass  # runs until it is killed; the test checks that it is gone
print(f"rank {attune.rank} begins, a child of {os.getppid()}", flush=True)

if mode == "forget":
    sys.exit(0)
if mode == "babble":
    os.write(3, b'{"type": "report", "step": "first"}\n')
    attune.heartbeat(60)
    sys.stdin.read()


def save(folder):
    (folder / f"state-{attune.rank}.json").write_text(json.dumps({"step": attune.step + 1}))


if attune.checkpoint:
    for rank in range(attune.world_size):
        state = json.loads((attune.checkpoint / f"state-{rank}.json").read_text())
        assert state["step"] == attune.step, (state, attune.step)
for step in itertools.count(attune.step + 1):
    if mode == "raise" and last and step == 2:
        raise ValueError("too green")
    if mode == "exit" and last and step == 2:
        print("giving up")
        sys.exit(1)
    if mode == "out-of-step" and last and step == 2:
        step = 5
    attune.progress()
    attune.log({"halfway": config["x"]}, step - 0.5)
    try:
        attune.report({"score": config["x"] * (1 - 0.5 ** step), "samples": attune.time + 32.5},
                      step, checkpoint=save, every_rank=True)
    except attune.TrialEnded as end:
        print(f"rank {attune.rank} ends with {end.action} at step {attune.step}", flush=True)
        raise
