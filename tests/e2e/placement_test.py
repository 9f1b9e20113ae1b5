"""Placement of gangs with real processes: required labels, drained executors and failing executors."""

import json
import sys
import unittest

from support import EndToEnd, ROOT, fill, free_port, small_disk, sweep

WORKER = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/fleet_worker.py")]


class Placement(EndToEnd):
    """A server that outlives its sweeps, and executors of this machine that share a folder for checkpoints."""

    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.executors = {}
        self.serve()

    def serve(self):
        self.server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port,
                                 "--lease", 2)
        self.server.await_stderr("executors ")

    def start_executor(self, name, *more, folder="shared", breaks_at=0):
        self.executors[name] = self.start(
            f"BREAKS_AT={breaks_at}", self.program, "executor", "--server", f"127.0.0.1:{self.port}", "--name", name, "--cpus", 1, "--data-dir",
            self.folder / folder, "--token-file", self.data / "join", *more, program="env")
        self.await_event(lambda kind, data: kind == "executor_changed" and data["executor"] == name
                         and data["state"] == "online")

    def create(self, **changes):
        spec = sweep(**{"command": WORKER, "parameters": {"x": {"value": 1.0}},
                        "env": {"PYTHONPATH": str(ROOT / "clients/python")},
                        "working_directory": str(self.folder),
                        "scheduler": {"name": "fifo", "max": 4}, "stop": {"max_trials": 1},
                        "failure": {"max_restarts": 0, "backoff": "0s"}, **changes})
        code, out, err = self.attune("sweep", "create", self.write(spec), "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        return out.strip(), err

    def executor(self, name):
        return next(e for e in self.get("/executors")["executors"] if e["name"] == name)

    def completed(self, sweep_id):
        self.await_event(lambda kind, data: kind == "sweep_changed" and data.get("sweep") == sweep_id
                         and data["state"] == "completed")
        return self.get(f"/sweeps/{sweep_id}/trials/0")

    def hosts(self, trial):
        return [attempt["executor"] for attempt in trial["attempts"]]

    def test_a_trial_waits_for_a_host_with_its_label_and_starts_there(self):
        self.start_executor("old", "--label", "gpu=a100", "--label", "zone=a")
        sweep_id, output = self.create(resources={"workers": 1, "requires": {"gpu": ["h100", "h200"]}})
        why = self.get(f"/sweeps/{sweep_id}")["waiting_reason"]
        self.assertIn("gpu=h100 or h200", why)
        self.assertIn("gpu=a100, zone=a", why)
        self.assertIn(why, output)
        self.start_executor("new", "--label", "gpu=h200")
        self.assertEqual(self.hosts(self.completed(sweep_id)), ["new"])
        listed = self.run_command("executor", "list")
        self.assertRegex(listed, r"(?m)^old +online +0/1 .*gpu=a100,zone=a")

    def test_invalid_labels_are_refused_by_the_command(self):
        code, _, err = self.attune("executor", "--server", "127.0.0.1:1", "--label", "gpu")
        self.assertEqual(code, 2)
        self.assertIn("--label: `gpu`", err)
        code, _, err = self.attune("serve", "--label", "gpu=h100", "--data-dir", self.folder / "none")
        self.assertEqual(code, 2)
        self.assertIn("--with-executor", err)

    def test_a_drained_executor_finishes_its_gangs_and_takes_no_more_until_resumed(self):
        gate = self.close_gate(3)
        self.start_executor("a")
        first, _ = self.create(stop={"max_trials": 2})
        self.await_report(trial=0, step=2)
        self.assertIn("1 trial ", self.run_command("executor", "drain", "a", "--reason", "a new disk"))
        self.assertEqual(self.executor("a")["state"], "draining")
        self.assertRegex(self.run_command("executor", "list"), r"(?m)^a +draining +1/1 .*" + first + "/0 rank 0")
        gate.close()
        self.await_event(lambda kind, data: kind == "trial_changed" and data["trial"] == 0
                         and data["state"] == "completed")

        # The drain stays although the server and the executor are killed and restarted.
        self.server.kill()
        self.serve()
        self.executors["a"].kill()
        after = self.newest_event()
        self.executors["a"] = self.start(
            "executor", "--server", f"127.0.0.1:{self.port}", "--name", "a", "--cpus", 1, "--data-dir",
            self.folder / "shared", "--token-file", self.data / "join")
        self.await_event(lambda kind, data: kind == "executor_changed" and data["state"] == "online",
                         after)
        drained = self.executor("a")
        self.assertEqual((drained["state"], drained["drain"]["reason"], drained["running"]),
                         ("drained", "a new disk", []))
        self.assertEqual(self.get(f"/sweeps/{first}")["trials"]["running"], 0)
        self.assertIn("(drained)", self.get(f"/sweeps/{first}")["waiting_reason"])
        self.assertRegex(self.run_command("executor", "list"), r"(?m)^a .*\bdrained\b.* 2\S+Z: a new disk$")
        self.assertRegex(self.run_command("executor", "resume", "a"), r"\ba\b")
        self.assertEqual(self.completed(first)["state"], "completed")

    def newest_event(self):
        """Returns the number of the newest event in the log."""
        return self.rows("SELECT max(seq) FROM events")[0][0]

    def on_log(self, action):
        return {"max_restarts": 0, "backoff": "0s", "on_log": [{"pattern": "uncorrectable ECC", "action": action}]}

    def test_a_log_pattern_excludes_the_host_and_costs_no_restart(self):
        self.start_executor("a", breaks_at=3)
        self.start_executor("b")
        sweep_id, _ = self.create(failure=self.on_log("exclude_host"), stop={"max_trials": 2},
                                  max_concurrent_trials=1)
        trial = self.completed(sweep_id)
        self.assertEqual(self.hosts(trial), ["a", "b"])
        self.assertEqual(trial["attempts"][1]["resumed_from"], 2)
        self.assertEqual(self.hosts(self.get(f"/sweeps/{sweep_id}/trials/1")), ["b"])
        self.assertRegex(trial["attempts"][0]["failure"],
                         r'"(SystemExit: )?GPU 0: uncorrectable ECC error" \(failure.on_log: uncorrectable ECC\)')

    def test_a_sweep_without_hosts_says_so_and_continues_when_its_host_is_resumed(self):
        self.start_executor("a", breaks_at=3)
        sweep_id, _ = self.create(failure=self.on_log("exclude_host"), scheduler={"name": "fifo", "max": 2 + 3})
        self.await_event(lambda kind, data: kind == "executor_excluded" and data["executor"] == "a")
        self.assertRegex(self.get(f"/sweeps/{sweep_id}")["waiting_reason"], r"failure\.on_log\b.* a\b")
        self.assertRegex(self.run_command("executor", "resume", "a"), r"\ba\b")
        self.executors["a"].kill()
        self.start_executor("a")
        self.assertEqual(self.completed(sweep_id)["state"], "completed")

    def test_a_host_with_repeated_failures_is_quarantined_if_others_succeed(self):
        self.start_executor("a", breaks_at=2)
        self.start_executor("b")
        sweep_id, _ = self.create(stop={"max_trials": 200}, scheduler={"name": "fifo", "max": 100},
                                  failure={"max_restarts": 0, "max_failed_trials": 100, "backoff": "0s"})
        _, quarantined = self.await_event(lambda kind, data: kind == "executor_changed" and data.get("quarantined"))
        self.assertEqual(quarantined["executor"], "a")
        self.assertRegex(quarantined["reason"], r"\b4 gangs\b.*\b4 trials\b.*\bb\b")
        self.assertEqual(self.executor("a")["state"], "quarantined")
        self.assertRegex(self.run_command("executor", "list"), r"(?m)^a is quarantined\b.*\b4 gangs\b")
        self.assertRegex(self.run_command("executor", "resume", "a"), r"\ba\b")
        self.attune("sweep", "kill", sweep_id, "--data-dir", self.data)

    def test_nothing_starts_on_a_full_disk_even_after_a_restart_of_the_server(self):
        with small_disk(self.folder / "small", megabytes=64) as disk:
            self.start_executor("a", folder="small")
            filler = fill(disk)
            _, change = self.await_event(lambda kind, data: kind == "executor_changed" and data.get("health_problem"))
            self.assertRegex(change["health_problem"], r"\b0\.0 MiB\b.*/small\b.*\b1\.3 MiB\b")
            sweep_id, why = self.create()
            self.assertIn(change["health_problem"], why)
            self.assertIn(change["health_problem"], self.run_command("executor", "list"))
            self.server.kill()
            filler.unlink()
            self.serve()
            self.assertEqual(self.hosts(self.completed(sweep_id)), ["a"])
            self.executors["a"].kill()

    def test_a_trial_resumes_elsewhere_when_its_executor_is_drained_now(self):
        gate = self.close_gate(3)
        self.start_executor("a")
        sweep_id, _ = self.create(scheduler={"name": "fifo", "max": 200})
        self.await_report(trial=0, step=2)
        self.start_executor("b")
        self.assertRegex(self.run_command("executor", "drain", "a", "--now"), r"\b1 trial\b.*checkpoint")
        gate.close()
        trial = self.completed(sweep_id)
        self.assertEqual(self.hosts(trial), ["a", "b"])
        first, second = trial["attempts"]
        self.assertEqual((first["outcome"], first["failure"]), ("paused", ""))
        self.assertGreaterEqual(second["resumed_from"], 3)
        self.assertEqual([report["step"] for report in trial["history"]], list(range(1, 201)))
        listed = {e["name"]: e["state"] for e in json.loads(self.run_command("executor", "list", "-o", "json"))["executors"]}
        self.assertEqual(listed, {"a": "drained", "b": "online"})

    def test_a_trial_saves_and_leaves_when_its_executor_is_stopped(self):
        gate = self.close_gate(3)
        self.start_executor("a")
        sweep_id, _ = self.create(scheduler={"name": "fifo", "max": 1000})
        self.await_report(trial=0, step=2)
        executor = self.executors["a"].popen
        executor.terminate()
        self.await_event(lambda kind, data: kind == "trial_yielding")
        self.assertIsNone(executor.poll(), "it waits for the trial")
        gate.close()
        self.assertEqual(executor.wait(), 0)
        trial = self.get(f"/sweeps/{sweep_id}/trials/0")
        self.assertEqual((trial["state"], trial["attempts"][0]["outcome"]), ("pending", "paused"))
        self.assertEqual(trial["checkpoints"][-1]["step"], trial["step"], "no step is lost")
        self.start_executor("b")
        self.assertEqual(self.completed(sweep_id)["attempts"][1]["resumed_from"], trial["step"])

    def test_gangs_are_torn_down_at_the_end_of_the_grace(self):
        self.close_gate(3)
        self.start_executor("a", "--grace", "0.1")
        sweep_id, _ = self.create()
        self.await_report(trial=0, step=2)
        executor = self.executors["a"].popen
        executor.terminate()
        self.assertEqual(executor.wait(), 0)
        trial = self.get(f"/sweeps/{sweep_id}/trials/0")
        self.assertEqual((trial["state"], trial["attempts"][0]["outcome"]), ("pending", "failed"))

    def test_trials_share_a_gpu(self):
        gate = self.close_gate(2)
        self.start_executor("a", "--gpus", 1)
        sweep_id, _ = self.create(parameters={"x": {"min": 0.0, "max": 1.0}}, stop={"max_trials": 4},
                                   resources={"cpus_per_worker": 0, "gpus_per_worker": 0.3})
        for trial in range(3):
            self.await_report(trial, step=1)
        trials = self.get(f"/sweeps/{sweep_id}/trials")["trials"]
        self.assertEqual([trial["state"] for trial in trials], ["running"] * 3, "the fourth has no room")
        ranks = self.get(f"/sweeps/{sweep_id}/trials/1")["attempts"][0]["ranks"]
        self.assertEqual([(rank["gpus"], rank["gpu_percent"]) for rank in ranks], [([0], 30)])
        [demand] = self.get("/demand")["demand"]
        self.assertEqual((demand["gpus_per_worker"], demand["gpu_percent"]), (1, 30))
        self.assertEqual(demand["reason"], "needs 1 share of 30 % of a GPU: a has 0 free")
        gate.close()
        self.completed(sweep_id)
        self.assertEqual(self.get(f"/sweeps/{sweep_id}")["trials"]["completed"], 4)

    def test_gangs_leave_an_executor_before_the_end_of_its_time(self):
        self.start_executor("a", "--time-left", 62)  # the last minute is reserved for leaving
        sweep_id, _ = self.create(scheduler={"name": "fifo", "max": 1 << 40})
        yielding = self.await_event(lambda kind, _: kind == "trial_yielding")[1]
        self.assertRegex(yielding["reason"], r"\bexecutor a\b.*\b\d+ s\b")
        self.await_event(lambda kind, data: kind == "attempt_changed" and data["state"] == "ended")
        trial = self.get(f"/sweeps/{sweep_id}/trials/0")
        self.assertRegex(trial["waiting_reason"], r"\ba \(in ")
        self.start_executor("b")
        self.await_report(trial=0, step=trial["step"] + 1)
        self.assertEqual(self.hosts(self.get(f"/sweeps/{sweep_id}/trials/0")), ["a", "b"])


if __name__ == "__main__":
    unittest.main()
