"""A script with the package `attune` for tests of fleets. It has state, prints its host and passes gates."""

import fcntl
import itertools
import json
import os
import sys

import attune

attune.init()
print(json.dumps({"pid": os.getpid(), "group_rank": os.environ["GROUP_RANK"],
                  "local_rank": attune.local_rank, "local_world_size": attune.local_world_size,
                  "master": os.environ["MASTER_ADDR"],
                  "interface": os.environ.get("GLOO_SOCKET_IFNAME"),
                  "from": attune.checkpoint and str(attune.checkpoint)}), flush=True)
with open(f"pid-{os.getpid()}", "w") as file:
    file.write(f"{attune.attempt} {attune.rank}")

total = 0
if attune.checkpoint:
    total = json.loads((attune.checkpoint / "state" / "total.json").read_text())
assert total == sum(range(attune.step + 1)), total


def save(folder):
    (folder / "state").mkdir()
    (folder / "state" / "total.json").write_text(json.dumps(total))


for step in itertools.count(attune.step + 1):
    if step == int(os.environ.get("BREAKS_AT", 0)):  # set by the host's executor
        sys.exit("GPU 0: uncorrectable ECC error")
    gate = os.path.join(os.environ["GATES"], f"step-{step}")
    if attune.rank == 0 and os.path.exists(gate):
        with open(gate) as held:
            fcntl.flock(held, fcntl.LOCK_SH)
    total += step
    attune.progress()
    attune.report({"score": total}, step, checkpoint=save)
