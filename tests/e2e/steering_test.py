"""Users control sweeps and trials during and after a run: pause, extend, retry, ask and tell."""

import json
import os
import unittest

from support import WORKER, EndToEnd, sweep

FOREVER = 1_000_000  # steps; the trial ends only when it is told to


class Steering(EndToEnd):
    def serve(self, *args):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, *args)
        server.await_stderr(r"http://")
        return server

    def begin(self, **changes):
        server = self.serve("--with-executor")
        self.create(sweep(**changes))
        return server

    def create(self, spec):
        status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST",
                                      json.dumps(spec).encode())
        self.assertEqual(status, 201, answer)

    def steer(self, *words):
        code, out, err = self.attune(*words, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        return out + err

    def ask(self):
        return json.loads(self.steer("ask", "s1", "-o", "json"))

    def tell(self, asked, *words):
        return self.steer("tell", f"s1/{asked['trial']}", "--epoch", asked["epoch"], *words)

    def await_sweep(self, state, after=0):
        _, data = self.await_event(lambda kind, data: kind == "sweep_changed" and
                                   data["state"] == state, after)
        return data["seq"]

    def test_a_paused_sweep_resumes_from_its_checkpoints(self):
        self.begin(scheduler={"name": "fifo", "max": FOREVER}, stop={"max_trials": 1})
        self.await_report(trial=0, step=3)
        self.assertIn("checkpoint", self.steer("sweep", "pause", "s1"))
        _, data = self.await_event(lambda kind, data: kind == "attempt_changed" and
                                   data["state"] == "ended")
        paused = data["seq"]
        trial = self.get("/sweeps/s1/trials/0")
        self.assertEqual(trial["attempts"][0]["outcome"], "paused")
        self.steer("sweep", "resume", "s1")
        self.await_event(lambda kind, data: kind == "trial_reported" and
                         data["step"] == trial["step"] + 1, after=paused)
        again = self.get("/sweeps/s1/trials/0")
        self.assertEqual(again["attempts"][1]["resumed_from"], trial["step"])
        self.check_histories_are_whole()

    def test_an_ended_sweep_runs_again_after_an_extension(self):
        self.begin(stop={"max_trials": 2})
        ended = self.await_sweep("completed")
        self.steer("sweep", "extend", "s1", "--max-trials", 5)
        self.await_sweep("completed", after=ended)
        self.assertEqual(len(self.check_histories_are_whole()), 5)

    def test_a_clone_from_another_folder_starts_the_same_program(self):
        program = self.folder / "mnist" / "train"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\nexec " + " ".join(WORKER) + "\n")
        program.chmod(0o755)
        self.serve("--with-executor")
        file = self.write(sweep(command=["./train"], stop={"max_trials": 1}), "mnist/sweep.yaml")
        self.assertEqual(self.steer("sweep", "create", file).split()[0], "s1")
        self.await_sweep("completed")
        clone = ("sweep", "clone", "s1", "--set", "stop.max_trials=2", "--name", "again")
        text = self.steer(*clone, "--dry-run")
        self.assertIn(str(program), text)
        self.assertEqual(self.steer(*clone).split()[0], "s2")
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["sweep"] == "s2" and
                         data["state"] == "completed")
        self.assertEqual(self.get("/sweeps/s2")["name"], "again")
        resolved = [self.get(f"/sweeps/{sweep}/resolved")["resolved"] for sweep in ("s1", "s2")]
        self.assertEqual(resolved[0]["command"], resolved[1]["command"])
        self.assertEqual(resolved[0]["working_directory"], resolved[1]["working_directory"])
        self.assertEqual(len(self.get("/sweeps/s2/trials")["trials"]), 2)

    def test_a_stopped_trial_can_continue_without_verdicts(self):
        self.begin()
        ended = self.await_sweep("completed")
        stopped = next(trial["number"] for trial in self.get("/sweeps/s1/trials")["trials"]
                       if trial["state"] == "stopped")
        self.steer("trial", "continue", f"s1/{stopped}", "--until", 7)
        self.await_sweep("completed", after=ended)
        trial = self.get(f"/sweeps/s1/trials/{stopped}")
        self.assertEqual((trial["state"], trial["step"]), ("completed", 7))
        self.check_histories_are_whole()

    def test_a_failed_trial_can_be_retried(self):
        self.begin(parameters={"x": {"value": 0.5}, "mode": {"values": ["exit", "well"]}},
                   initial_points=[{"mode": "exit"}], stop={"max_trials": 1},
                   failure={"max_restarts": 1, "backoff": "0s"})
        failed = self.await_sweep("failed")
        self.assertEqual(self.get("/sweeps/s1/trials/0")["attempt_count"], 2)
        self.steer("trial", "retry", "s1/0")
        self.await_sweep("failed", after=failed)
        self.assertEqual(self.get("/sweeps/s1/trials/0")["attempt_count"], 4)

    def test_an_enqueued_trial_gets_the_slots_of_a_killed_one(self):
        self.begin(scheduler={"name": "fifo", "max": FOREVER}, stop={"max_trials": 1},
                   max_concurrent_trials=1)
        self.await_report(trial=0, step=1)
        self.steer("trial", "enqueue", "s1", "-p", "x=0.25")
        self.assertEqual(self.get("/sweeps/s1/trials/1")["state"], "pending")
        self.assertIn("max_concurrent_trials", self.get("/sweeps/s1/trials/1")["waiting_reason"])
        self.steer("trial", "kill", "s1/0")
        self.await_report(trial=1, step=1)
        self.assertEqual(self.get("/sweeps/s1/trials/1")["config"], {"x": 0.25})
        self.assertEqual(self.get("/sweeps/s1/trials/0")["state"], "killed")

    def test_a_target_ends_the_sweep_and_saves_running_trials(self):
        spec = sweep(scheduler={"name": "fifo", "max": FOREVER}, stop={"max_trials": 2},
                     checkpoint={"every": 0}, parameters={"x": {"value": 1.0}})
        spec["metric"]["target"] = 0.9
        self.begin(**spec)
        _, data = self.await_event(lambda kind, data: kind == "sweep_changed" and
                                   data["state"] == "completed")
        self.assertRegex(data["reason"], r"\btarget\b.*\btrial \d")
        for trial in self.get("/sweeps/s1/trials")["trials"]:
            self.assertTrue(os.path.isfile(os.path.join(trial["checkpoint"], "manifest.json")))

    def test_a_time_budget_ends_endless_trials(self):
        self.begin(scheduler={"name": "fifo", "max": FOREVER},
                   stop={"max_trials": 2, "max_time": "300ms"})
        _, data = self.await_event(lambda kind, data: kind == "sweep_changed" and
                                   data["state"] == "completed")
        self.assertIn("max_time", data["reason"])
        self.check_histories_are_whole()

    def test_unused_checkpoints_are_deleted_from_disk(self):
        self.begin(scheduler={"name": "fifo", "max": 6}, stop={"max_trials": 1},
                   checkpoint={"every": 1, "keep_last": 1, "keep_best": 1})
        self.await_sweep("completed")
        folder = self.data / "sweeps/s1/trials/0/checkpoints"
        trial = self.get("/sweeps/s1/trials/0")
        self.assertEqual([kept["step"] for kept in trial["checkpoints"] if not kept["dropped"]], [6])
        self.assertEqual(len(trial["checkpoints"]), 6)
        listed = json.loads(self.steer("checkpoint", "list", "s1", "-o", "json"))["checkpoints"]
        self.assertEqual([kept["path"] for kept in listed], [str(folder / "step-6-attempt-1")])
        self.assertEqual([path.name for path in folder.iterdir()], ["step-6-attempt-1"])

    def test_an_asked_trial_can_report_after_the_server_was_killed(self):
        server = self.serve()
        self.create({"name": "outside", "metric": {"name": "yield", "mode": "max"},
                     "parameters": {"temperature": {"min": 20.0, "max": 90.0}},
                     "scheduler": {"name": "asha", "min": 1, "max": 4, "reduction_factor": 2},
                     "stop": {"max_trials": 2}})
        first, second = self.ask(), self.ask()
        verdict = self.tell(first, "--step", 1, "-m", "yield=0.5")
        self.assertEqual(verdict.split()[0], "continue")
        server.kill()
        self.serve()
        self.assertEqual(self.tell(first, "--step", 1, "-m", "yield=0.5"), verdict)
        self.assertEqual(self.tell(second, "--step", 1, "-m", "yield=0.1").split()[0], "stop")
        self.tell(first, "--step", 4, "-m", "yield=0.9")
        self.await_sweep("completed")
        self.assertEqual([(trial["state"], trial["best"])
                          for trial in self.get("/sweeps/s1/trials")["trials"]],
                         [("completed", 0.9), ("stopped", 0.1)])
        code, out, err = self.attune("ask", "s1", "--data-dir", self.data)
        self.assertEqual(code, 3, out + err)


if __name__ == "__main__":
    unittest.main()
