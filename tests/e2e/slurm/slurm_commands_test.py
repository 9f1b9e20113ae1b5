"""`attune slurm` on a real Slurm: its manager, its output, and the input that it refuses."""

import contextlib
import ctypes
import json
import os
import pathlib
import random
import sqlite3
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import slurm_cluster  # noqa: E402
from slurm_cluster import LOGIN, Pilots, setUpModule, WORKER  # noqa: E402, F401
from support import ATTUNE, ROOT, ask_server, free_port, sweep  # noqa: E402


# Forwards connections from a node's loopback to the server. It ends with its parent, which becomes the executor.
RELAY = """
import ctypes, os, socket, sys, threading
ctypes.CDLL(None).prctl(1, 9)
def copy(one, other):
    while data := one.recv(1 << 16):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    near, _ = listener.accept()
    far = socket.create_connection((sys.argv[2], int(sys.argv[3])))
    for pair in ((near, far), (far, near)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
"""


class Tunnel(Pilots):
    def test_pilots_reach_the_server_through_a_user_program(self):
        self.serve()
        port = ask_server(self.data)["rpc"].rsplit(":", 1)[1]
        relay = self.write(RELAY, "relay.py")
        program = pathlib.Path(self.write(f"""#!/bin/bash
            exec 3< <(exec {sys.executable} {relay} 7999 {LOGIN} {port})
            read -r -u 3 _
            exec {ATTUNE} "$@"
            """.replace(" " * 12, ""), "attune-by-tunnel"))
        program.chmod(0o755)
        self.up("--program", program, "--executors", "127.0.0.1:7999", own=False)
        self.create(workers=2, trials=1)
        self.completed()
        (attempt,) = self.attempts()
        self.assertEqual(len({rank["executor"] for rank in attempt["ranks"]}), 2)
        log = next((self.data / "slurm/logs").glob("*-1.log")).read_text()
        self.assertIn("reached at 10.78.0.", log)


