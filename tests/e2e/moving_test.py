"""Checkpoints move to executors with free slots, and some are kept after the loss of their executor.

The test uses real processes. Each executor has a separate data folder. If possible, an empty file system hides the
folders from the server. So executors get checkpoints of other executors only over the network.
"""

import contextlib
import json
import signal
import subprocess
import sys
import unittest

from support import EndToEnd, ROOT, fill, free_port, small_disk, sweep

WORKER = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/fleet_worker.py")]
LARGE = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/checkpoint_worker.py")]
HIDING = 'mount -t tmpfs tmpfs "$0" && exec "$@"'  # hides a folder from a program
MEGABYTES = 64


class Moving(EndToEnd):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.homes = self.folder / "hosts"
        self.homes.mkdir()
        self.executors = {}

    def serve(self, *more):
        args = ["serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port, "--lease", 2, *more]
        hides = subprocess.run(["unshare", "-m", "sh", "-c", HIDING, self.homes, "true"], capture_output=True)
        if hides.returncode == 0:
            self.server = self.start("-m", "sh", "-c", HIDING, self.homes, self.program, *args, program="unshare")
        else:
            self.server = self.start(*args)
        self.server.await_stderr("executors ")

    def start_executor(self, name, *more):
        self.launch_executor(name, *more)
        self.await_event(lambda kind, data: kind == "executor_changed" and data["executor"] == name
                         and data["state"] == "online")

    def launch_executor(self, name, *more):
        self.executors[name] = self.start(
            "executor", "--server", f"127.0.0.1:{self.port}", "--name", name, "--cpus", 1, "--data-dir",
            self.homes / name, "--token-file", self.data / "join", "--interface", "lo", *more)

    def create(self, **changes):
        spec = sweep(**{"command": WORKER, "parameters": {"x": {"value": 1.0}},
                        "env": {"PYTHONPATH": str(ROOT / "clients/python"), "MEGABYTES": str(MEGABYTES)},
                        "working_directory": str(self.folder),
                        "scheduler": {"name": "fifo", "max": 4}, "stop": {"max_trials": 1},
                        "failure": {"max_restarts": 0, "backoff": "0s"},
                        "checkpoint": {"every": 1, "keep_last": 1}, **changes})
        self.run_command("sweep", "create", self.write(spec))

    def completed(self):
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "completed")
        self.check_histories_are_whole()
        return self.get("/sweeps/s1/trials/0")

    def copies(self, executor):
        """Returns the names of complete copies of other executors' checkpoints."""
        folder = self.homes / executor / "executors" / executor / "copies"
        return [path.name for path in folder.glob("*") if not path.name.startswith(".")]

    def hosts(self, trial):
        return [attempt["executor"] for attempt in trial["attempts"]]

    def test_a_trial_takes_its_checkpoint_along_when_its_executor_is_drained(self):
        gate = self.close_gate(3)
        self.serve()
        self.start_executor("a")
        self.create(scheduler={"name": "fifo", "max": 100})
        self.await_report(trial=0, step=2)
        self.start_executor("b")
        self.assertRegex(self.run_command("executor", "drain", "a", "--now"), r"\b1 trial\b.*checkpoint")
        gate.close()
        trial = self.completed()
        self.assertEqual(self.hosts(trial), ["a", "b"])
        first, second = trial["attempts"]
        self.assertEqual((first["outcome"], first["failure"]), ("paused", ""))
        self.assertGreaterEqual(second["resumed_from"], 3)
        self.executors["b"].await_stderr(rf"checkpoint s1/0/1-{second['resumed_from']}\b.* MB .*\b"
                                         r"executor a at 127\.0\.0\.1$")
        self.assertEqual(len(self.copies("b")), 1)

    def test_a_stopped_executor_waits_until_others_have_its_checkpoints(self):
        gate = self.close_gate(3)
        self.serve()
        self.start_executor("a", "--grace", 50)
        self.create(scheduler={"name": "fifo", "max": 100})
        self.await_report(trial=0, step=2)
        self.start_executor("b")
        self.executors["a"].popen.terminate()
        self.await_event(lambda kind, data: kind == "trial_yielding")
        gate.close()
        self.assertEqual(self.executors["a"].wait(), 0)
        trial = self.completed()
        self.assertEqual(self.hosts(trial), ["a", "b"])
        left_at = [decision["step"] for decision in trial["decisions"] if decision["verdict"] == "pause"]
        self.assertEqual([trial["attempts"][1]["resumed_from"]], left_at, "no step is lost")

    def test_a_trial_resumes_on_another_executor_if_its_own_is_full(self):
        gate = self.close_gate(3)
        self.serve()
        self.start_executor("a")
        self.create(stop={"max_trials": 2}, max_concurrent_trials=1)
        self.await_report(trial=0, step=2)
        self.run_command("sweep", "pause", "s1")
        gate.close()
        self.await_event(lambda kind, data: kind == "attempt_changed" and data["state"] == "ended")
        held = self.close_gate(1)
        spec = json.loads((self.folder / "sweep.yaml").read_text())
        self.run_command("sweep", "create", self.write({**spec, "name": "other"}, "other.yaml"))
        self.await_event(lambda kind, data: kind == "attempt_changed" and data.get("sweep") == "s2")
        self.start_executor("b")
        self.run_command("sweep", "resume", "s1")
        self.await_event(lambda kind, data: kind == "trial_reported" and data["sweep"] == "s1"
                         and data["step"] == 4)
        self.assertEqual(self.hosts(self.get("/sweeps/s1/trials/0")), ["a", "b"])
        held.close()

    def part_of(self, executor):
        """Returns the part of a checkpoint's largest file that has arrived so far."""
        folder = self.homes / executor / "executors" / executor / "copies"
        with contextlib.suppress(FileNotFoundError, StopIteration):
            return next(folder.glob(".*.part-*/model.bin")).stat().st_size
        return 0

    def test_a_killed_executor_resumes_a_transfer_at_the_same_byte(self):
        self.serve()
        self.start_executor("a")
        self.create(command=LARGE, scheduler={"name": "fifo", "max": 1000})
        self.await_report(trial=0, step=1)
        self.start_executor("b")
        self.run_command("executor", "drain", "a", "--now")
        b = self.executors["b"].popen
        while not 0 < self.part_of("b") < MEGABYTES << 20:
            self.assertEqual(self.copies("b"), [], "the transfer was already complete")
        b.send_signal(signal.SIGSTOP)
        had = self.part_of("b")
        self.executors["b"].kill()
        self.assertLess(had, MEGABYTES << 20)
        self.launch_executor("b")
        fetched = self.executors["b"].await_stderr(r"checkpoint s1/0/\S+ .*?([\d.]+) MB\b.*?([\d.]+) MB\b")
        fetched_mb, checkpoint_mb = sorted(map(float, fetched.groups()))
        self.assertLess(fetched_mb, checkpoint_mb)
        attempt = self.get("/sweeps/s1/trials/0")["attempts"][-1]
        self.assertEqual(attempt["executor"], "b")
        self.await_report(trial=0, step=attempt["resumed_from"] + 1)

    def test_a_full_disk_costs_no_restart(self):
        self.serve()
        self.start_executor("a")
        with small_disk(self.homes / "b", 6 * MEGABYTES) as disk:
            filler = fill(disk)
            self.create(command=LARGE, scheduler={"name": "fifo", "max": 6})
            self.await_report(trial=0, step=1)
            # The small files of the checkpoint must still fit.
            with open(filler, "r+b") as file:
                file.truncate(filler.stat().st_size - (4 << 20))
            # The transfer must run into the full disk.
            self.start_executor("b", "--min-free-disk", 0)
            self.run_command("executor", "drain", "a", "--now")
            failed = self.await_event(lambda kind, data: kind == "attempt_changed" and data["failure"])[1]
            self.assertRegex(failed["failure"], r"\bcheckpoint s1/0/")
            filler.unlink()
            self.assertEqual(self.hosts(self.completed())[:2], ["a", "b"])  # without any allowed restart
            self.executors["b"].kill()

    def test_the_best_checkpoint_survives_its_executor(self):
        storage = self.folder / "storage"
        self.serve("--storage-path", storage)
        self.start_executor("a")
        self.create(scheduler={"name": "fifo", "max": 5})
        self.completed()
        stored = self.until(lambda: (storage / "s1/0/1-5/manifest.json").exists())
        self.assertTrue(stored)
        self.until(lambda: [path.name for path in (storage / "s1/0").iterdir()] == ["1-5"])
        self.assertRegex(self.run_command("checkpoint", "list", "s1"), r"s1/0/1-5 .*\bstored\b")
        self.executors["a"].kill()
        self.assertEqual(self.run_command("checkpoint", "get", "s1", "--best", "--out", "best"), "best\n")
        self.assertEqual(json.loads((self.folder / "best/state/total.json").read_text()), 15)

        # Another server must not touch the copies.
        code, _, err = self.attune("serve", "--data-dir", self.folder / "other", "--port", 0, "--rpc-port", 0,
                                   "--storage-path", storage)
        self.assertEqual(code, 1)
        self.assertIn("another server", err)

    def test_a_deleted_sweep_leaves_no_files_although_processes_are_killed(self):
        storage = self.folder / "storage"
        self.serve("--storage-path", storage)
        self.start_executor("a")
        self.start_executor("b")
        self.create(stop={"max_trials": 2}, checkpoint={"every": 1, "keep_last": 1})
        self.completed()
        self.until(lambda: list(storage.glob("s1/*/1-4/manifest.json")))
        files = [self.homes / name / "sweeps/s1" for name in ("a", "b")]
        self.assertTrue(all(folder.is_dir() for folder in files), "each has had a trial")
        self.executors["a"].kill()
        self.run_command("checkpoint", "pin", "s1/0/1-4")
        code, _, err = self.attune("sweep", "rm", "s1", "--data-dir", self.data)
        self.assertEqual(code, 1)
        self.assertIn("attune checkpoint unpin s1/0/1-4", err)
        self.run_command("checkpoint", "unpin", "s1/0/1-4")
        self.assertRegex(self.run_command("sweep", "rm", "s1", "--now"), r"\bs1\b.*\b2\b")
        self.server.kill()

        self.serve("--storage-path", storage)
        self.start_executor("a")
        self.until(lambda: not any(folder.exists() for folder in [*files, storage / "s1"]))
        code, _, err = self.attune("sweep", "get", "s1", "--data-dir", self.data)
        self.assertEqual(code, 3)
        self.assertEqual(json.loads(self.run_command("sweep", "list", "-o", "json")), {"sweeps": [], "next_page_token": ""})
        told = "SELECT payload ->> '$.executor' FROM events WHERE kind = 'sweep_removed' ORDER BY 1"
        self.until(lambda: self.rows(told) == [("a",), ("b",)])
        self.server.popen.terminate()
        self.server.wait()
        code, _, err = self.attune("db", "check", "--decisions", "--data-dir", self.data)
        self.assertEqual(code, 0, err)


if __name__ == "__main__":
    unittest.main()
