"""A training script with the package `attune`. Its checkpoints have CHECKPOINT_MB megabytes."""

import os

import attune


def save(folder):
    (folder / "weights").write_bytes(os.urandom(int(os.environ["CHECKPOINT_MB"]) << 20))


attune.init()
print(f"goes on from step {attune.step}", flush=True)
for step in range(attune.step + 1, attune.max_step + 1):
    attune.report({"score": step}, checkpoint=save)
