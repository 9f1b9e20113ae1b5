"""`attune train`: one training run without a sweep file, on the executors of a server or on this machine."""

import sys
import unittest

from support import EndToEnd, WORKER

# Uses the variables of torchrun and nothing of Attune.
GREETING = "import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])"


class Train(EndToEnd):
    def train(self, *flags):
        return self.start("train", "--data-dir", self.data, "--metric", "score", "--mode", "max",
                          "-p", "x=0.5", "--env", f"GATES={self.gates}", *flags, "--", *WORKER)

    def serve(self):
        self.start("serve", "--with-executor", "--data-dir", self.data, "--port", 0,
                   "--rpc-port", 0).await_stderr("page")

    def test_a_script_for_torchrun_runs_as_a_gang(self):
        self.serve()
        training = self.start("train", "--data-dir", self.data, "--workers", 2, "--",
                              sys.executable, "-c", GREETING)
        self.assertEqual(training.wait(), 0, training.stderr)
        self.assertEqual(training.stdout, "rank 0 of 2\n")
        self.assertRegex("\n".join(training.stderr), "s1/0 completed")
        self.assertEqual(len(self.get("/sweeps/s1/trials/0")["attempts"][0]["ranks"]), 2)

    def test_shows_steps_and_metrics_of_reports(self):
        self.serve()
        training = self.train("--steps", 3)
        self.assertEqual(training.wait(), 0, training.stderr)
        self.assertEqual(training.stdout.splitlines(),
                         ["step 1 score 0.25", "step 2 score 0.375", "step 3 score 0.4375"])
        self.assertRegex("\n".join(training.stderr), r"s1/0 completed .*\nstep +3\nscore +0.4375")

    def test_a_dead_rank_gives_one_line_and_the_training_resumes(self):
        self.serve()
        training = self.train("--steps", 3, "-p", "mode=die-at", "-p", "at=3",
                              "--set", "checkpoint.every=1", "--set", "failure.backoff=10ms")
        self.assertEqual(training.wait(), 0, training.stderr)
        self.assertRegex("\n".join(training.stderr), r"trial 0 attempt 1\b.*\brank 0\b")
        self.assertEqual(training.stdout.splitlines(),
                         ["step 1 score 0.25", "step 2 score 0.375", "step 3 score 0.4375"])

    def test_a_final_failure_shows_its_reason(self):
        self.serve()
        training = self.train("-p", "mode=exit", "--set", "failure.max_restarts=0")
        self.assertEqual(training.wait(), 5)
        self.assertIn("giving up", training.stdout)
        self.assertRegex("\n".join(training.stderr), r"s1/0 failed\b.*\brank 0\b.*exit code 1\b")

    def test_a_waiting_gang_shows_its_reason(self):
        self.serve()
        training = self.train("--set", "resources.cpus_per_worker=5000")
        training.await_stderr("waiting: .*5000 CPUs")
        training.interrupt()
        self.assertEqual(training.wait(), 130)
        self.assertIn("attune sweep kill s1", "\n".join(training.stderr))
        self.assertEqual(self.get("/sweeps/s1")["state"], "running")

    def test_without_a_server_it_runs_locally_and_the_same_command_resumes(self):
        gate = self.close_gate(3)
        flags = ("--steps", 4, "--set", "checkpoint.every=1")
        training = self.train(*flags)
        training.await_stderr("no server ")
        self.await_report(trial=0, step=2)
        training.interrupt()
        self.assertEqual(training.wait(), 130)
        self.assertIn("same command", "\n".join(training.stderr))
        gate.close()
        training = self.train(*flags)
        self.assertEqual(training.wait(), 0, training.stderr)
        self.assertIn("resuming s1/0", "\n".join(training.stderr))
        self.assertIn("step 4 score", training.stdout)
        self.start("serve", "--data-dir", self.data, "--port", 0).await_stderr("page")
        self.check_histories_are_whole()


if __name__ == "__main__":
    unittest.main()
