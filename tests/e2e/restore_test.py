"""A restored backup is older than the state of the executors. The test uses real processes."""

import json
import os
import shutil
import unittest

from support import EndToEnd, free_port, sweep


class Restored(EndToEnd):
    def setUp(self):
        super().setUp()
        self.rpc_port = free_port()
        self.host = self.folder / "host"
        self.backup = self.folder / "backup.db"

    def serve(self):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.rpc_port,
                            "--lease", 2)
        server.await_stderr("executors ")
        return server

    def join(self):
        return self.start("executor", "--server", f"127.0.0.1:{self.rpc_port}", "--name", "host", "--cpus", 2,
                          "--data-dir", self.host, "--token-file", self.data / "join")

    def create(self, seed, **changes):
        spec = sweep(**{"searcher": {"name": "random", "seed": seed}, "scheduler": {"name": "fifo", "max": 4},
                        "stop": {"max_trials": 2}, "checkpoint": {"every": 1, "keep_last": 2},
                        "failure": {"max_restarts": 0}, "working_directory": str(self.folder), **changes})
        status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST", json.dumps(spec).encode())
        self.assertEqual(status, 201, answer)
        return answer["id"]

    def await_completed(self, sweep_id):
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["sweep"] == sweep_id
                         and data["state"] == "completed")
        self.check_histories_are_whole(sweep_id)

    def back_up(self):
        code, _, err = self.attune("db", "backup", self.backup, "--data-dir", self.data)
        self.assertEqual(code, 0, err)

    def restore(self):
        code, _, err = self.attune("db", "restore", self.backup, "--data-dir", self.data)
        self.assertEqual(code, 0, err)

    def copy_back(self):
        """Copies the file back, like a user who does not know the command."""
        for suffix in ("", "-wal", "-shm"):
            (self.data / f"attune.db{suffix}").unlink(missing_ok=True)
        shutil.copy(self.backup, self.data / "attune.db")

    def identities(self):
        return [json.loads(payload) for [payload] in
                self.rows("SELECT payload FROM events WHERE kind = 'log_identified' ORDER BY seq")]

    def check_numbers_can_be_reused(self, put_back, end):
        server = self.serve()
        self.join()
        self.await_completed(self.create(seed=1))
        self.back_up()
        self.assertEqual(self.create(seed=2), "s2")
        self.await_completed("s2")
        end(server)
        put_back()
        self.serve()
        self.assertEqual(self.create(seed=3), "s2")
        self.await_completed("s2")
        self.assertEqual(len(self.identities()), 2)
        for number in (0, 1):
            trial = self.get(f"/sweeps/s2/trials/{number}")
            self.assertEqual([a["outcome"] for a in trial["attempts"]], ["finished"])
            log = (self.host / f"sweeps/s2/trials/{number}/attempts/1/rank-0.log").read_text()
            self.assertEqual(log.count("step 1 "), 1, log)
            kept = {os.path.basename(c["path"]) for c in trial["checkpoints"] if not c["dropped"]}
            self.assertEqual(set(os.listdir(self.host / f"sweeps/s2/trials/{number}/checkpoints")) - kept, set())
        [lost] = (self.host / "set-aside").iterdir()
        self.assertTrue(lost.name.startswith("s2-"))
        self.assertTrue((lost / "trials/0/attempts/1/rank-0.log").exists())

    def test_a_sweep_after_a_restore_ignores_the_files_of_a_lost_sweep(self):
        self.check_numbers_can_be_reused(self.restore, lambda server: (server.interrupt(), server.wait()))

    def test_a_sweep_after_a_manual_copy_ignores_the_files_of_a_lost_sweep(self):
        self.check_numbers_can_be_reused(self.copy_back, lambda server: server.kill())

    def test_known_gangs_continue_and_gangs_of_lost_trials_end(self):
        early, late = self.close_gate(3), self.close_gate(6)
        server = self.serve()
        executor = self.join()
        self.create(seed=1, scheduler={"name": "fifo", "max": 8}, stop={"max_trials": 1})
        self.await_report(trial=0, step=2)
        self.back_up()
        early.close()
        self.await_report(trial=0, step=5)
        self.create(seed=2, scheduler={"name": "fifo", "max": 8}, stop={"max_trials": 1})  # s2, which the restore loses
        self.await_event(lambda kind, data: kind == "trial_reported" and data["sweep"] == "s2" and data["step"] >= 5)
        server.kill()
        self.restore()
        self.serve()
        late.close()
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "completed")
        trial = self.get("/sweeps/s1/trials/0")
        self.assertEqual([a["outcome"] for a in trial["attempts"]], ["finished"])
        self.assertEqual([report["step"] for report in trial["history"]], [1, 2, 6, 7, 8])
        for checkpoint in trial["checkpoints"]:
            self.assertEqual(os.path.exists(checkpoint["path"]), not checkpoint["dropped"], checkpoint)
        self.assertEqual(len(self.get("/sweeps")["sweeps"]), 1)
        executor.interrupt()
        self.assertEqual(executor.wait(), 0)

    def test_a_trial_resumes_although_the_lost_part_dropped_its_checkpoint(self):
        gate = self.close_gate(6)
        server = self.serve()
        early = self.close_gate(3)
        executor = self.join()
        self.create(seed=1, scheduler={"name": "fifo", "max": 8}, stop={"max_trials": 1})
        self.await_report(trial=0, step=2)
        self.back_up()
        early.close()
        self.await_report(trial=0, step=5)
        server.kill()
        executor.kill()
        self.restore()
        self.serve()
        self.join()
        gate.close()
        self.await_completed("s1")
        trial = self.get("/sweeps/s1/trials/0")
        self.assertEqual(trial["state"], "completed")
        self.assertEqual([a["outcome"] for a in trial["attempts"]][-1], "finished", trial)
        for checkpoint in trial["checkpoints"]:
            self.assertEqual(os.path.exists(checkpoint["path"]), not checkpoint["dropped"], checkpoint)

    def test_a_stream_position_after_the_end_of_the_log_is_refused(self):
        self.serve()
        status, problem = self.request("/api/v1/events", headers={"Last-Event-ID": "5000"})
        self.assertEqual((status, problem["type"]), (410, "urn:attune:problem:stream-ahead"))
        status, _ = self.request("/api/v1/events?after=5000")
        self.assertEqual(status, 410)

    def test_a_restore_needs_a_stopped_server_and_a_backup(self):
        self.serve()
        self.back_up()
        code, _, err = self.attune("db", "restore", self.backup, "--data-dir", self.data)
        self.assertNotEqual(code, 0)
        self.assertIn(str(self.data), err)
        self.backup.write_text("not a database")
        code, _, _ = self.attune("db", "restore", self.backup, "--data-dir", self.folder / "other")
        self.assertNotEqual(code, 0)
        self.assertFalse((self.folder / "other/attune.db").exists())


if __name__ == "__main__":
    unittest.main()
