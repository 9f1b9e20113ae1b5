#!/usr/bin/env python3
"""Checks the types of the package `attune` for Python, and of programs that use it, by `mypy --strict`."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from tools import ENVIRONMENT, copy_package, require

# Modules whose functions have no types yet. Every other module, also a new one, has them.
UNTYPED = ["_channel", "_control", "_trial", "lightning", "torch", "transformers"]

CONFIG = f"""\
[mypy]
strict = True
untyped_calls_exclude = {",".join(f"attune.{name}" for name in UNTYPED)}
""" + "".join(f"[mypy-attune.{name}]\nignore_errors = True\n" for name in UNTYPED)

PROGRAM = """\
import pathlib
import tempfile
import typing

import attune
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
"""

# A fault that a type checker finds: what the program says, and what is wrong there.
FAULTS = {
    "attune.rank": "attune.rnak",
    '{"last": 1}': '{"last": "1"}',
    "checkpoint=save": "checkpoint=3",
    'trial["attempts"]': 'trial["attemps"]',
    'answer["state"]': 'answer["stat"]',
    "train=train": 'train="train"',
    "best=True": "steps=3",
}


class StrictTypes(unittest.TestCase):
    def check(self, *what, program=""):
        """What mypy prints, and its exit status."""
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