class Reports(Pilots):
    """Information about pilots: from the server, from waiting trials and from `attune slurm status`."""

    def fleet(self):
        (fleet,) = self.get("/pilots")["fleets"]
        return fleet

    def test_waiting_trials_show_the_reason_of_slurm(self):
        up = self.up("--", "--begin=now+1hour")
        self.create(workers=1, trials=1)
        up.await_stderr("^submitted ")
        waiting = self.until(lambda: next((w for w in [self.get("/sweeps/s1")["waiting_reason"]] if "BeginTime" in w),
                                          None), "the sweep does not say why its pilot waits")
        self.assertRegex(waiting, r"Slurm: 1 pilot .*PENDING \(BeginTime\)$")
        code, answer = self.request("/api/v1/sweeps/s1/trials", "POST", b'{"config": {"x": 1.0}}')
        self.assertEqual(code, 201, answer)  # a gang that waits
        self.assertEqual(self.get("/sweeps/s1/trials/0")["waiting_reason"], waiting)
        self.assertEqual(self.get("/sweeps/s1/trials")["trials"][0]["waiting_reason"], waiting)
        (pilot,) = self.fleet()["pilots"]
        self.assertEqual((pilot["state"], pilot["reason"], pilot["executors"]), ("PENDING", "BeginTime", []))
        code, out, err = self.attune("slurm", "status", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn("BeginTime", out)
        self.assertRegex(err, r"\b1 pilot\b.*PENDING \(BeginTime\)")

    def test_waiting_trials_show_a_refused_job(self):
        # The partition refuses jobs after the manager has started.
        up = self.up()
        self.addCleanup(slurm_cluster.cluster.run, "scontrol", "update", "partition=main", "state=up")
        slurm_cluster.cluster.run("scontrol", "update", "partition=main", "state=drain")
        self.create(workers=1, trials=1)
        up.await_stderr("Slurm refuses ")
        words = self.until(lambda: next((h["text"] for h in self.fleet()["blockers"] if "refuses" in h["text"]), None),
                           "the server has not heard")
        self.assertIn("partition", words.lower())
        self.assertIn(words, self.get("/sweeps/s1")["waiting_reason"])
        _, _, err = self.attune("slurm", "status", "--data-dir", self.data)
        self.assertIn(words, err)

    def test_hours_are_counted_across_a_restart_of_the_manager(self):
        self.serve()
        gate = self.close_gate(2)
        arguments = ["slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "2..3", "--time", 10,
                     "--gres", "gpu:2", "--poll", "100ms", "--idle", "1h"]
        up = self.start(*arguments)
        self.until(lambda: len(self.online()) == 2, "two pilots")
        self.create(workers=1, trials=1)
        self.await_report(trial=0, step=1)
        # One of two pilots is busy, so both idle hours and used hours grow.
        self.until(lambda: self.status("hours")["in_use"]["cpus"] > 0, "nothing is in use")
        up.kill()
        up = self.start(*arguments)
        up.await_stderr("has joined")
        before = self.status("hours")
        self.until(lambda: self.status("hours")["allocated"]["nodes"] > before["allocated"]["nodes"], "no hours are counted")
        self.assertEqual(self.get("/pilots")["fleets"][0]["hours"].keys(), before.keys())
        code, _, err = self.attune("slurm", "down", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        ran = slurm_cluster.cluster.run("squeue", "-h", "-t", "all", "-o", "%j|%M")
        fleet = json.loads((self.data / "slurm/fleet.json").read_text())["id"]
        seconds = sum(60 * int(m.split(":")[0]) + int(m.split(":")[1])
                      for name, m in (line.split("|") for line in ran.splitlines()) if fleet in name)
        hours = self.status("hours")
        self.assertAlmostEqual(hours["allocated"]["nodes"] * 3600, seconds, places=3)
        self.assertAlmostEqual(hours["allocated"]["gpus"] * 3600, 2 * seconds, places=3)
        self.assertEqual(hours["unobserved"]["nodes"], 0)
        self.assertGreater(hours["in_use"]["nodes"], 0)
        self.assertGreater(hours["idle"]["gpus"], hours["in_use"]["gpus"], "it asked for none")
        code, out, err = self.attune("slurm", "status", "--data-dir", self.data)
        self.assertRegex(out, r"GPU-hours allocated 0\.\d\d: 0\.00 in use, ")
        gate.close()

    def test_a_dead_manager_is_reported(self):
        self.serve()
        up = self.start("slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "1..1", "--poll",
                        "100ms")
        self.until(lambda: self.get("/pilots")["fleets"], "the server has not heard")
        self.assertFalse(self.fleet()["stale"])
        up.kill()
        self.until(lambda: self.fleet()["stale"], "a dead manager is not stale")
        self.assertGreater(self.fleet()["seconds_since_report"], 15)
        _, _, err = self.attune("slurm", "status", "--data-dir", self.data)
        self.assertRegex(err, r"\b\d+ s\b")


class Allocation(Pilots):
    def submit(self, *options, steps=2, trials=2):
        """Submits a job that runs a sweep of gangs on its two nodes."""
        file = self.write(sweep(command=WORKER, parameters={"x": {"value": 1.0}},
                                working_directory=str(self.folder),
                                env={"PYTHONPATH": str(ROOT / "clients/python"), "GATES": str(self.gates)},
                                resources={"workers": 2, "cpus_per_worker": 16, "gpus_per_worker": 2},
                                failure={"max_restarts": 0, "backoff": "0s"}, checkpoint={"every": 1},
                                scheduler={"name": "fifo", "max": steps}, stop={"max_trials": trials}))
        script = self.write(f"""#!/bin/bash
            exec {ATTUNE} run {file} --slurm --data-dir {self.data} --port 0 --rpc-port {free_port()} -o json
            """.replace(" " * 12, ""), "batch.sh")
        self.out, self.err = self.folder / "out", self.folder / "err"
        return slurm_cluster.cluster.run("sbatch", "--parsable", f"--job-name={self._testMethodName}", "--nodes=2",
                           "--exclusive", "--gres=gpu:2", "--time=10", "--open-mode=append",
                           f"--chdir={self.folder}", f"--output={self.out}", f"--error={self.err}",
                           *options, script)

    def state(self, job):
        return slurm_cluster.cluster.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T")

    def await_completed(self, job):
        self.until(lambda: self.state(job) in ("COMPLETED", "FAILED", "NODE_FAIL"), "the job does not end")
        logs = "".join(log.read_text() for log in (self.data / "slurm/logs").glob("*"))
        self.assertEqual(self.state(job), "COMPLETED", self.err.read_text() + logs)

    def rows(self, query):
        if not (self.data / "attune.db").exists():
            return []
        with contextlib.closing(sqlite3.connect(self.data / "attune.db", timeout=10)) as database:
            with contextlib.suppress(sqlite3.OperationalError):  # the tables do not exist yet
                return database.execute(query).fetchall()
        return []

    def test_a_sweep_runs_on_all_nodes_of_an_allocation(self):
        job = self.submit()
        self.await_completed(job)
        self.assertEqual(json.loads(self.out.read_text())["trials"]["completed"], 2)
        (ranks,) = self.rows("SELECT ranks FROM attempts LIMIT 1")[0]
        self.assertEqual([rank["executor"] for rank in json.loads(ranks)], [f"job-{job}-0", f"job-{job}-1"])
        for node in (0, 1):
            log = (self.data / f"slurm/logs/job-{job}-{node}.log").read_text()
            self.assertIn(f"pilot job-{job}-{node}: job {job} on n{node + 1}", log)

    def test_a_requeued_job_resumes_its_sweep(self):
        gate = self.close_gate(3)
        job = self.submit("--requeue", steps=4, trials=1)
        self.until(lambda: self.rows("SELECT 1 FROM checkpoints WHERE step = 2"), "no checkpoint")
        slurm_cluster.cluster.run("scontrol", "requeue", job)
        self.until(lambda: self.state(job) == "PENDING", "the job is not back in the queue")
        gate.close()
        # Slurm delays a requeued job by two minutes. For a second after a kill, nodes refuse it.
        slurm_cluster.cluster.run("scontrol", "update", f"jobid={job}", "starttime=now+2")
        self.await_completed(job)
        self.assertRegex(self.err.read_text(), r"\bresuming\b.*\bs1\b")
        self.assertEqual(self.rows("SELECT count(*) FROM sweeps"), [(1,)])
        first, second = self.rows("SELECT number, outcome, resumed_from FROM attempts ORDER BY number")
        self.assertNotEqual(first[1], "finished")
        self.assertEqual(second[1:], ("finished", 2))

    def test_outside_an_allocation_it_says_how_to_get_one(self):
        code, _, err = self.attune("run", self.write(sweep()), "--slurm", "--data-dir", self.data)
        self.assertEqual(code, 2)
        self.assertIn("salloc", err)
        self.assertFalse(self.data.exists())


class Manager(Pilots):
    def test_a_killed_manager_submits_no_job_twice(self):
        seed = int(os.environ.get("ATTUNE_SEED", time.time_ns()))
        print(f"ATTUNE_SEED={seed}")
        moments = random.Random(seed)
        self.serve()
        gate = self.close_gate(2)
        self.create(workers=1, trials=3)
        arguments = ["slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "0..8", "--time",
                     "10", "--poll", "100ms"]
        for _ in range(4):
            up = self.start(*arguments)
            time.sleep(moments.uniform(0, 0.3))
            up.kill()
            self.assertLessEqual(len(self.jobs()), 3)
            up = self.start(*arguments)
            # After a kill, it waits half a minute for jobs that it may have submitted.
            self.until(lambda: len(self.online() & set(self.jobs())) == 3, "three pilots")
            self.assertEqual(len(self.jobs()), 3)
            up.kill()
            slurm_cluster.cluster.run("scancel", "-u", "root")
            self.until(lambda: not self.jobs(), "jobs are left")
        self.start(*arguments, "--idle", "1s")
        gate.close()
        self.completed()
        self.until(lambda: not self.jobs(), "pilots are left")

    def test_down_leaves_no_job_and_no_manager(self):
        up = self.up(nodes="2..3")
        self.until(lambda: len(self.online()) == 2, "two pilots")
        began = time.monotonic()
        code, _, err = self.attune("slurm", "down", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"\b2 pilots\b")
        print(f"`slurm down` of two pilots: {time.monotonic() - began:.2f} s")
        self.assertEqual(self.jobs(), {})
        self.assertEqual(up.wait(), 0)
        self.assertIn("attune slurm down", "\n".join(up.stderr))
        code, _, err = self.attune("slurm", "down", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn("no pilots", err)

    def test_it_works_for_a_named_server(self):
        self.serve()
        url = ask_server(self.data)["http"]
        self.up("--server", url, "--cpus", 4, "--mem", 1000, own=False, nodes="2..2")
        self.until(lambda: len(self.online()) == 2, "two pilots")
        self.assertEqual({e["cpus"] for e in self.get("/executors")["executors"]}, {4})
        self.assertEqual({e["memory_bytes"] for e in self.get("/executors")["executors"]}, {1000 << 20})

    def test_a_second_manager_is_refused(self):
        self.up()
        code, _, err = self.attune("slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "3")
        self.assertEqual(code, 1)
        self.assertIn("attune slurm up", err)


class BadInput(Pilots):
    def refused(self, *args, partition="main", nodes="0..3"):
        before = self.jobs("all")
        code, out, err = self.attune("slurm", "up", "--data-dir", self.data, "--partition", partition,
                                     "--nodes", nodes, *args)
        self.assertNotEqual(code, 0, err)
        self.assertEqual(out, "")
        self.assertEqual(self.jobs("all"), before, "nothing is submitted")
        self.assertFalse((self.data / "slurm").exists(), "nothing has begun")
        return err

    def test_options_that_slurm_would_refuse_or_delay_for_ever(self):
        self.assertRegex(self.refused(partition="gpu"), r"\bgpu\b.*\bmain, short, urgent\b")
        self.assertRegex(self.refused("--time", "0:30"), r"\b60 s\b")
        self.assertIn("PartitionTimeLimit", self.refused("--time", "1:00:00", partition="short"))
        self.assertRegex(self.refused("--gres", "gpu:3"), r"\b2 GPUs\b")
        self.assertIn("Invalid --time", self.refused("--", "--time=soon"))
        self.assertIn("Invalid feature", self.refused("--", "--constraint=none"))
        self.assertIn("write 0..8", self.refused(nodes="8..1"))
        self.assertRegex(self.refused("--nodes-per-pilot", 4, nodes="0..8"), r"\b3 nodes\b")
        self.assertRegex(self.refused("--nodes-per-pilot", 2, nodes="3..3"), r"\b2 nodes\b")

    def test_a_machine_without_slurm(self):
        self.environment["PATH"] = str(self.folder)
        self.assertIn("login node", self.refused())

    def test_a_controller_that_is_down(self):
        self.environment["SLURM_CONF"] = self.write("ClusterName=x\nSlurmctldHost=nowhere(10.78.0.99)\n", "x.conf")
        self.refused()

    def test_a_server_that_pilots_cannot_reach(self):
        self.start("serve", "--data-dir", self.data, "--port", 0).await_stderr("^page")
        code, _, err = self.attune("slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "1")
        self.assertEqual(code, 2)
        self.assertIn("--rpc-host 0.0.0.0", err)
        self.assertEqual(self.jobs(), {})

    def test_a_gang_larger_than_the_partition(self):
        up = self.up(nodes="0..8")
        self.create(workers=4, trials=1)
        up.await_stderr(r"\b4 workers\b.*\b4 pilots\b.*\b3\b")
        self.assertEqual(self.jobs(), {})


if __name__ == "__main__":
    unittest.main()
