#!/usr/bin/env python3
"""Checks the types of the package `attune` for Python, and of programs that use it, by `mypy --strict`."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from tools import ENVIRONMENT, copy_package, require

# mypy runs without torch and Transformers, so their types and base classes are Any. attune.lightning imports Lightning
# by a computed name, so its classes are always Any.
CONFIG = """\
[mypy]
strict = True
[mypy-torch.*,transformers.*]
ignore_missing_imports = True
[mypy-attune._loader,attune._trainer_data,attune.lightning,attune.transformers]
disallow_subclassing_any = False
"""

PROGRAM = """\
import pathlib
import tempfile
import typing

import attune
import attune.lightning
import attune.torch
import attune.transformers
from attune.client import Checkpoint, LocalServer


def train(config: typing.Mapping[str, typing.Any]) -> None:
    start: int = attune.step
    for step in range(start + 1, (attune.max_step or 3) + 1):
        with tempfile.TemporaryDirectory() as folder:
            attune.report({"loss": config["lr"] / step}, step, attune.Checkpoint.from_directory(folder))
    attune.log({"last": 1}, step=attune.step + 0.5)
    if attune.checkpoint:
        print(attune.checkpoint / "model.pt", attune.rank + attune.world_size, attune.device.upper())


def save(folder: pathlib.Path) -> None:
    (folder / "model.pt").touch()


with LocalServer() as server:
    sweep = server.create({"name": "typed"}, train=train)
    answer = sweep.wait(timeout=60, progress=True)
    trial = sweep.trial(3)
    checkpoint: Checkpoint = trial.checkpoint(best=True)
    print(answer["state"].upper(), checkpoint.to_directory("best").name, trial["attempts"][0]["number"] + 1)
    print([row["config"] for row in sweep.trials()], sweep.trials().to_pandas(), sweep.curves()[0]["values"])
attune.report({"loss": 0.5}, checkpoint=save, every_rank=True)
attune.torch.init_process_group("gloo")
print(attune.lightning.ReportCallback(log=["loss"]), attune.lightning.checkpoint(), attune.lightning.trainer_options())
print(attune.transformers.ReportCallback(["eval_loss"]), attune.transformers.training_arguments(every=500))
"""

# Faults that a type checker must find: the code of the program and the error.
FAULTS = {
    "attune.rank": "attune.rnak",
    '{"last": 1}': '{"last": "1"}',
    "checkpoint=save": "checkpoint=3",
    'trial["attempts"]': 'trial["attemps"]',
    'answer["state"]': 'answer["stat"]',
    "train=train": 'train="train"',
    "best=True": "steps=3",
    'init_process_group("gloo")': "init_process_group(3)",
    'log=["loss"]': "log=3",
    "every=500": "every=[500]",
}


class StrictTypes(unittest.TestCase):
    def check(self, *what, program=""):
        """Returns the output of mypy and its exit status."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            copy_package(folder)
            (folder / "mypy.ini").write_text(CONFIG)
            (folder / "program.py").write_text(program)
            run = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", *what], cwd=folder, text=True,
                                 env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return run.stdout, run.returncode

    def test_the_package_has_types(self):
        found, status = self.check("-p", "attune")
        self.assertEqual(status, 0, found)

    def test_a_program_has_types_and_its_faults_are_found(self):
        found, status = self.check("program.py", program=PROGRAM)
        self.assertEqual(status, 0, found)
        program = PROGRAM
        for right, wrong in FAULTS.items():
            self.assertEqual(program.count(right), 1, right)
            program = program.replace(right, wrong)
        found, _ = self.check("program.py", program=program)
        lines = program.splitlines()
        for wrong in FAULTS.values():
            [number] = [number for number, line in enumerate(lines, 1) if wrong in line]
            self.assertRegex(found, rf"program\.py:{number}: error: ", wrong)


if __name__ == "__main__":
    require("mypy")
    unittest.main()
