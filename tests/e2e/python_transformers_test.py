"""attune.transformers with the real Trainer: gangs that are judged, pause and go on from its checkpoints.

Skipped where Python has no torch or no Transformers, which scripts/setup does not install.
"""

import json
import pathlib
import re
import subprocess
import sys

from support import EndToEnd, PATIENCE_S, ROOT, sweep
from torch_environment import ENVIRONMENT, main

SCRIPT = str(ROOT / "tests/e2e/programs/transformers_script.py")


class Transformers(EndToEnd):
    def test_a_gang_is_judged_pauses_and_goes_on(self):
        """Two trials: the better comes first, pauses at step 1, and goes on when the other has come there."""
        self.environment.update(ENVIRONMENT)
        run = self.run_sweep(self.write(sweep(
            command=[sys.executable, "-m", "attune.launcher", "--import", "torch,transformers.trainer", SCRIPT],
            metric={"name": "eval_loss", "mode": "min"}, parameters={"lr": {"values": [0.003, 1e-7]}},
            searcher={"name": "grid"}, max_concurrent_trials=1, stop={"max_trials": 2},
            scheduler={"name": "asha", "min": 1, "max": 2, "reduction_factor": 2, "mode": "promote"},
            resources={"workers": 2, "cpus_per_worker": 1})), "-o", "json")
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(self.rows("SELECT trial, resumed_from FROM attempts ORDER BY decided"),
                         [(0, None), (1, None), (0, 1)])
        # Each epoch of 4 batches on each of 2 ranks is logged twice, also by the attempt that went on.
        self.assertEqual(self.rows("SELECT trial, step FROM logged ORDER BY trial, step"),
                         [(0, 0.5), (0, 1), (0, 1.5), (0, 2), (1, 0.5), (1, 1)])
        best = json.loads(run.stdout)["best"]
        files = {path.name for path in pathlib.Path(best["checkpoint"]).iterdir()}
        self.assertLessEqual({"model.safetensors", "optimizer.pt", "rng_state_0.pth", "rng_state_1.pth"}, files)

    def test_by_hand(self):
        run = subprocess.run([sys.executable, SCRIPT], env=ENVIRONMENT, cwd=self.folder, capture_output=True, text=True,
                             timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"^step [12]  eval_loss=", run.stdout, re.M)), 2, run.stdout)
        self.assertIn("trained 16\n", run.stdout)


if __name__ == "__main__":
    main("transformers")
