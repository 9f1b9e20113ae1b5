"""Processes die at bad moments: no data is lost, nothing happens twice, and no process is left."""

import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import unittest

from support import EndToEnd, ProcessExit, ROOT, fill, free_port, small_disk, sweep


def pids_of(detail, attempt=-1):
    return detail["attempts"][attempt]["pids"]


class Kill(EndToEnd):
    def test_a_killed_and_repeated_run_loses_and_repeats_no_trial(self):
        gate = self.close_gate(3)
        file = self.write(sweep())
        first = self.run_sweep(file)
        first.await_stderr(r"http://")
        self.await_report(trial=0, step=2)
        workers = [ProcessExit(pid) for pid in pids_of(self.get("/sweeps/s1/trials/0"))]
        first.kill()
        for worker in workers:
            self.assertTrue(worker.wait(), "a worker outlived the process that ran it")
        gate.close()
        second = self.run_sweep(file, "-o", "json")
        second.await_stderr(r"http://")
        # The server exits after the sweep, so a gate holds the last trial during the checks.
        second.wait()
        result = json.loads(second.stdout)
        self.assertEqual(result["sweep"], "s1")
        self.assertEqual(sum(result["trials"].values()), 8)
        serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        serve.await_stderr(r"http://")
        trials = self.check_histories_are_whole()
        self.assertEqual(len(trials), 8)
        resumed = self.get("/sweeps/s1/trials/0")["attempts"]
        self.assertEqual([a["outcome"] for a in resumed][:1], ["lost"])
        self.assertEqual(resumed[1]["resumed_from"], 2)

    def start_with_separate_executor(self, **changes):
        """Starts a server with `attune run` on a fixed port, and an executor in another process."""
        self.port = free_port()
        self.file = self.write(sweep(resources={"workers": 1, "cpus_per_worker": 1}, **changes))
        self.args = ["--no-executor", "--rpc-port", self.port]
        server = self.run_sweep(self.file, *self.args)
        server.await_stderr(r"http://")
        executor = self.start_executor()
        return server, executor

    def start_executor(self):
        return self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", "box", "--cpus",
                          1, "--data-dir", self.data)

    def test_gangs_of_a_separate_executor_outlive_the_server(self):
        gate = self.close_gate(3)
        server, _ = self.start_with_separate_executor()
        self.await_report(trial=0, step=2)
        before = self.get("/sweeps/s1/trials/0")
        server.kill()
        again = self.run_sweep(self.file, *self.args, "-o", "json")
        again.await_stderr(r"http://")
        os.kill(pids_of(before)[0], 0)  # fails if the worker has ended
        gate.close()
        self.await_event(lambda kind, data: kind == "trial_reported" and data["trial"] == 0 and
                         data["step"] == 4)
        after = self.get("/sweeps/s1/trials/0")
        self.assertEqual(pids_of(after), pids_of(before))
        self.assertEqual(len(after["attempts"]), 1)
        again.wait()
        self.assertEqual(sum(json.loads(again.stdout)["trials"].values()), 8)

    def test_a_server_killed_at_random_events_loses_and_repeats_nothing(self):
        seed = int(os.environ.get("ATTUNE_SEED") or random.randrange(1 << 32))
        print("ATTUNE_SEED", seed)
        draw = random.Random(seed)
        server, _ = self.start_with_separate_executor(stop={"max_trials": 40})
        seq = 0
        for _ in range(10):  # 40 trials write more than 10 * 30 events
            seq += draw.randrange(1, 30)
            self.await_event(lambda kind, data: data["seq"] >= seq)
            server.kill()
            server = self.run_sweep(self.file, *self.args, "-o", "json")
            server.await_stderr(r"http://")
        self.assertEqual(server.wait(), 0)
        self.assertEqual(sum(json.loads(server.stdout)["trials"].values()), 40)
        serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        serve.await_stderr(r"http://")
        self.assertEqual([t["attempt_count"] for t in self.check_histories_are_whole()], [1] * 40)

    def test_reports_made_while_the_server_is_down_arrive(self):
        gate = self.close_gate(3)
        server, _ = self.start_with_separate_executor(
            scheduler={"name": "fifo", "max": 6}, stop={"max_trials": 1})
        self.await_report(trial=0, step=2)
        checkpoints = pathlib.Path(self.data) / "sweeps/s1/trials/0/checkpoints"
        last = self.close_gate(6)
        server.kill()
        gate.close()
        # Step 5 is reported right after its checkpoint, while no server listens.
        while not (checkpoints / "step-5-attempt-1").exists():
            os.sched_yield()
        again = self.run_sweep(self.file, *self.args, "-o", "json")
        again.await_stderr(r"http://")
        self.await_report(trial=0, step=5)
        last.close()
        self.await_report(trial=0, step=6)
        self.assertEqual(again.wait(), 0)

    def test_a_killed_rank_is_named_and_its_trial_resumes_from_the_checkpoint(self):
        gate = self.close_gate(3)
        run = self.run_sweep(self.write(sweep(stop={"max_trials": 1})), "-o", "json")
        run.await_stderr(r"http://")
        self.await_report(trial=0, step=2)
        hold = self.close_gate(4)
        os.kill(pids_of(self.get("/sweeps/s1/trials/0"))[0], signal.SIGKILL)
        gate.close()
        self.await_report(trial=0, step=3)
        detail = self.get("/sweeps/s1/trials/0")
        first, second = detail["attempts"]
        self.assertIn("rank 0", first["failure"])
        self.assertIn("SIGKILL", first["failure"])
        self.assertEqual(second["resumed_from"], 2)
        hold.close()
        self.assertEqual(run.wait(), 0)
        self.assertEqual(json.loads(run.stdout)["trials"]["completed"], 1)

    def test_every_view_of_a_failure_names_the_killed_rank(self):
        script = '[ "$RANK" = 1 ] || exec sleep 1000; echo the last line; kill -KILL $$'
        run = self.run_sweep(self.write(sweep(command=["/bin/sh", "-c", script], stop={"max_trials": 1},
                                              resources={"workers": 2, "cpus_per_worker": 1},
                                              failure={"max_restarts": 0})))
        self.assertEqual(run.wait(), 5, run.stderr)
        self.assertRegex("\n".join(run.stderr), r"trial 0 attempt 1\b.*\brank 1\b.*SIGKILL")
        self.assertRegex(run.stdout, r"\n +0 +0 +attempt 1: .*\brank 1\b.*SIGKILL")  # in the table of failed trials
        self.assertRegex(run.stdout, r"\ntrial 0, attempt 1: .*\brank 1\b.*SIGKILL.*\n  the last line\n")

        self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0).await_stderr(r"http://")
        detail = self.get("/sweeps/s1/trials/0")
        self.assertRegex(detail["attempts"][0]["failure"], r"^rank 1\b.*SIGKILL")
        self.assertRegex(detail["reason"], r"^attempt 1: rank 1\b.*SIGKILL")
        for words in ["trial", "get", "s1/0"], ["sweep", "watch", "s1"]:
            _, out, _ = self.attune(*words, "--data-dir", self.data)
            self.assertRegex(out, r"attempt 1: .*\brank 1\b.*SIGKILL")
        client = subprocess.run(
            [sys.executable, "-c", "import sys; from attune.client import Server\n"
                                   "Server(data_dir=sys.argv[1]).sweep('s1').wait()", str(self.data)],
            env=dict(os.environ, PYTHONPATH=str(ROOT / "clients/python")), capture_output=True, text=True)
        self.assertRegex(client.stderr, r"trial 0: .*\brank 1\b.*SIGKILL")

    def test_a_rank_killed_between_a_checkpoint_and_its_report_leaves_no_gap(self):
        parameters = {"x": {"value": 1.0}, "mode": {"value": "die-saved"}, "at": {"value": 3}}
        self.start_with_separate_executor(parameters=parameters, stop={"max_trials": 1},
                                          failure={"max_restarts": 1, "backoff": "0s"})
        self.close_gate(4)  # before the end of the sweep, which ends the server
        self.await_event(lambda kind, data: kind == "attempt_changed" and data["attempt"] == 2 and
                         data["state"] == "running")
        self.await_report(trial=0, step=3)
        self.check_histories_are_whole()

    def test_a_killed_executor_ends_its_ranks_and_another_one_resumes(self):
        gate = self.close_gate(3)
        server, executor = self.start_with_separate_executor()
        self.await_report(trial=0, step=2)
        workers = [ProcessExit(pid) for pid in pids_of(self.get("/sweeps/s1/trials/0"))]
        executor.kill()
        for worker in workers:
            self.assertTrue(worker.wait(), "a rank outlived its executor")
        gate.close()
        hold = self.close_gate(4)
        self.start_executor()
        self.await_report(trial=0, step=3)
        detail = self.get("/sweeps/s1/trials/0")
        self.assertEqual(detail["attempts"][0]["outcome"], "lost")
        self.assertEqual(detail["attempts"][1]["resumed_from"], 2)
        hold.close()
        self.assertEqual(server.wait(), 0)

    def test_grandchildren_of_a_killed_executor_die_too(self):
        pid_file = self.folder / "grandchild"
        script = self.write(f"#!/bin/sh\n(trap '' TERM HUP; echo $$ > {pid_file}; exec tail -f /dev/null) &\n"
                            "echo $! > " + str(pid_file) + "\nwait\n", "wrap.sh")
        os.chmod(script, 0o755)
        self.start_with_separate_executor(command=[script], stop={"max_trials": 1})
        executor = self.processes[-1]
        self.await_event(lambda kind, data: kind == "attempt_changed" and
                         data["state"] == "running")
        while not (pid_file.exists() and pid_file.read_text().strip()):
            os.sched_yield()
        grandchild = ProcessExit(int(pid_file.read_text()))
        executor.kill()
        self.assertTrue(grandchild.wait(), "a grandchild outlived the executor")


