"""attune.transformers with the real Trainer: gangs are judged, pause and resume from the Trainer's checkpoints.

Skipped where Python has no torch. Fails where it has no Transformers: scripts/setup installs both.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import PATIENCE_S, ROOT  # noqa: E402
from torch_environment import ENVIRONMENT, Trainers, main, run_block  # noqa: E402

SCRIPT = str(ROOT / "tests/e2e/programs/transformers_script.py")


class Transformers(Trainers):
    def test_a_gang_is_judged_pauses_and_resumes(self):
        best = self.pause_and_go_on("torch,transformers.trainer", SCRIPT, metric="eval_loss", rates=[0.003, 1e-7])
        self.check_logged_twice_an_epoch()
        files = {path.name for path in pathlib.Path(best["checkpoint"]).iterdir()}
        self.assertLessEqual({"model.safetensors", "optimizer.pt", "rng_state_0.pth", "rng_state_1.pth"}, files)

    def test_by_hand(self):
        run = subprocess.run([sys.executable, SCRIPT], env=ENVIRONMENT, cwd=self.folder, capture_output=True, text=True,
                             timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"^step [12]  eval_loss=", run.stdout, re.M)), 2, run.stdout)
        self.assertIn("trained 16\n", run.stdout)

    def test_the_block_of_the_documentation_runs(self):
        run = run_block("Transformers", "from transformers import Trainer, TrainingArguments\n"
                                        "import transformers_script\n"
                                        "model, config = transformers_script.network(), {'lr': 0.003}\n"
                                        "data, held_out = transformers_script.samples(32), "
                                        "transformers_script.samples(16)\n", self.folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(re.findall(r"^step (\d+)  eval_loss=", run.stdout, re.M), ["1", "2", "3"])


if __name__ == "__main__":
    main("transformers")
