"""attune.lightning with the real Lightning: gangs are judged, pause and resume from Lightning's checkpoints.

Skipped where Python has no torch. Fails where it has no Lightning: scripts/setup installs both.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import PATIENCE_S, ROOT, sweep  # noqa: E402
from torch_environment import ENVIRONMENT, Trainers, main, run_block  # noqa: E402

SCRIPT = str(ROOT / "tests/e2e/programs/lightning_script.py")
PLAIN_SCRIPT = str(ROOT / "tests/e2e/programs/plain_lightning.py")


class Lightning(Trainers):
    def finish(self, *words):
        best = self.pause_and_go_on("torch,pytorch_lightning", SCRIPT, *words, metric="val_loss", rates=[0.05, 1e-6])
        self.assertTrue(best["checkpoint"].endswith("step-2-attempt-2"), best)
        self.assertEqual(set(best["metrics"]), {"loss", "val_loss"})

    def test_a_gang_is_judged_pauses_and_resumes(self):
        self.finish()
        self.check_logged_twice_an_epoch()

    def test_validations_can_be_steps(self):
        self.finish("validation_end")
        self.check_logged_twice_an_epoch()

    def test_an_unchanged_script_trains_in_a_slurm_job(self):
        # The same as in a Slurm pilot, where the executor is the only task of its step.
        self.environment.update({"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "pilot", "SLURM_JOB_NODELIST": "n1",
                                 "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NTASKS": "1",
                                 "SLURM_NTASKS_PER_NODE": "1", "SLURM_STEP_ID": "0"})
        run = self.run_sweep(self.write(sweep(
            command=[sys.executable, PLAIN_SCRIPT], metric={"name": "loss", "mode": "min"},
            reports={"pattern": r"rank 0 of 2: batches=4 loss=(?P<loss>\S+)"}, scheduler={"name": "fifo"},
            resources={"workers": 2, "cpus_per_worker": 1}, stop={"max_trials": 1},
            failure={"max_restarts": 0})), "-o", "json")
        self.assertEqual(run.wait(), 0, run.stderr)
        log = (self.data / "sweeps/s1/trials/0/attempts/1/rank-1.log").read_text()
        self.assertIn("rank 1 of 2: batches=4", log)

    def test_by_hand(self):
        run = subprocess.run([sys.executable, SCRIPT], env=ENVIRONMENT, capture_output=True, text=True,
                             timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"^step [12]  loss=\S+  val_loss=", run.stdout, re.M)), 2, run.stdout)
        self.assertIn("fitted 2 16\n", run.stdout)

    def test_the_block_of_the_documentation_runs(self):
        run = run_block("Lightning", "from lightning_script import Product as Module\n"
                                     "from pytorch_lightning import Trainer\n"
                                     "from torch.utils.data import DataLoader, TensorDataset\n"
                                     "import torch\n"
                                     "data = DataLoader(TensorDataset(torch.ones(64, 2), torch.ones(64, 1)), 32)\n"
                                     "config = {'lr': 0.01}\n", self.folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(re.findall(r"^step (\d+)  loss=", run.stdout, re.M), [str(step) for step in range(1, 11)])


if __name__ == "__main__":
    main("pytorch_lightning")
