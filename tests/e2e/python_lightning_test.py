"""attune.lightning with the real Lightning: gangs that are judged, pause and go on from its checkpoints.

Skipped where Python has no torch or no Lightning: neither its own nor those of scripts/setup.
"""

import json
import re
import subprocess
import sys

from support import EndToEnd, PATIENCE_S, ROOT, sweep
from torch_environment import ENVIRONMENT, main

SCRIPT = str(ROOT / "tests/e2e/programs/lightning_script.py")


class Lightning(EndToEnd):
    def setUp(self):
        super().setUp()
        self.environment.update(ENVIRONMENT)

    def finish(self, *words):
        """Two trials: the better comes first, pauses at step 1, and goes on when the other has come there."""
        run = self.run_sweep(self.write(sweep(
            command=[sys.executable, "-m", "attune.launcher", "--import", "torch,pytorch_lightning", SCRIPT, *words],
            metric={"name": "val_loss", "mode": "min"}, parameters={"lr": {"values": [0.05, 1e-6]}},
            searcher={"name": "grid"}, max_concurrent_trials=1, stop={"max_trials": 2},
            scheduler={"name": "asha", "min": 1, "max": 2, "reduction_factor": 2, "mode": "promote"},
            resources={"workers": 2, "cpus_per_worker": 1})), "-o", "json")
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(self.rows("SELECT trial, resumed_from FROM attempts ORDER BY decided"), [(0, None), (1, None), (0, 1)])
        best = json.loads(run.stdout)["best"]
        self.assertTrue(best["checkpoint"].endswith("step-2-attempt-2"), best)
        self.assertEqual(set(best["metrics"]), {"loss", "val_loss"})

    def test_a_gang_is_judged_pauses_and_goes_on(self):
        self.finish()
        # Each epoch of 4 batches on each of 2 ranks is logged twice, also by the attempt that went on.
        self.assertEqual(self.rows("SELECT trial, step FROM logged ORDER BY trial, step"),
                         [(0, 0.5), (0, 1), (0, 1.5), (0, 2), (1, 0.5), (1, 1)])

    def test_validations_are_steps_where_epochs_are_long(self):
        self.finish("validation_end")

    def test_by_hand(self):
        run = subprocess.run([sys.executable, SCRIPT], env=ENVIRONMENT, capture_output=True, text=True,
                             timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"^step [12]  loss=\S+  val_loss=", run.stdout, re.M)), 2, run.stdout)
        self.assertIn("fitted 2 16\n", run.stdout)


if __name__ == "__main__":
    main("pytorch_lightning")
