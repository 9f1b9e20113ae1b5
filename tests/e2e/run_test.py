"""`attune run`: from a sweep file to its best configuration."""

import json
import os
import unittest

from support import EndToEnd, sweep


class Run(EndToEnd):
    def test_ends_with_one_json_object(self):
        code, out, err = self.attune("run", self.write(sweep()), "--data-dir", self.data, "--port",
                                     0, "-o", "json")
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        self.assertEqual(result["sweep"], "s1")
        self.assertEqual(result["state"], "completed")
        self.assertEqual(sum(result["trials"].values()), 8)
        self.assertGreater(result["trials"]["stopped"], 0)
        self.assertGreater(result["wall_seconds"], 0)
        best = result["best"]
        self.assertAlmostEqual(best["metrics"]["score"], best["config"]["x"] * (1 - 0.5 ** 4))
        self.assertTrue(os.path.isfile(os.path.join(best["checkpoint"], "manifest.json")))

    def test_explains_the_best_trial_and_the_stops(self):
        code, out, err = self.attune("run", self.write(sweep()), "--data-dir", self.data, "--port", 0)
        self.assertEqual(code, 0, err)
        self.assertIn("x", out)
        self.assertRegex(out + err, r"\bstopped\b.*\bstep 1\b.* 0\.\d+ .*\brank \d of \d")
        self.assertRegex(out + err, r"checkpoints/step-4-attempt-1")

    def test_promoted_trials_resume_from_their_checkpoints(self):
        file = self.write(sweep(stop={"max_trials": 12}, scheduler={
            "name": "asha", "mode": "promote", "min": 1, "max": 9, "reduction_factor": 3}))
        code, out, err = self.attune("run", file, "--data-dir", self.data, "--port", 0)
        self.assertEqual(code, 0, err)
        self.assertRegex(out + err, r"\bpromoted\b.*\brung 1\b.* 0\.\d+ .*\brank \d of \d+")
        self.start("serve", "--data-dir", self.data, "--port", 0).await_stderr(r"http://")
        trials = self.check_histories_are_whole()
        steps = sorted(trial["step"] for trial in trials)
        self.assertEqual(steps[:8], [1] * 8)  # a third of the twelve trials continued, and a third of these
        self.assertEqual(steps[8:], [3, 3, 3, 9])
        self.assertEqual([trial["attempt_count"] for trial in trials if trial["step"] == 1], [1] * 8)

    def test_grid_ends_after_its_last_point(self):
        file = self.write(sweep(searcher={"name": "grid"}, stop={},
                                parameters={"x": {"values": [0.1, 0.2, 0.3]}},
                                scheduler={"name": "fifo", "max": 2}))
        code, out, err = self.attune("run", file, "--data-dir", self.data, "--port", 0, "-o", "json")
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        self.assertEqual(result["trials"]["completed"], 3)
        self.assertEqual(result["best"]["config"], {"x": 0.3})

    def test_a_program_that_ends_early_completes(self):
        file = self.write(sweep(command=["/bin/echo", "trained with", "${args}"],
                                scheduler={"name": "fifo"}, stop={"max_trials": 1}))
        code, out, err = self.attune("run", file, "--data-dir", self.data, "--port", 0, "-o", "json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["trials"]["completed"], 1)
        log = self.data / "sweeps/s1/trials/0/attempts/1/rank-0.log"
        self.assertRegex(log.read_text(), r"^trained with --x=0\.\d+\n$")

    def test_an_interrupt_shows_the_command_that_resumes_the_sweep(self):
        gate = self.close_gate(3)
        file = self.write(sweep())
        first = self.run_sweep(file)
        first.await_stderr(r"http://")
        self.await_report(trial=0, step=2)
        first.interrupt()
        self.assertEqual(first.wait(), 130)
        self.assertIn("attune run", "\n".join(first.stderr))
        gate.close()
        code, out, err = self.attune("run", file, "--data-dir", self.data, "--port", 0, "-o", "json")
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        self.assertEqual(result["sweep"], "s1")
        self.assertEqual(sum(result["trials"].values()), 8)

    def test_a_changed_file_is_refused_applied_as_an_edit_or_run_again(self):
        gate = self.close_gate(3)
        first = self.run_sweep(self.write(sweep()))
        first.await_stderr(r"http://")
        self.await_report(trial=0, step=2)
        first.interrupt()
        self.assertEqual(first.wait(), 130)
        # JSON is valid YAML. This is the same file in another form, with a comment.
        same = self.write("# a comment\n" + json.dumps(sweep(), indent=1))
        again = self.run_sweep(same)
        again.await_stderr(r"\bresuming\b.*\bs1\b")
        again.interrupt()
        self.assertEqual(again.wait(), 130)
        changed = self.write(sweep(stop={"max_trials": 3}))
        code, _, err = self.attune("run", changed, "--data-dir", self.data, "--port", 0)
        self.assertEqual(code, 2, err)
        self.assertIn("s1: stop.max_trials 3 (was 8)\n", err)
        gate.close()
        code, out, err = self.attune("run", changed, "--data-dir", self.data, "--port", 0, "--edit", "-o", "json")
        self.assertEqual(code, 0, err)
        self.assertEqual(sum(json.loads(out)["trials"].values()), 3)
        self.assertEqual(self.rows("SELECT count(*) FROM sweeps"), [(1,)])

    def test_a_sweep_that_has_ended_is_not_resumed(self):
        file = self.write(sweep(stop={"max_trials": 1}))
        self.assertEqual(self.run_sweep(file).wait(), 0)
        code, out, err = self.attune("run", file, "--data-dir", self.data, "--port", 0, "-o", "json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["sweep"], "s2")


class Control(EndToEnd):
    def begin(self):
        self.close_gate(2)
        run = self.run_sweep(self.write(sweep()), "-o", "json")
        run.await_stderr(r"http://")
        self.await_report(trial=0, step=1)
        return run

    def test_kill_ends_the_sweep_at_once(self):
        run = self.begin()
        code, _, err = self.attune("sweep", "kill", "s1", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        run.wait()
        self.assertEqual(json.loads(run.stdout)["state"], "killed")

    def test_stop_finishes_running_trials_and_starts_none(self):
        gate = self.close_gate(4)
        run = self.run_sweep(self.write(sweep(scheduler={"name": "fifo", "max": 4})), "-o", "json")
        run.await_stderr(r"http://")
        self.await_report(trial=0, step=3)
        created = len(self.get("/sweeps/s1/trials")["trials"])
        code, _, err = self.attune("sweep", "stop", "s1", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        gate.close()
        run.wait()
        result = json.loads(run.stdout)
        self.assertEqual(result["state"], "stopped")
        self.assertEqual(result["trials"]["completed"], created)

    def test_client_commands_find_the_server_of_the_folder(self):
        self.begin()
        code, out, err = self.attune("sweep", "list", "--data-dir", self.data, "-o", "json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["sweeps"][0]["name"], "e2e")
        code, out, err = self.attune("trial", "get", "s1/0", "--data-dir", self.data, "-o", "json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["history"][0]["step"], 1)
        code, out, err = self.attune("trial", "logs", "s1/0", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn("step 1 score", out)
        self.assertEqual(self.attune("sweep", "get", "s99", "--data-dir", self.data)[0], 3)


if __name__ == "__main__":
    unittest.main()
