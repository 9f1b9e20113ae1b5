"""Hosts with small disks: a checkpoint that cannot be saved costs the trial no restart."""

import contextlib
import json
import os
import sys
import unittest

from support import EndToEnd, ROOT, fill, free_port, small_disk, sweep

MEBIBYTE = 1 << 20


class SmallDisks(EndToEnd):
    """The data folder of the server is not on the disks of the executors."""

    def setUp(self):
        super().setUp()
        self.environment["CHECKPOINT_MB"] = "6"
        self.port = free_port()
        self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port).await_stderr("http://")

    def executor(self, name, *flags):
        folder = self.folder / name
        self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", name, "--cpus", 1,
                   "--data-dir", folder, "--token-file", self.data / "join", *flags)
        self.await_event(lambda kind, data: kind == "executor_changed" and data["executor"] == name)

    @contextlib.contextmanager
    def small_executor_disk(self, name):
        """Mounts a disk of 16 MiB for an executor, with 3 MiB free. Yields the file that fills the rest."""
        with small_disk(self.folder / name, megabytes=16) as folder:
            ballast = folder / "ballast"
            ballast.write_bytes(os.urandom(13 * MEBIBYTE))
            yield ballast

    def create(self, command=None, **changes):
        """Creates a sweep of one trial, which may not restart and saves at its last step."""
        program = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/large_checkpoint.py")]
        file = self.write(sweep(command=command or program, env={"PYTHONPATH": str(ROOT / "clients/python")},
                                scheduler={"name": "fifo", "max": 1}, stop={"max_trials": 1},
                                failure={"max_restarts": 0}, **changes))
        code, _, err = self.attune("sweep", "create", "-f", file, "--data-dir", self.data)
        self.assertEqual(code, 0, err)

    def attempts(self):
        return self.get("/sweeps/s1/trials/0")["attempts"]

    def await_failed_attempt(self):
        self.await_event(lambda kind, data: kind == "attempt_changed" and data["outcome"] == "failed")
        self.assertIn("DiskFull", self.attempts()[0]["failure"])

    def await_completed(self):
        _, ended = self.await_event(lambda kind, data: kind == "trial_changed" and data["state"] in ("completed", "failed"))
        self.assertEqual(ended["state"], "completed", self.attempts())


class Saving(SmallDisks):
    def test_a_save_on_a_full_disk_waits_for_space_without_a_restart(self):
        with self.small_executor_disk("small") as ballast:
            self.executor("small")
            self.create()
            _, unwell = self.await_event(lambda kind, data: kind == "executor_changed" and data.get("health_problem"))
            self.assertRegex(unwell["health_problem"], r"\bdisk\b.*/small\b")
            self.await_failed_attempt()
            ballast.unlink()
            self.await_completed()
            self.assertFalse(self.get("/executors")["executors"][0]["health_problem"])

    def test_a_save_on_a_full_disk_moves_the_trial_to_another_host(self):
        with self.small_executor_disk("small"):
            self.executor("small")
            self.create()
            self.await_failed_attempt()
            self.executor("large")
            self.await_completed()
            self.assertEqual([attempt["executor"] for attempt in self.attempts()], ["small", "large"])


class Filling(SmallDisks):
    def test_a_long_log_keeps_its_beginning_and_its_end(self):
        self.executor("box", "--max-rank-log", "1MiB")
        lines = "echo begins; seq 1000000 4000000; echo ends"
        self.create(command=["/bin/sh", "-c", lines])
        self.await_completed()
        code, log, err = self.attune("trial", "logs", "s1/0", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertRegex(log, r"\Abegins\n1000000\n(?s:.*)\n\[attune: (\d+) bytes\b.*--max-rank-log.*\]\n"
                              r"(?s:.*)\n4000000\nends\n\Z")
        self.assertLess(len(log), MEBIBYTE)
        self.assertNotIn("\0", log)
        file = self.folder / "box/sweeps/s1/trials/0/attempts/1/rank-0.log"
        self.assertLessEqual(file.stat().st_blocks * 512, MEBIBYTE)

    def test_a_gang_that_fills_the_disk_is_ended_and_charged_the_second_time(self):
        with small_disk(self.folder / "box", megabytes=64):
            self.executor("box")
            # After its first line in the log, it fills the disk up to half of the space that must stay free.
            fill = ("import os, time\n"
                    "path = os.environ['ATTUNE_TRIAL_DIR'] + '/dump'\n"
                    "free = os.statvfs(os.path.dirname(path))\n"
                    "size = free.f_bavail * free.f_frsize - free.f_blocks * free.f_frsize // 100\n"
                    "open(path, 'wb').write(os.urandom(size))\n"
                    "time.sleep(600)\n")
            self.create(command=[sys.executable, "-c", fill])
            _, unwell = self.await_event(lambda kind, data: kind == "executor_changed" and data.get("health_problem"))
            self.assertRegex(unwell["health_problem"], r"\b\S+/dump\b")
            self.await_event(lambda kind, data: kind == "attempt_changed" and data["outcome"] == "failed")
            first = self.attempts()[0]
            self.assertRegex(first["failure"], r"\bdisk\b.*/dump\b")
            self.assertEqual(self.get("/sweeps/s1/trials/0")["state"], "pending", "the first time costs no restart")
            (self.folder / "box/sweeps/s1/trials/0/files/dump").unlink()
            _, ended = self.await_event(lambda kind, data: kind == "trial_changed" and data["state"] in ("completed", "failed"))
            self.assertEqual(ended["state"], "failed")
            self.assertEqual(self.rows("SELECT failure_kind FROM attempts"), [("disk",), ("disk",)])


class FullServer(EndToEnd):
    def test_a_kill_and_the_ends_of_its_trials_are_stored_on_a_full_disk(self):
        port = free_port()
        self.close_gate(3)
        with small_disk(self.data, megabytes=16):
            serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", port)
            serve.await_stderr("http://")
            self.start("executor", "--server", f"127.0.0.1:{port}", "--name", "box", "--cpus", 2,
                       "--data-dir", self.folder / "box", "--token-file", self.data / "join")
            file = self.write(sweep(scheduler={"name": "fifo", "max": 4}))
            self.assertEqual(self.attune("sweep", "create", "-f", file, "--data-dir", self.data)[0], 0)
            for trial in (0, 1):
                self.await_report(trial=trial, step=2)
            filler = fill(self.data)
            body = json.dumps(sweep(tags=[f"{n:064}" for n in range(50)])).encode()
            while self.request("/api/v1/sweeps?directory=/tmp", "POST", body)[0] == 201:
                pass
            code, _, err = self.attune("sweep", "kill", "s1", "--data-dir", self.data)
            self.assertEqual(code, 0, err)
            self.await_event(lambda kind, data: kind == "sweep_changed" and data["sweep"] == "s1"
                             and data["state"] == "killed")
            self.assertEqual(self.request("/readyz")[0], 503)
            executor = self.get("/executors")["executors"][0]
            self.assertEqual(executor["cpus_free"], executor["cpus"], executor)
            code, _, err = self.attune("sweep", "rm", "s1", "--now", "--data-dir", self.data)
            self.assertEqual(code, 0, err)
            filler.unlink()
            while self.request("/readyz")[0] != 200:
                pass
            self.assertEqual(self.request("/api/v1/sweeps?directory=/tmp", "POST", body)[0], 201)
            serve.kill()


if __name__ == "__main__":
    unittest.main()
