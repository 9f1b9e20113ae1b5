"""Real gangs: the Fashion-MNIST example with two DDP workers in each trial."""

import hashlib
import json
import os
import pathlib
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

    def test_a_killed_rank_ends_its_gang_and_the_trial_resumes(self):
        file = self.write(sweep(**SMALL, stop={"max_trials": 1},
                                scheduler={"name": "fifo", "max": 4}))
        run = self.run_sweep(file, "-o", "json")
        run.await_stderr(r"http://")
        self.await_report(trial=0, step=1)
        pids = self.get("/sweeps/s1/trials/0")["attempts"][0]["pids"]
        os.kill(pids[1], signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(json.loads(run.stdout)["trials"]["completed"], 1)
        serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        serve.await_stderr(r"http://")
        attempts = self.get("/sweeps/s1/trials/0")["attempts"]
        self.assertRegex(attempts[0]["failure"], r"\brank 1\b.*SIGKILL")
        self.assertGreaterEqual(attempts[1]["resumed_from"], 1)
        self.check_histories_are_whole()

    def test_promotions_and_a_pause_do_not_change_the_weights(self):
        """Compares the weights bit for bit: one run with three promotions and a pause, one without."""
        points = [{"lr": 0.1}] + 7 * [{"lr": 1e-6}]  # the first is the best at every rung
        spec = dict(SMALL, parameters=dict(SMALL["parameters"], lr={"min": 1e-6, "max": 0.2}))
        alone = self.write(sweep(**spec, initial_points=points[:1], stop={"max_trials": 1},
                                 scheduler={"name": "fifo", "max": 8}), "alone.yaml")
        code, out, err = self.attune("run", alone, "--data-dir", self.folder / "alone", "--port", 0,
                                     "-o", "json")
        self.assertEqual(code, 0, err)
        never_stopped = json.loads(out)["best"]["checkpoint"]

        serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--with-executor")
        serve.await_stderr(r"http://")
        promoted = sweep(**spec, initial_points=points, stop={"max_trials": 8},
                         max_concurrent_trials=1,
                         scheduler={"name": "asha", "mode": "promote", "min": 1, "max": 8,
                                    "reduction_factor": 2})
        status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST",
                                      json.dumps(promoted).encode())
        self.assertEqual(status, 201, answer)
        self.await_report(trial=0, step=5)  # after its last promotion, before its end
        self.request("/api/v1/sweeps/s1:pause", "POST")
        _, paused = self.await_event(lambda kind, data: kind == "attempt_changed" and
                                     data["trial"] == 0 and data["attempt"] == 4 and
                                     data["state"] == "ended")
        self.request("/api/v1/sweeps/s1:resume", "POST")
        self.await_event(lambda kind, data: kind == "sweep_changed" and
                         data["state"] == "completed", after=paused["seq"])

        trial = self.get("/sweeps/s1/trials/0")
        self.assertEqual((trial["state"], trial["step"]), ("completed", 8))
        resumed = [attempt["resumed_from"] for attempt in trial["attempts"]]
        self.assertEqual(resumed[:4], [None, 1, 2, 4])
        self.assertIn(resumed[4], (6, 7))
        last = next(kept for kept in trial["checkpoints"] if kept["step"] == 8)
        self.assertEqual(hashes(last["path"]), hashes(never_stopped))


def hashes(checkpoint):
    """Returns the hash of each file except the manifest, which names the attempt."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in pathlib.Path(checkpoint).iterdir() if path.name != "manifest.json"}


if __name__ == "__main__":
    unittest.main()