class Disk(EndToEnd):
    def test_a_full_disk_is_reported_and_the_sweep_continues_when_there_is_space(self):
        gate = self.close_gate(2)
        with small_disk(self.data, megabytes=16):
            run = self.run_sweep(self.write(sweep(checkpoint={"every": 0}, stop={"max_trials": 2})),
                                 "-o", "json")
            run.await_stderr(r"http://")
            self.await_report(trial=0, step=1)
            filler = fill(self.data)
            # Small writes may still fit into free space inside the database.
            body = json.dumps(sweep(tags=[f"{n:064}" for n in range(50)])).encode()
            status, answer = 201, None
            for _ in range(1000):
                status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST", body)
                if status != 201:
                    break
            self.assertEqual(status, 507, answer)
            self.assertIn("disk", (answer["title"] + answer["detail"]).lower())
            self.assertEqual(self.request("/readyz")[0], 503)
            filler.unlink()
            while self.request("/readyz")[0] != 200:
                pass
            for listed in self.get("/sweeps")["sweeps"]:
                if listed["id"] != "s1":
                    self.request(f"/api/v1/sweeps/{listed['id']}:kill", "POST")
            gate.close()
            self.assertEqual(run.wait(), 0, run.stderr)
            self.assertEqual(sum(json.loads(run.stdout)["trials"].values()), 2)

    def test_a_disk_that_stays_full_longer_than_leases_ends_no_gang(self):
        lease_s = float(os.environ.get("ATTUNE_LEASE_S", 1))
        full_s = float(os.environ.get("ATTUNE_DISK_FULL_S", 3 * lease_s))
        gate = self.close_gate(3)
        port = free_port()
        args = ["--no-executor", "--rpc-port", port, "--lease", lease_s]
        with small_disk(self.data, megabytes=16):
            # The scheduler decides nothing before the last step of a trial.
            fifo = {"name": "fifo", "max": 4}
            run = self.run_sweep(self.write(sweep(scheduler=fifo)), *args, "-o", "json")
            run.await_stderr(r"http://")
            # The gangs write to another disk.
            self.start("executor", "--server", f"127.0.0.1:{port}", "--name", "box", "--cpus", 2,
                       "--data-dir", self.folder / "host", "--token-file", self.data / "join")
            for trial in (0, 1):
                self.await_report(trial=trial, step=2)
            gangs = [ProcessExit(pid) for trial in (0, 1)
                     for pid in pids_of(self.get(f"/sweeps/s1/trials/{trial}"))]
            filler = fill(self.data)
            # Small writes may still fit into free space inside the database.
            for n in itertools.count():
                patch = json.dumps({"tags": [f"{n}-{i:060}" for i in range(50)]}).encode()
                if self.request("/api/v1/sweeps/s1:edit", "POST", patch)[0] == 507:
                    break
            gate.close()  # the reports of the gangs cannot be stored
            self.assertFalse(gangs[0].wait(full_s), "a gang ended while the disk was full")
            self.assertFalse(gangs[1].wait(0), "a gang ended while the disk was full")
            filler.unlink()
            self.assertEqual(run.wait(), 0, run.stderr)
            self.assertEqual(sum(json.loads(run.stdout)["trials"].values()), 8)
            serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
            serve.await_stderr(r"http://")
            self.assertEqual([t["attempt_count"] for t in self.check_histories_are_whole()], [1] * 8)
            serve.kill()


if __name__ == "__main__":
    unittest.main()
