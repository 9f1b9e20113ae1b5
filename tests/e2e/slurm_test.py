"""Pilots on a real Slurm of three nodes, made on this machine by slurm_cluster.sh."""

import contextlib
import ctypes
import datetime
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

from support import ATTUNE, EndToEnd, PATIENCE_S, ROOT, ask_server, free_port, sweep

CLUSTER = ROOT / "tests/e2e/programs/slurm_cluster.sh"
WORKER = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/fleet_worker.py")]
LOGIN = "10.78.0.254"
CLONE_NEWNET = 0x40000000
NEEDED = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "sinfo", "ip", "unshare")


def missing():
    """Why there can be no cluster here; empty: there can."""
    if os.geteuid() != 0:
        return "only root can make the cluster's namespaces"
    lacking = [tool for tool in NEEDED if not shutil.which(tool)]
    if lacking:
        return (f"{', '.join(lacking)} missing: apt-get install --no-install-recommends slurmctld slurmd "
                "slurm-client slurm-wlm-basic-plugins munge iproute2")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode != 0:
        return "namespaces cannot be made here"
    return ""


class Cluster:
    def __init__(self, nodes=3):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attune-slurm-"))
        self.folder.chmod(0o755)
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"))
        self.nodes = nodes
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
             CLUSTER, self.folder, str(nodes)], stdout=self.log, stderr=self.log)
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.libc = ctypes.CDLL(None, use_errno=True)

    def enter(self):
        """This thread, and what it starts, is on the login node from now on."""
        deadline = time.monotonic() + PATIENCE_S
        pid = self.process.pid
        while True:  # nothing tells that a namespace has its bridge, or a node its slurmd
            with contextlib.suppress(OSError, IndexError):
                child = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
                with open(f"/proc/{child}/ns/net") as namespace:
                    if self.libc.setns(namespace.fileno(), CLONE_NEWNET) == 0 and self.is_idle():
                        return
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError("no cluster:\n" + (self.folder / "log").read_text())
            time.sleep(0.05)

    def is_idle(self):
        return self.run("sinfo", "-h", "-t", "idle", "-p", "main", "-o", "%D") == str(self.nodes)

    def run(self, *words):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return done.stdout.strip()

    def kill_controller(self):
        """Another one is started half a second later."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                ours = f"SLURM_CONF={self.environment['SLURM_CONF']}".encode()
                if (folder / "comm").read_text() == "slurmctld\n" and ours in (folder / "environ").read_bytes():
                    os.kill(int(folder.name), signal.SIGKILL)

    def end(self):
        self.libc.setns(self.home, CLONE_NEWNET)
        os.close(self.home)
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def setUpModule():
    if why := missing():
        print("SKIPPED:", why)  # CTest looks for it
        raise unittest.SkipTest(why)
    global cluster
    cluster = Cluster()
    unittest.addModuleCleanup(cluster.end)
    began = time.monotonic()
    cluster.enter()
    print(f"a cluster of {cluster.nodes} nodes after {time.monotonic() - began:.2f} s")


class Pilots(EndToEnd):
    def setUp(self):
        super().setUp()
        self.environment["SLURM_CONF"] = str(cluster.folder / "slurm.conf")
        self.environment["PYTHONPATH"] = str(ROOT / "clients/python")
        self.addCleanup(self._end_jobs)

    def _end_jobs(self):
        for process in self.processes:  # a manager would submit again
            process.kill()
        cluster.run("scancel", "-u", "root")
        self.until(lambda: not self.jobs(), "jobs are left")

    def until(self, condition, what, patience_s=PATIENCE_S):
        """Slurm and a manager tell nobody what they do: they are asked."""
        deadline = time.monotonic() + patience_s
        while not (value := condition()):
            if time.monotonic() > deadline:
                lines = [line for process in self.processes for line in process.stderr]
                self.fail(f"{what}\n" + "\n".join(lines[-40:]))
            time.sleep(0.05)
        return value

    def jobs(self, states="PD,CF,R,CG"):
        """{name: (job, state, node)} of what has not ended."""
        lines = cluster.run("squeue", "-h", "-t", states, "-o", "%i|%j|%T|%N").splitlines()
        jobs = {}
        for line in lines:
            job, name, state, node = line.split("|")
            self.assertNotIn(name, jobs, "one name, two jobs")
            jobs[name] = (job, state, node)
        return jobs

    def ever(self):
        """The state of every pilot there was, by name; Slurm remembers for five minutes."""
        fleet = json.loads((self.data / "slurm/fleet.json").read_text())["id"]
        return {name: state for name, (_, state, _) in self.jobs("all").items() if fleet in name}

    def up(self, *more, nodes="0..3", own=True, minutes=10):
        server = ["--rpc-host", LOGIN, "--port", 0, "--rpc-port", free_port()] if own else []
        process = self.start("slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", nodes,
                             "--idle", "2s", "--poll", "200ms", "--time", minutes, *server, *more)
        process.await_stderr(r"^pilots ")
        return process

    def serve(self):
        process = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-host", LOGIN,
                             "--rpc-port", free_port(), "--lease", 3)
        process.await_stderr(r"^executors ")
        return process

    def create(self, workers, trials, cpus=16, **changes):
        file = self.write(sweep(**{
            "command": WORKER, "parameters": {"x": {"value": 1.0}}, "working_directory": str(self.folder),
            "env": {"PYTHONPATH": str(ROOT / "clients/python")},
            "resources": {"workers": workers, "cpus_per_worker": cpus},
            "scheduler": {"name": "fifo", "max": 4}, "stop": {"max_trials": trials},
            "failure": {"max_restarts": 0, "backoff": "0s"}, **changes}))
        code, _, err = self.attune("sweep", "create", file, "--data-dir", self.data)
        self.assertEqual(code, 0, err)

    def completed(self, sweep_id="s1"):
        state = self.until(lambda: next((s for s in [self.get(f"/sweeps/{sweep_id}")["state"]]
                                         if s not in ("running", "paused")), None), "the sweep does not end")
        self.assertEqual(state, "completed", self.get(f"/sweeps/{sweep_id}"))

    def online(self):
        return {e["name"] for e in self.get("/executors")["executors"] if e["state"] == "online"}

    def attempts(self, trial=0):
        return self.get(f"/sweeps/s1/trials/{trial}")["attempts"]

    def status(self, part="pilots"):
        code, out, err = self.attune("slurm", "status", "--data-dir", self.data, "-o", "json")
        self.assertEqual(code, 0, err)
        return json.loads(out)[part]


class Life(Pilots):
    def test_a_gang_of_two_over_two_nodes(self):
        self.up()
        began = time.monotonic()
        self.create(workers=2, trials=1)
        self.await_report(trial=0, step=1)
        print(f"from `sweep create` to the first step of a gang over two nodes: "
              f"{time.monotonic() - began:.2f} s")
        self.completed()
        began = time.monotonic()
        self.create(workers=2, trials=1)
        self.await_event(lambda kind, data: kind == "trial_reported" and data["sweep"] == "s2")
        print(f"the same of a second sweep, on pilots that run: {time.monotonic() - began:.2f} s")
        self.completed("s2")
        (attempt,) = self.attempts()
        self.assertEqual(attempt["outcome"], "finished")
        self.assertEqual(len({rank["executor"] for rank in attempt["ranks"]}), 2)
        self.assertEqual(len(self.ever()), 2, "as many as it needed, and the second no more")
        name = attempt["ranks"][0]["executor"]
        self.assertRegex(name, r"^attune-[0-9a-f]{8}-[12]$")
        code, out, err = self.attune("slurm", "logs", name.rsplit("-", 1)[1], "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn(f"pilot {name}: job ", out)

    def test_up_to_three_pilots_and_down_to_none(self):
        gate = self.close_gate(2)
        up = self.up("--gres", "gpu:2")
        self.create(workers=1, trials=5)
        self.until(lambda: len(self.online()) == 3, "three pilots")
        self.assertEqual({e["cpus"] for e in self.get("/executors")["executors"]}, {16})
        self.assertEqual({e["gpus"] for e in self.get("/executors")["executors"]}, {2})
        self.assertEqual({node for _, _, node in self.jobs().values()}, {"n1", "n2", "n3"})
        self.until(lambda: sum(t["state"] == "running" for t in self.get("/sweeps/s1/trials")["trials"]) == 3,
                   "three trials")
        pilots = self.status()
        self.assertEqual({(p["state"], p["executors"][0]["cpus_free"]) for p in pilots}, {("RUNNING", 0)})
        gate.close()
        self.completed()
        ended = time.monotonic()
        self.until(lambda: not self.jobs(), "pilots are left")
        print(f"from the sweep's end to no job, --idle 2s: {time.monotonic() - ended:.2f} s")
        self.assertEqual(list(self.ever().values()), ["COMPLETED"] * 3, "and nothing was submitted in between")
        for _ in range(3):
            up.await_stderr("as nobody needed it")

    def interrupted(self, end, minutes=10, patience_s=PATIENCE_S, outcome="failed", why="its executor was stopped"):
        """A trial whose pilot `end(job, node)` ends goes on with another one, at no cost."""
        gate = self.close_gate(3)
        self.up(minutes=minutes)
        self.create(workers=1, trials=1)
        self.await_report(trial=0, step=2)
        ((name, (job, _, node)),) = self.jobs().items()
        began = time.monotonic()
        end(job, node)
        self.until(lambda: len(self.attempts()) == 2, "a second attempt", patience_s)
        print(f"  another pilot runs it after {time.monotonic() - began:.2f} s")
        gate.close()
        self.completed()
        first, second = self.attempts()
        self.assertEqual(first["outcome"], outcome)
        self.assertIn(why, first["failure"])  # max_restarts is 0: nobody is charged
        self.assertEqual(second["outcome"], "finished")
        self.assertEqual(second["resumed_from"], 2)
        self.assertNotEqual(second["executor"], name)
        return self.ever()[name]

    def test_a_pilot_that_somebody_cancels_costs_its_trial_nothing(self):
        self.interrupted(lambda job, node: cluster.run("scancel", job))

    def test_nor_does_a_node_that_goes_down(self):
        def set_down(job, node):
            cluster.run("scontrol", "update", f"node={node}", "state=down", "reason=test")
            self.addCleanup(cluster.run, "scontrol", "update", f"node={node}", "state=resume")
        self.interrupted(set_down)

    def test_nor_does_a_node_whose_link_is_cut(self):
        def cut(job, node):
            self.addCleanup(self.until, cluster.is_idle, "the node is not back")
            self.addCleanup(cluster.run, "ip", "link", "set", f"node{node[1:]}", "up")
            cluster.run("ip", "link", "set", f"node{node[1:]}", "down")
        self.assertEqual(self.interrupted(cut, patience_s=120, outcome="lost", why=""), "NODE_FAIL")

    def test_before_the_end_of_its_time_a_trial_saves_and_goes_on_with_one_that_is_there(self):
        self.up(minutes=2)  # less the one to leave in
        script = self.write("import time, attune\nattune.init()\n"
                            "for step in range(attune.step + 1, 1 << 30):\n"
                            "    time.sleep(0.1)\n"
                            "    attune.report({'score': step}, step, checkpoint=lambda folder: None)\n", "train.py")
        self.create(workers=1, trials=1, command=[sys.executable, "-B", script],
                    scheduler={"name": "fifo", "max": 1 << 30})
        self.await_report(trial=0, step=2)
        self.until(lambda: len(self.attempts()) == 2, "a second attempt", 120)
        first, second = self.attempts()
        self.assertEqual((first["outcome"], first["failure"]), ("paused", ""))
        self.assertNotEqual(first["executor"], second["executor"])
        history = self.get("/sweeps/s1/trials/0")["history"]
        self.assertEqual(max(report["step"] for report in history if report["attempt"] == 1),
                         second["resumed_from"], "no step is lost")
        decided, ended = (datetime.datetime.fromisoformat(each.replace("Z", "+00:00"))
                          for each in (second["decided"], first["ended"]))
        print(f"  another pilot runs it after {(decided - ended).total_seconds():.2f} s")
        self.assertLess((decided - ended).total_seconds(), 2, "the other was there before")

    def test_a_pilot_without_a_server_ends_by_itself(self):
        self.data.mkdir()
        up = self.up("--give-up", "2s", nodes="1..1")
        self.until(lambda: len(self.online()) == 1, "a pilot")
        up.kill()
        began = time.monotonic()
        self.until(lambda: not self.jobs(), "the pilot goes on")
        print(f"from the server's death to the pilot's end, --give-up 2s: {time.monotonic() - began:.2f} s")


class SeveralNodes(Pilots):
    """Pilots of two nodes each, and gangs over both."""

    def up(self, *more, **options):
        return super().up("--nodes-per-pilot", 2, *more, **options)

    def gang(self, trial=0):
        """The executors of a trial's newest attempt that has ranks."""
        return [rank["executor"] for rank in self.attempts(trial)[-1]["ranks"]]

    def running(self, steps=4):
        """A gang of two that runs on a pilot: its name, and its job."""
        self.create(workers=2, trials=1, scheduler={"name": "fifo", "max": steps})
        self.await_report(trial=0, step=2)
        ((name, (job, state, nodes)),) = self.jobs().items()
        self.assertEqual((state, nodes), ("RUNNING", "n[1-2]"))
        self.assertEqual(self.gang(), [f"{name}.0", f"{name}.1"])
        return name, job

    def goes_on(self, end, why="its executor was stopped", steps=4):
        """What `end(name, job)` does to its pilot costs the trial nothing."""
        gate = self.gate = self.close_gate(3)
        up = self.up()
        name, job = self.running(steps)
        began = time.monotonic()
        end(name, job)
        self.until(lambda: len(self.attempts()) == 2, "a second attempt", 120)
        print(f"  another pilot runs it after {time.monotonic() - began:.2f} s")
        saved = 2 if not gate.closed else max(report["step"] for report in self.get("/sweeps/s1/trials/0")["history"]
                                              if report["attempt"] == 1)
        gate.close()
        self.completed()
        first, second = self.attempts()
        self.assertIn(why, first["failure"])  # max_restarts is 0: nobody is charged
        self.assertEqual((second["outcome"], second["resumed_from"]), ("finished", saved))
        self.assertEqual([rank["executor"].rsplit(".", 1)[0] for rank in second["ranks"]],
                         [name.removesuffix("-1") + "-2"] * 2)
        return up

    def test_a_gang_over_both_starts_in_one_job_and_is_let_go_whole(self):
        self.environment["GATES"] = str(self.gates)
        gate = self.close_gate(3)
        up = self.up()
        name, job = self.running()
        (pilot,) = self.status()
        self.assertEqual((pilot["nodes"], [e["cpus_free"] for e in pilot["executors"]]), (2, [0, 0]))
        gate.close()
        self.completed()
        ended = time.monotonic()
        self.until(lambda: not self.jobs(), "a pilot is left")
        print(f"from the sweep's end to no job, --idle 2s: {time.monotonic() - ended:.2f} s")
        self.assertEqual(self.ever(), {name: "COMPLETED"}, "its executors were asked, and all left")
        up.await_stderr("as nobody needed it")
        code, out, err = self.attune("slurm", "logs", 1, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        for node in (0, 1):
            self.assertIn(f"pilot {name}.{node}: job {job} on n{node + 1}", out)
        # No executor was told twice, which lets it take no leave.
        self.assertEqual([e["state"] for e in self.get("/executors")["executors"]], ["lost", "lost"])

    def test_never_above_the_limit_and_the_largest_gang_first(self):
        up = self.up(nodes="0..3")
        self.create(workers=1, trials=4)
        self.until(lambda: len(self.online()) == 2, "a pilot")
        self.completed()
        self.assertEqual(len(self.ever()), 1, "a second one would be four nodes")
        self.create(workers=3, trials=1)
        up.await_stderr(r"needs 2 pilots of 2 nodes with .*; there can be 1")

    def test_of_parts_of_nodes(self):
        self.data.mkdir()
        self.up("--cpus", 4, "--mem", 1000, "--gres", "gpu:1", nodes="4..4")
        self.until(lambda: len(self.online()) == 4, "two pilots")
        self.assertEqual({(e["cpus"], e["gpus"], e["memory_bytes"]) for e in self.get("/executors")["executors"]},
                         {(4, 1, 1000 << 20)})

    def test_one_that_somebody_cancels(self):
        self.goes_on(lambda name, job: cluster.run("scancel", job))

    def test_one_whose_time_is_over(self):
        # What Slurm does a minute before the end, without the two minutes until then.
        def tell(name, job):
            cluster.run("scancel", "--batch", "--signal=TERM", job)
            self.await_event(lambda kind, data: kind == "trial_yielding")
            self.gate.close()
        self.goes_on(tell, why="", steps=1000)
        self.assertEqual(sorted(self.ever().items())[0][1], "COMPLETED", "it has left by itself")

    def test_one_that_loses_a_node_ends_as_a_whole(self):
        # The gangs that it is there for cannot run on the rest.
        def set_down(name, job):
            cluster.run("scontrol", "update", "node=n2", "state=down", "reason=test")
            self.until(lambda: self.ever()[name] == "NODE_FAIL", "the job goes on")
            cluster.run("scontrol", "update", "node=n2", "state=resume")
        self.addCleanup(self.until, cluster.is_idle, "the node is not back")
        self.goes_on(set_down)

    def test_one_that_loses_the_link_of_a_node(self):
        def cut(name, job):
            self.addCleanup(self.until, cluster.is_idle, "the node is not back")
            self.addCleanup(cluster.run, "ip", "link", "set", "node2", "up")
            cluster.run("ip", "link", "set", "node2", "down")
        self.goes_on(cut, why="")
        self.assertEqual(sorted(self.ever().items())[0][1], "NODE_FAIL")

    def test_a_manager_that_comes_after_finds_it_and_down_ends_it(self):
        self.serve()
        arguments = ["slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "2..3",
                     "--nodes-per-pilot", 2, "--time", 10, "--poll", "100ms", "--idle", "1s"]
        up = self.start(*arguments)
        self.until(lambda: len(self.online()) == 2, "a pilot")
        up.kill()
        up = self.start(*arguments)
        up.await_stderr("^pilots ")
        up.await_stderr("has joined from n")
        self.assertEqual(len(self.ever()), 1)
        code, _, err = self.attune("slurm", "down", "--data-dir", self.data)
        self.assertEqual((code, err), (0, "1 pilot has ended"))
        self.assertEqual(list(self.ever().values()), ["COMPLETED"])


# On a node's loopback it takes connections for the server, and ends with the executor that its process becomes.
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
    def test_pilots_reach_the_server_by_a_program_of_ones_own(self):
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


class Eyes(Pilots):
    """What people are told of pilots: by the server, by what waits, by `attune slurm status`."""

    def fleet(self):
        (fleet,) = self.get("/pilots")["fleets"]
        return fleet

    def test_what_waits_says_slurms_own_words(self):
        up = self.up("--", "--begin=now+1hour")
        self.create(workers=1, trials=1)
        up.await_stderr("^submitted ")
        waiting = self.until(lambda: next((w for w in [self.get("/sweeps/s1")["waiting_reason"]] if "BeginTime" in w),
                                          None), "the sweep does not say why its pilot waits")
        self.assertRegex(waiting, r"^no executor is connected; Slurm: 1 pilot is PENDING \(BeginTime\)$")
        code, answer = self.request("/api/v1/sweeps/s1/trials", "POST", b'{"config": {"x": 1.0}}')
        self.assertEqual(code, 201, answer)  # one that is there and waits
        self.assertEqual(self.get("/sweeps/s1/trials/0")["waiting_reason"], waiting)
        self.assertEqual(self.get("/sweeps/s1/trials")["trials"][0]["waiting_reason"], waiting)
        (pilot,) = self.fleet()["pilots"]
        self.assertEqual((pilot["state"], pilot["reason"], pilot["executors"]), ("PENDING", "BeginTime", []))
        code, out, err = self.attune("slurm", "status", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn("BeginTime", out)
        self.assertIn("1 pilot is PENDING (BeginTime)", err)

    def test_a_refusal_is_said_where_it_is_waited_for(self):
        # The partition takes no more jobs once the manager runs.
        up = self.up()
        self.addCleanup(cluster.run, "scontrol", "update", "partition=main", "state=up")
        cluster.run("scontrol", "update", "partition=main", "state=drain")
        self.create(workers=1, trials=1)
        up.await_stderr("Slurm refuses a pilot: ")
        words = self.until(lambda: next((h["text"] for h in self.fleet()["blockers"] if "refuses" in h["text"]), None),
                           "the server has not heard")
        self.assertIn("partition", words.lower())
        self.assertIn(words, self.get("/sweeps/s1")["waiting_reason"])
        _, _, err = self.attune("slurm", "status", "--data-dir", self.data)
        self.assertIn(words, err)

    def test_hours_are_those_that_pilots_ran_over_a_managers_death_too(self):
        self.serve()
        gate = self.close_gate(2)
        arguments = ["slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "2..3", "--time", 10,
                     "--gres", "gpu:2", "--poll", "100ms", "--idle", "1h"]
        up = self.start(*arguments)
        self.until(lambda: len(self.online()) == 2, "two pilots")
        self.create(workers=1, trials=1)
        self.await_report(trial=0, step=1)
        # One of two is at work: what is idle grows, and what is in use.
        self.until(lambda: self.status("hours")["in_use"]["cpus"] > 0, "nothing is in use")
        up.kill()
        up = self.start(*arguments)
        up.await_stderr("has joined")
        before = self.status("hours")
        self.until(lambda: self.status("hours")["allocated"]["nodes"] > before["allocated"]["nodes"], "no hours are counted")
        self.assertEqual(self.get("/pilots")["fleets"][0]["hours"].keys(), before.keys())
        code, _, err = self.attune("slurm", "down", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        ran = cluster.run("squeue", "-h", "-t", "all", "-o", "%j|%M")
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

    def test_a_manager_that_is_gone_is_said_to_be(self):
        self.serve()
        up = self.start("slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "1..1", "--poll",
                        "100ms")
        self.until(lambda: self.get("/pilots")["fleets"], "the server has not heard")
        self.assertFalse(self.fleet()["stale"])
        up.kill()
        self.until(lambda: self.fleet()["stale"], "a dead manager is not stale")
        self.assertGreater(self.fleet()["seconds_since_report"], 15)
        _, _, err = self.attune("slurm", "status", "--data-dir", self.data)
        self.assertRegex(err, r"has been silent for \d+ s: nobody submits pilots")


class Allocation(Pilots):
    def submit(self, *options, steps=2, trials=2):
        """A job that runs a sweep of gangs over its two nodes."""
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
        return cluster.run("sbatch", "--parsable", f"--job-name={self._testMethodName}", "--nodes=2",
                           "--exclusive", "--gres=gpu:2", "--time=10", "--open-mode=append",
                           f"--chdir={self.folder}", f"--output={self.out}", f"--error={self.err}",
                           *options, script)

    def state(self, job):
        return cluster.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T")

    def await_completed(self, job):
        self.until(lambda: self.state(job) in ("COMPLETED", "FAILED", "NODE_FAIL"), "the job does not end")
        logs = "".join(log.read_text() for log in (self.data / "slurm/logs").glob("*"))
        self.assertEqual(self.state(job), "COMPLETED", self.err.read_text() + logs)

    def rows(self, query):
        if not (self.data / "attune.db").exists():
            return []
        with contextlib.closing(sqlite3.connect(self.data / "attune.db", timeout=10)) as database:
            with contextlib.suppress(sqlite3.OperationalError):  # no tables yet
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

    def test_a_job_that_is_requeued_goes_on_with_its_sweep(self):
        gate = self.close_gate(3)
        job = self.submit("--requeue", steps=4, trials=1)
        self.until(lambda: self.rows("SELECT 1 FROM checkpoints WHERE step = 2"), "no checkpoint")
        cluster.run("scontrol", "requeue", job)
        self.until(lambda: self.state(job) == "PENDING", "the job is not back in the queue")
        gate.close()
        # Slurm lets it wait for two minutes; nodes refuse a job for the second in which they killed it.
        cluster.run("scontrol", "update", f"jobid={job}", "starttime=now+2")
        self.await_completed(job)
        self.assertIn("resuming sweep s1", self.err.read_text())
        self.assertEqual(self.rows("SELECT count(*) FROM sweeps"), [(1,)])
        first, second = self.rows("SELECT number, outcome, resumed_from FROM attempts ORDER BY number")
        self.assertNotEqual(first[1], "finished")
        self.assertEqual(second[1:], ("finished", 2))

    def test_outside_of_one_it_says_how_to_get_one(self):
        code, _, err = self.attune("run", self.write(sweep()), "--slurm", "--data-dir", self.data)
        self.assertEqual(code, 2)
        self.assertIn("salloc", err)
        self.assertFalse(self.data.exists())


class Manager(Pilots):
    def test_killed_at_any_moment_it_submits_nothing_twice(self):
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
            # What it cannot know to be submitted it believes for half a minute.
            self.until(lambda: len(self.online() & set(self.jobs())) == 3, "three pilots")
            self.assertEqual(len(self.jobs()), 3)
            up.kill()
            cluster.run("scancel", "-u", "root")
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
        self.assertIn("2 pilots have ended", err)
        print(f"`slurm down` of two pilots: {time.monotonic() - began:.2f} s")
        self.assertEqual(self.jobs(), {})
        self.assertEqual(up.wait(), 0)
        self.assertIn("ended by `attune slurm down`", "\n".join(up.stderr))
        code, _, err = self.attune("slurm", "down", "--data-dir", self.data)
        self.assertEqual((code, err), (0, "there were no pilots"))

    def test_it_serves_a_server_that_is_named(self):
        self.serve()
        url = ask_server(self.data)["http"]
        self.up("--server", url, "--cpus", 4, "--mem", 1000, own=False, nodes="2..2")
        self.until(lambda: len(self.online()) == 2, "two pilots")
        self.assertEqual({e["cpus"] for e in self.get("/executors")["executors"]}, {4})
        self.assertEqual({e["memory_bytes"] for e in self.get("/executors")["executors"]}, {1000 << 20})

    def test_a_second_one_is_refused(self):
        self.up()
        code, _, err = self.attune("slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "3")
        self.assertEqual(code, 1)
        self.assertIn("another `attune slurm up`", err)


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

    def test_what_slurm_would_refuse_or_let_wait_for_ever(self):
        self.assertIn("no partition `gpu`; `sinfo` shows main, short, urgent", self.refused(partition="gpu"))
        self.assertIn("60 s before its time is over", self.refused("--time", "0:30"))
        self.assertIn("PartitionTimeLimit", self.refused("--time", "1:00:00", partition="short"))
        self.assertIn("has more than 2 GPUs", self.refused("--gres", "gpu:3"))
        self.assertIn("Invalid --time", self.refused("--", "--time=soon"))
        self.assertIn("Invalid feature specification",
                      self.refused("--", "--constraint=none"))
        self.assertIn("write 0..8", self.refused(nodes="8..1"))
        self.assertIn("has 3 nodes", self.refused("--nodes-per-pilot", 4, nodes="0..8"))
        self.assertIn("no number of pilots of 2 nodes", self.refused("--nodes-per-pilot", 2, nodes="3..3"))

    def test_a_machine_without_slurm(self):
        self.environment["PATH"] = str(self.folder)
        self.assertIn("login node", self.refused())

    def test_a_controller_that_is_away(self):
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
        up.await_stderr(r"a gang of 4 workers with 16 CPUs each needs 4 pilots .*; there can be 3")
        self.assertEqual(self.jobs(), {})


if __name__ == "__main__":
    unittest.main()
