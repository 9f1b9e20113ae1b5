"""A script with the package `attune`. Its checkpoints have MEGABYTES in two files, one of them in a subfolder."""

import itertools
import os

import attune

attune.init()
size = int(os.environ["MEGABYTES"]) << 20
if attune.checkpoint:  # reading it checks the whole checkpoint
    assert int((attune.checkpoint / "state" / "total.txt").read_text()) == attune.step


def save(folder):
    (folder / "state").mkdir()
    (folder / "state" / "total.txt").write_text(str(step))
    with open(folder / "model.bin", "wb") as file:
        file.write(os.urandom(1 << 20) * (size >> 20))


for step in itertools.count(attune.step + 1):
    attune.progress()
    attune.report({"score": float(step)}, step, checkpoint=save)
