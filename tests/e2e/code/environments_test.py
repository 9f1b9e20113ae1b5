"""Hosts install the packages of a sweep: into an environment that its trials share, without a network."""

import importlib.util
import json
import os
import pathlib
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from carried_code import Code  # noqa: E402
from support import ProcessExit, ROOT  # noqa: E402

TRAIN = """
import json, os, sys
import attune, tiny
place = {"prefix": sys.prefix, "attune": attune.__file__, "path": sys.path, "parent": os.getppid()}
open(os.environ["PLACES"] + f"/{os.environ['ATTUNE_TRIAL']}-{os.environ['RANK']}", "w").write(json.dumps(place))
attune.report({"score": tiny.SCORE})
"""

# In place of uv: it makes an environment without packages, waits at the gate, and fails if the file `fail` exists.
FAKE_UV = """#!/bin/sh
if [ "$1" = venv ]; then exec "$3" -I -m venv --without-pip "$4"; fi
echo $$ > "$GATES/uv.new"
mv "$GATES/uv.new" "$GATES/uv"
flock -s "$GATES/step-1" true
if [ -e "$GATES/fail" ]; then echo "no package of this name"; exit 1; fi
"""


def write_wheel(folder):
    """Writes a wheel of the package `tiny` into a new folder."""
    folder.mkdir()
    info = "tiny-1.0.dist-info/"
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "SCORE = 7\n")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL",
                       "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "".join(name + ",,\n" for name in wheel.namelist()) + info + "RECORD,,\n")


@unittest.skipUnless(importlib.util.find_spec("ensurepip"), "SKIPPED: Python without ensurepip (Debian: python3-venv)")
class Environments(Code):
    def setUp(self):
        super().setUp()
        (self.code / "train.py").write_text(TRAIN)
        (self.code / "requirements.txt").write_text("tiny==1.0\n")
        write_wheel(self.code / "wheels")
        # The package attune of the hosts. Their environments contain it, but not this variable.
        self.environment["PYTHONPATH"] = str(ROOT / "clients/python")
        self.serve()

    def create_with_environment(self, **changes):
        return self.create(**{"command": [sys.executable, "-m", "attune.launcher", "train.py"],
                              "env": {"PLACES": str(self.places)},
                              "environment": {"python": "requirements.txt", "wheels": "wheels"}, **changes})

    def environments(self, name):
        return list((self.home(name) / f"executors/{name}/environments").glob("*"))

    def use_fake_uv(self):
        folder = self.folder / "bin"
        folder.mkdir()
        (folder / "uv").write_text(FAKE_UV)
        (folder / "uv").chmod(0o755)
        self.environment["PATH"] = f"{folder}:{os.environ['PATH']}"

    def log(self, trial):
        return (self.home("a") / f"sweeps/s1/trials/{trial}/attempts/1/rank-0.log").read_text()

    def test_trials_share_an_environment_and_a_launcher(self):
        executor = self.executor("a")
        self.create_with_environment(stop={"max_trials": 3})
        self.completed()
        [environment] = self.environments("a")
        places = [self.place(trial) for trial in range(3)]
        self.assertEqual({place["prefix"] for place in places}, {str(environment / "venv")})
        [launcher] = {place["parent"] for place in places}
        self.assertNotEqual(launcher, executor.popen.pid, "the ranks were not forked by a launcher")
        for place in places:
            self.assertTrue(place["attune"].startswith(place["prefix"]), place)
            self.assertNotIn(str(ROOT / "clients/python"), place["path"])
        self.assertIn("[attune] building the environment of requirements.txt", self.log(0))
        self.assertIn("tiny", self.log(0))
        self.assertEqual(self.get("/sweeps/s1/trials/0")["best"], 7)

        # Another sweep with the same packages needs no other environment.
        (self.code / "train.py").write_text(TRAIN + "\n")
        self.create_with_environment()
        self.completed("s2")
        self.assertEqual(self.environments("a"), [environment])

    def test_a_sweep_fails_if_its_environment_cannot_be_built(self):
        self.use_fake_uv()
        (self.gates / "fail").touch()
        self.executor("a")
        self.create_with_environment()
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "failed")
        failure = self.get("/sweeps/s1/trials/0")["attempts"][-1]["failure"]
        self.assertIn("no package of this name", json.dumps(failure))

    def test_a_killed_executor_leaves_no_build_and_the_next_one_repeats_it(self):
        self.use_fake_uv()
        (self.code / "train.py").write_text("import attune\nattune.report({'score': 7})\n")
        gate = self.close_gate(1)
        executor = self.executor("a")
        self.create_with_environment()
        build = ProcessExit(self.until(lambda: (self.gates / "uv").exists() and int((self.gates / "uv").read_text())))
        executor.kill()
        self.assertTrue(build.wait(), "the build has outlived its executor")
        gate.close()
        self.executor("a")
        self.completed()
        [environment] = self.environments("a")
        self.assertTrue((environment / "complete").exists())

    def test_a_killed_trial_ends_the_build(self):
        self.use_fake_uv()
        self.close_gate(1)
        self.executor("a")
        self.create_with_environment()
        build = ProcessExit(self.until(lambda: (self.gates / "uv").exists() and int((self.gates / "uv").read_text())))
        code, _, err = self.attune("sweep", "kill", "s1", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertTrue(build.wait(), "the build has outlived its trial")


if __name__ == "__main__":
    unittest.main()
