"""Trials run patched code: of a patch that a user enqueues, or of patches that a parameter chooses."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from carried_code import Code  # noqa: E402
from support import ROOT  # noqa: E402

NET = "lib/net.py"
BASE = "def score(x):\n    return x\n"


def patch(before, after, path=NET):
    """Returns the patch of a file with one function."""
    old, new = before.splitlines(), after.splitlines()
    return "\n".join([f"--- a/{path}", f"+++ b/{path}", f"@@ -1,{len(old)} +1,{len(new)} @@", *("-" + line for line in old),
                      *("+" + line for line in new), ""])


TEN = patch(BASE, "def score(x):\n    return 10 + x\n")


class Patches(Code):
    def setUp(self):
        super().setUp()
        self.serve()
        self.executor("a")

    def best_of(self, trial, id="s1"):
        return self.get(f"/sweeps/{id}/trials/{trial}")["best"]

    def enqueue(self, text, *options):
        """Enqueues a trial with a patch; returns the exit code and both outputs."""
        file = self.folder / "change.diff"
        file.write_text(text)
        return self.attune("trial", "enqueue", "s1", "--patch", file, "-p", "x=0.5", *options, "--data-dir", self.data)

    def check_out(self, trial):
        """Checks a trial out, trains it again, and returns its folder. The result must be the same."""
        best = self.best_of(int(trial.partition("/")[2]), trial.partition("/")[0])
        folder = self.folder / "again" / trial.replace("/", "-")
        code, _, err = self.attune("trial", "checkout", trial, folder, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        code, out, err = self.attune("sweep", "create", folder / "attune-trial/sweep.yaml", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.completed(out.strip())
        self.assertEqual(self.best_of(0, out.strip()), best)
        return folder

    def test_a_trial_with_a_patch_runs_the_patched_code(self):
        gate = self.close_gate(1)
        self.create()
        code, out, err = self.enqueue(TEN)
        self.assertEqual((code, out.strip()), (0, "s1/1"), err)
        gate.close()
        self.completed()
        self.assertLess(self.best_of(0), 1)
        self.assertEqual(self.best_of(1), 10.5)
        plain, patched = (self.get(f"/sweeps/s1/trials/{trial}") for trial in range(2))
        self.assertEqual(plain["patch"], "")
        self.assertNotEqual(plain["code"], patched["code"])
        # The patch changed one file, so the server stores one more.
        self.assertEqual(len(self.stored_files()), 4)

        self.assertIn("10 + x", (self.check_out("s1/1") / NET).read_text())

    def test_a_patch_that_does_not_apply_is_refused(self):
        gate = self.close_gate(1)
        self.create()
        code, _, err = self.enqueue(patch("def other(x):\n    return x\n", "pass\n"))
        self.assertEqual(code, 2, err)
        self.assertIn(NET, err)
        code, _, err = self.enqueue(patch(BASE, "pass\n", path="../../../out.py"))
        self.assertEqual(code, 2, err)
        self.assertEqual(len(self.get("/sweeps/s1/trials")["trials"]), 1)
        gate.close()
        self.completed()

    def test_parameters_choose_among_patches(self):
        (self.code / "ten.diff").write_text(TEN)
        (self.code / "power.diff").write_text(
            "--- a/lib/net.py\n+++ b/lib/net.py\n@@ -1,2 +1,3 @@\n def score(x):\n+    x = x * 100\n     return x\n")
        self.create(parameters={"x": {"value": 0.5}, "change": {"patches": ["none", "ten.diff", "power.diff"]}},
                    searcher={"name": "grid"}, stop={"max_trials": 3})
        self.completed()
        best = {self.get(f"/sweeps/s1/trials/{trial}")["config"]["change"]: self.best_of(trial) for trial in range(3)}
        self.assertEqual(best, {"none": 0.5, "ten.diff": 10.5, "power.diff": 50})
        for trial in range(3):
            self.check_out(f"s1/{trial}")

    def test_patches_that_do_not_apply_together_are_refused_when_the_sweep_is_created(self):
        (self.code / "ten.diff").write_text(TEN)
        (self.code / "sweep.yaml").write_text(json.dumps(self.spec(
            parameters={"x": {"value": 0.5}, "a": {"patches": ["none", "ten.diff"]},
                        "b": {"patches": ["ten.diff", "none"]}})))
        code, _, err = self.attune("sweep", "create", self.code / "sweep.yaml", "--data-dir", self.data)
        self.assertEqual(code, 2, err)
        self.assertIn("ten.diff, then ten.diff", err)
        self.assertEqual(self.get("/sweeps")["sweeps"], [])

    def test_python_enqueues_a_trial_with_a_patch(self):
        gate = self.close_gate(1)
        self.create()
        (self.folder / "change.diff").write_text(TEN)
        program = ("import sys, attune.client\n"
                   "server = attune.client.Server(data_dir=sys.argv[1])\n"
                   "print(server.sweep('s1').enqueue({'x': 0.25}, patch=sys.argv[2])['number'])\n")
        done = subprocess.run([sys.executable, "-c", program, self.data, self.folder / "change.diff"],
                              env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python")}, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)
        gate.close()
        self.completed()
        self.assertEqual(self.best_of(1), 10.25)


if __name__ == "__main__":
    unittest.main()
