"""Fits a line by gradient descent. Each worker has a part of the points; rank 0 saves checkpoints."""

import json
import os
import time

import attune

STEPS = 6
POINTS = [(x / 50, 2 * x / 50 + 5) for x in range(100)]

attune.init()
slope, intercept = 0.0, 0.0
if attune.checkpoint:
    slope, intercept = json.loads((attune.checkpoint / "line.json").read_text())


def loss():
    return sum((slope * x + intercept - y) ** 2 for x, y in POINTS) / len(POINTS)


def save(folder):
    (folder / "line.json").write_text(json.dumps([slope, intercept]))


for step in range(attune.step + 1, STEPS + 1):
    for x, y in POINTS:
        error = slope * x + intercept - y
        slope -= attune.config["lr"] * error * x
        intercept -= attune.config["lr"] * error
    time.sleep(float(os.environ.get("SECONDS_PER_STEP", 0)))  # a real program needs longer
    attune.progress()
    attune.report({"loss": loss()}, step=step, checkpoint=save)
