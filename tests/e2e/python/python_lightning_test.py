"""attune.lightning with the real Lightning: gangs that are judged, pause and go on from its checkpoints.

Skipped where Python has no torch. Fails where it has no Lightning: scripts/setup installs both.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import PATIENCE_S, ROOT  # noqa: E402
from torch_environment import ENVIRONMENT, Trainers, main  # noqa: E402

SCRIPT = str(ROOT / "tests/e2e/programs/lightning_script.py")


class Lightning(Trainers):
    def finish(self, *words):
        best = self.pause_and_go_on("torch,pytorch_lightning", SCRIPT, *words, metric="val_loss", rates=[0.05, 1e-6])
        self.assertTrue(best["checkpoint"].endswith("step-2-attempt-2"), best)
        self.assertEqual(set(best["metrics"]), {"loss", "val_loss"})

    def test_a_gang_is_judged_pauses_and_goes_on(self):
        self.finish()
        self.check_logged_twice_an_epoch()

    def test_validations_are_steps_where_epochs_are_long(self):
        self.finish("validation_end")
        self.check_logged_twice_an_epoch()

    def test_by_hand(self):
        run = subprocess.run([sys.executable, SCRIPT], env=ENVIRONMENT, capture_output=True, text=True,
                             timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"^step [12]  loss=\S+  val_loss=", run.stdout, re.M)), 2, run.stdout)
        self.assertIn("fitted 2 16\n", run.stdout)


if __name__ == "__main__":
    main("pytorch_lightning")
