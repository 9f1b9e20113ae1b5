"""Python gangs with torch: the example, and a script that only uses torchrun.

Skipped where Python has no torch: neither its own nor the one of scripts/setup.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import EndToEnd, ROOT, sweep  # noqa: E402
from torch_environment import ENVIRONMENT, main  # noqa: E402

EXAMPLE = ROOT / "examples/python_ddp"
SCRIPT = ROOT / "tests/e2e/programs/torchrun_script.py"


class Ddp(EndToEnd):
    def setUp(self):
        super().setUp()
        self.environment.update(ENVIRONMENT)

    def finish(self, **changes):
        run = self.run_sweep(self.write(sweep(**{"resources": {"workers": 2, "cpus_per_worker": 1},
                                                 **changes})), "-o", "json")
        return run.wait(), json.loads(run.stdout), "\n".join(run.stderr)

    def test_the_example_trains_pauses_and_resumes(self):
        file = (EXAMPLE / "sweep.yaml").read_text()
        self.assertIn("command: [python3, -m, attune.launcher, ddp.py]", file)
        code, result, err = self.finish(
            command=[sys.executable, "-m", "attune.launcher", str(EXAMPLE / "ddp.py"),
                     "--test-samples", "1000"],
            metric={"name": "accuracy", "mode": "max"}, stop={"max_trials": 2},
            parameters={"lr": {"min": 0.02, "max": 0.2}, "width": {"value": 8},
                        "samples_per_step": {"value": 2048}},
            scheduler={"name": "asha", "min": 1, "max": 2, "reduction_factor": 2, "mode": "promote"})
        self.assertEqual(code, 0, err)
        self.assertGreater(result["best"]["metrics"]["accuracy"], 0.4)
        self.assertTrue(os.path.exists(result["best"]["checkpoint"] + "/state.pt"))
        warnings = "".join(log.read_text() for log in (self.data / "launchers").iterdir())
        self.assertEqual(warnings, "")  # no warning about threads, because torch and numpy end theirs before a fork

    def test_the_verdicts_on_the_example_follow_successive_halving(self):
        """Computes the verdicts from the values: the best n/2 of n trials at a rung continue, and a single trial does."""
        code, _, err = self.finish(
            command=[sys.executable, "-m", "attune.launcher", str(EXAMPLE / "ddp.py"),
                     "--test-samples", "500"],
            metric={"name": "accuracy", "mode": "max"}, stop={"max_trials": 3},
            searcher={"name": "grid"},
            parameters={"lr": {"values": [0.1, 0.00001, 0.05]}, "width": {"value": 8},
                        "samples_per_step": {"value": 512}},
            scheduler={"name": "asha", "min": 1, "max": 2, "reduction_factor": 2})
        self.assertEqual(code, 0, err)
        decisions = self.rows("SELECT trial, rung, value, verdict FROM decisions WHERE rung > 0 ORDER BY seq")
        rungs = {1: [], 2: []}
        for trial, rung, value, verdict in decisions:
            rungs[rung].append(value)
            n = len(rungs[rung])
            rank = sum(other >= value for other in rungs[rung])
            stops = rung < 2 and n >= 2 and rank > n // 2
            self.assertEqual(verdict, "stop" if stops else "continue", (trial, rung, value, rungs))
        self.assertEqual(len(rungs[1]), 3)
        self.assertIn("stop", [verdict for *_, verdict in decisions])

    def test_the_example_runs_under_torchrun(self):
        run = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                              "--nproc-per-node", "2", EXAMPLE / "ddp.py", "--steps", "1",
                              "--test-samples", "1000"],
                             env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"^step 1  accuracy=", run.stdout, re.M)), 1, run.stdout)

    def torchrun_script(self, mode, **changes):
        return self.finish(command=[sys.executable, str(SCRIPT), "${args}"],
                           reports={"pattern": r"epoch (?P<step>\d+) score=(?P<score>\S+)"},
                           parameters={"mode": {"value": mode}}, searcher={"name": "grid"},
                           scheduler={"name": "fifo"}, stop={"max_trials": 1},
                           failure={"max_restarts": 0}, **changes)

    def test_a_script_for_torchrun_runs_unchanged(self):
        code, result, err = self.torchrun_script("well")
        self.assertEqual(code, 0, err)
        self.assertEqual(result["best"]["metrics"], {"score": 3.0})

    def test_blames_the_rank_that_raised_and_not_the_rank_that_lost_it(self):
        code, _, err = self.torchrun_script("raise")
        self.assertEqual(code, 5, err)
        failure = self.rows("SELECT failure FROM attempts")[0][0]
        self.assertIn("rank 1", failure)
        self.assertIn("too green", failure)


if __name__ == "__main__":
    main()
