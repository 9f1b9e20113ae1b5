"""Real gangs: the Fashion-MNIST example, two DDP workers a trial."""

import json
import os
import re
import signal
import subprocess
import unittest

from support import EndToEnd, FASHION_MNIST, sweep

SMALL = {  # a trial of a few seconds on two cores
    "command": [FASHION_MNIST],
    "metric": {"name": "accuracy", "mode": "max"},
    "parameters": {"lr": {"min": 0.02, "max": 0.2, "scale": "log"}, "width": {"value": 8},
                   "samples_per_step": {"value": 2048}},
    "resources": {"workers": 2, "cpus_per_worker": 1},
}


class Gang(EndToEnd):
    def test_trains_and_its_checkpoint_reproduces_the_accuracy(self):
        file = self.write(sweep(**SMALL, stop={"max_trials": 2},
                                scheduler={"name": "asha", "min": 1, "max": 3, "reduction_factor": 2}))
        code, out, err = self.attune("run", file, "--data-dir", self.data, "--port", 0, "-o", "json")
        self.assertEqual(code, 0, err)
        best = json.loads(out)["best"]
        evaluated = subprocess.run([FASHION_MNIST, "--evaluate", best["checkpoint"]],
                                   capture_output=True, text=True, check=True)
        accuracy = float(re.search(r"accuracy\D*([0-9.]+)", evaluated.stdout).group(1))
        self.assertAlmostEqual(accuracy, best["metrics"]["accuracy"], places=6)

    def test_a_killed_rank_ends_its_gang_and_the_trial_goes_on(self):
        file = self.write(sweep(**SMALL, stop={"max_trials": 1},
                                scheduler={"name": "fifo", "max": 4}))
        run = self.run_sweep(file, "-o", "json")
        run.await_stderr(r"http://")
        self.await_report(trial=0, step=1)
        pids = self.get("/sweeps/s1/trials/0")["attempts_list"][0]["pids"]
        os.kill(pids[1], signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(json.loads(run.stdout)["trials"]["completed"], 1)
        serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        serve.await_stderr(r"http://")
        attempts = self.get("/sweeps/s1/trials/0")["attempts_list"]
        self.assertIn("rank 1 was killed by SIGKILL", attempts[0]["failure"])
        self.assertGreaterEqual(attempts[1]["resumed_from"], 1)
        self.check_histories_are_whole()


if __name__ == "__main__":
    unittest.main()
