"""Gangs on several executors: real ranks that connect across hosts, and the loss of a rank or executor.

Hosts are executors of this machine with different addresses (127.0.0.x), or network namespaces if the
machine allows them.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

from support import BUILD, EndToEnd, FASHION_MNIST, ProcessExit, ROOT, free_port, sweep
from torch_environment import ENVIRONMENT, needs_torch

WORKER = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/fleet_worker.py")]
SMALL = {"command": [FASHION_MNIST], "metric": {"name": "accuracy", "mode": "max"},
         "parameters": {"lr": {"value": 0.1}, "width": {"value": 8},
                        "samples_per_step": {"value": 1024}},
         "scheduler": {"name": "fifo", "max": 2}, "failure": {"max_restarts": 1, "backoff": "0s"}}
CLONE_NEWNET = 0x40000000
HIDING = 'mount -t tmpfs tmpfs "$0" && exec "$@"'  # hides a folder from a program


def children(pid):
    with contextlib.suppress(OSError):
        return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text().split()]
    return []


def ranks_of(executor):
    """Returns the processes of an executor's ranks: children of a launcher, or of the executor if the launcher was slow."""
    own = children(executor.popen.pid)
    spawned = [pid for pid in own
               if b"ATTUNE_RANK=" in pathlib.Path(f"/proc/{pid}/environ").read_bytes()]
    return spawned or [rank for launcher in own for rank in children(launcher)]


class Fleet(EndToEnd):
    def begin(self, hosts, **changes):
        """Starts a server with `attune run`, and an executor for each of {name: (CPUs, more arguments)}."""
        self.port = free_port()
        spec = {"command": WORKER, "parameters": {"x": {"value": 1.0}},
                "env": {"PYTHONPATH": str(ROOT / "clients/python")},
                "working_directory": str(self.folder),
                "resources": {"workers": 4, "cpus_per_worker": 1},
                "scheduler": {"name": "fifo", "max": 4}, "stop": {"max_trials": 1},
                "failure": {"max_restarts": 0, "backoff": "0s"}, **changes}
        self.run_ = self.run_sweep(self.write(sweep(**spec)), "--no-executor", "--rpc-port", self.port,
                                   "-o", "json")
        self.run_.await_stderr(r"http://")
        self.executors = {}
        for name, (cpus, *more) in hosts.items():
            self.start_executor(name, cpus, *more)

    def start_executor(self, name, cpus, *more, prefix=(), server="127.0.0.1"):
        args = ["executor", "--server", f"{server}:{self.port}", "--name", name, "--cpus", cpus,
                "--data-dir", self.folder / name, "--token-file", self.data / "join", *more]
        first, *others = [*prefix, self.program]
        process = self.start(*others, *args, program=first)
        self.executors[name] = process

    def two(self, **changes):
        self.begin({"a": (2, "--interface", "127.0.0.2"), "b": (2, "--interface", "127.0.0.3")},
                   **changes)

    def result(self):
        code = self.run_.wait()
        self.assertEqual(code, 0, self.run_.stderr)
        return json.loads(self.run_.stdout)

    def ranks(self):
        """Returns {rank: process} of the four ranks of attempt 1. Rank 0 may report before the others have started."""
        def started():
            found = {}
            for path in self.folder.glob("pid-*"):
                with contextlib.suppress(ValueError):  # the file is not complete yet
                    attempt, rank = map(int, path.read_text().split())
                    if attempt == 1:
                        found[rank] = int(path.name[4:])
            return found if len(found) == 4 else None
        return self.until(started, "a rank has not started")

    def first_lines(self, name, attempt=1):
        """Returns the first line that each rank of this executor has printed, by rank."""
        logs = (self.folder / name).glob(f"sweeps/*/trials/0/attempts/{attempt}/rank-*.log")
        return {int(log.stem[5:]): json.loads(log.read_text().splitlines()[0]) for log in logs}


class Processes(Fleet):
    def test_ranks_know_their_numbers_and_the_address_of_rank_zero(self):
        self.two()
        self.result()
        a, b = self.first_lines("a"), self.first_lines("b")
        self.assertEqual((sorted(a), sorted(b)), ([0, 1], [2, 3]))
        for rank, said in {**a, **b}.items():
            self.assertEqual(said["master"], "127.0.0.2")
            self.assertEqual(said["interface"], "lo")
            self.assertEqual((said["local_rank"], said["local_world_size"]), (rank % 2, 2))
            self.assertEqual(said["group_rank"], str(rank // 2))

    def test_hosts_with_wrong_clocks_run_gangs(self):
        self.begin({})
        shim = BUILD / "tests/e2e/libclock_off.so"
        for name, address, off in (("a", "127.0.0.2", 3600), ("b", "127.0.0.3", -3600)):
            self.start_executor(name, 2, "--interface", address,
                                prefix=("env", f"LD_PRELOAD={shim}", f"CLOCK_OFF_SECONDS={off}"))
        self.result()
        hour = time.strftime("%Y-%m-%dT%H", time.gmtime(time.time() + 3600))
        self.executors["a"].await_stderr(hour)  # the time in its log
        [(outcome, decided, started, ended)] = self.rows("SELECT outcome, decided, started, ended FROM attempts")
        self.assertEqual(outcome, "finished")
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
        self.assertEqual([decided, started, ended, soon], sorted([decided, started, ended, soon]))

    def test_a_gang_on_one_host_uses_loopback(self):
        self.two(resources={"workers": 2, "cpus_per_worker": 1})
        self.result()
        said = self.first_lines("a") or self.first_lines("b")
        self.assertEqual(sorted(said), [0, 1])
        self.assertEqual(said[0]["master"], "127.0.0.1")
        self.assertIsNone(said[0]["interface"])

    def kill_rank(self, rank, executor):
        gate = self.close_gate(3)
        self.two(failure={"max_restarts": 1, "backoff": "0s"})
        self.await_report(trial=0, step=2)
        ranks = self.ranks()
        ends = {other: ProcessExit(pid) for other, pid in ranks.items()}
        began = time.monotonic()
        os.kill(ranks[rank], signal.SIGKILL)
        for other, end in ends.items():
            self.assertTrue(end.wait(), f"rank {other} is left")
        print(f"rank {rank} of 4 killed: all gone after {(time.monotonic() - began) * 1000:.0f} ms")
        gate.close()
        self.result()
        (first, failure), (second, _) = self.rows("SELECT outcome, failure FROM attempts ORDER BY number")
        self.assertEqual((first, second), ("failed", "finished"))
        self.assertRegex(failure, rf"\bexecutor {executor}\b.*\brank {rank}\b.*SIGKILL")
        for said in (self.first_lines("a", 2) | self.first_lines("b", 2)).values():
            self.assertTrue(said["from"].endswith("step-2-attempt-1"), said)

    def test_a_rank_killed_on_the_host_of_rank_zero_is_named_and_the_trial_resumes(self):
        self.kill_rank(1, "a")

    def test_a_rank_killed_on_the_other_host_is_named_and_the_trial_resumes(self):
        self.kill_rank(3, "b")

    def lose_executor(self, name):
        gate = self.close_gate(3)
        self.two()
        self.await_report(trial=0, step=2)
        ends = {rank: ProcessExit(pid) for rank, pid in self.ranks().items()}
        self.executors[name].kill()
        for rank, end in ends.items():
            self.assertTrue(end.wait(), f"rank {rank} is left")
        gate.close()
        self.start_executor(name, 2, "--interface", {"a": "127.0.0.2", "b": "127.0.0.3"}[name])
        self.result()  # max_restarts is 0, so the loss does not count as a failure
        outcomes = self.rows("SELECT outcome, resumed_from FROM attempts ORDER BY number")
        self.assertEqual(outcomes, [("lost", None), ("finished", 2)])

    def test_the_loss_of_an_executor_costs_no_restart(self):
        self.lose_executor("b")

    def test_the_loss_of_the_executor_of_rank_zero_costs_no_restart(self):
        self.lose_executor("a")


class Sdk(Fleet):
    def weights(self):
        folder = pathlib.Path(self.result()["best"]["checkpoint"])
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in folder.glob("*.safetensors")}

    def test_weights_equal_those_of_a_gang_on_one_host_bit_for_bit(self):
        self.begin({"one": (4,)}, **SMALL)
        alone = self.weights()
        self.assertTrue(alone)
        self.data = self.folder / "data-2"
        self.two(**SMALL)
        self.assertEqual(self.weights(), alone)
        ranks = json.loads(self.rows("SELECT ranks FROM attempts")[0][0])
        self.assertEqual([rank["executor"] for rank in ranks], ["a", "a", "b", "b"])

    def test_weights_are_equal_after_a_rank_was_killed(self):
        self.begin({"one": (4,)}, **SMALL)
        alone = self.weights()
        self.data = self.folder / "data-2"
        self.two(**SMALL)
        self.await_report(trial=0, step=1)
        os.kill(ranks_of(self.executors["b"])[0], signal.SIGKILL)
        self.assertEqual(self.weights(), alone)
        first, second = self.rows("SELECT outcome, resumed_from, failure FROM attempts ORDER BY number")
        self.assertEqual((first[0], second[:2]), ("failed", ("finished", 1)))
        self.assertRegex(first[2], r"\bexecutor b\b.*\brank [23]\b.*SIGKILL")


@needs_torch
class Torch(Fleet):
    def setUp(self):
        super().setUp()
        self.environment.update(ENVIRONMENT)

    def test_a_script_for_torchrun_runs_unchanged(self):
        script = str(ROOT / "tests/e2e/programs/torchrun_script.py")
        self.two(command=[sys.executable, script, "${args}"], env={},
                 reports={"pattern": r"epoch (?P<step>\d+) score=(?P<score>\S+)"},
                 parameters={"mode": {"value": "well"}}, scheduler={"name": "fifo"})
        self.assertEqual(self.result()["best"]["metrics"], {"score": 10.0})


class Namespaces(Fleet):
    """Two hosts that share only a network connection. Attune chooses their addresses."""

    def setUp(self):
        super().setUp()
        if shutil.which("ip") is None:
            self.skipTest("there is no `ip` (iproute2) to make network namespaces with")
        self.hosts = [f"attune-{os.getpid()}-{host}" for host in "ab"]
        self.libc = ctypes.CDLL(None, use_errno=True)
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.addCleanup(os.close, home)
        self.addCleanup(self.libc.setns, home, CLONE_NEWNET)
        a, b = self.hosts
        commands = [["netns", "add", a], ["netns", "add", b],
                    ["link", "add", "wire", "netns", a, "type", "veth", "peer", "name", "wire",
                     "netns", b]]
        for number, host in enumerate(self.hosts, 1):
            self.addCleanup(subprocess.run, ["ip", "netns", "del", host], capture_output=True)
            commands += [["-n", host, "addr", "add", f"10.77.0.{number}/24", "dev", "wire"],
                         ["-n", host, "link", "set", "wire", "up"],
                         ["-n", host, "link", "set", "lo", "up"]]
        for command in commands:
            done = subprocess.run(["ip", *command], capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest(f"network namespaces cannot be made here: ip {' '.join(command)}: "
                              f"{done.stderr.strip()}")
        with open(f"/run/netns/{a}") as namespace:
            self.assertEqual(self.libc.setns(namespace.fileno(), CLONE_NEWNET), 0)

    def train_over_network(self, **changes):
        """Runs a sweep of one trial on executors that cannot see each other's data folder."""
        self.port = free_port()
        serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-host", "10.77.0.1",
                           "--rpc-port", self.port)
        serve.await_stderr(r"http://")
        self.executors = {}
        for name in "ab":
            (self.folder / name).mkdir()
        self.start_executor("a", 2, prefix=["unshare", "-m", "sh", "-c", HIDING, self.folder / "b"],
                            server="10.77.0.1")
        self.start_executor("b", 2, prefix=["ip", "netns", "exec", self.hosts[1], "unshare", "-m", "sh",
                                            "-c", HIDING, self.folder / "a"], server="10.77.0.1")
        file = self.write(sweep(**{
            "command": WORKER, "parameters": {"x": {"value": 1.0}},
            "env": {"PYTHONPATH": str(ROOT / "clients/python")},
            "working_directory": str(self.folder),
            "resources": {"workers": 4, "cpus_per_worker": 1},
            "scheduler": {"name": "fifo", "max": 4}, "stop": {"max_trials": 1},
            "failure": {"max_restarts": 1, "backoff": "0s"}, **changes}))
        status, created = self.request("/api/v1/sweeps", "POST", pathlib.Path(file).read_bytes(),
                                       {"Content-Type": "application/json"})
        self.assertEqual(status, 201, created)

    def completed(self):
        """Waits until the trial has completed and returns its first failure."""
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "completed")
        # Checkpoints may be deleted during the search.
        left = [name for _, folders, _ in os.walk(self.folder) for name in folders if "-resumed-" in name]
        self.assertFalse(left, "what was fetched is removed")
        first, second = self.get("/sweeps/s1/trials/0")["attempts"]
        self.assertGreaterEqual(second["resumed_from"], 1)
        return first["failure"]

    def test_a_python_gang_spans_two_hosts_and_resumes_after_the_loss_of_a_rank(self):
        gate = self.close_gate(3)
        self.train_over_network()
        self.await_report(trial=0, step=2)
        ranks = self.ranks()
        ends = [ProcessExit(pid) for pid in ranks.values()]
        os.kill(ranks[3], signal.SIGKILL)
        self.assertTrue(all(end.wait() for end in ends))
        gate.close()
        self.assertRegex(self.completed(), r"\bexecutor [ab]\b.*\brank 3\b.*SIGKILL")
        meeting = set()
        for attempt in 1, 2:
            for name in "ab":
                for rank, said in self.first_lines(name, attempt).items():
                    self.assertEqual(said["interface"], "wire")
                    meeting.add(said["master"])
                    if attempt == 2:
                        self.assertIn("step-2-attempt-1" if rank < 2 else "resumed", said["from"])
        self.assertEqual(len(meeting), 1)
        self.assertTrue(meeting < {"10.77.0.1", "10.77.0.2"}, meeting)

    def test_a_cpp_gang_spans_two_hosts_and_resumes_after_the_loss_of_a_rank(self):
        self.train_over_network(**{**SMALL, "scheduler": {"name": "fifo", "max": 3}})
        self.await_report(trial=0, step=1)
        os.kill(ranks_of(self.executors["b"])[0], signal.SIGKILL)
        self.assertRegex(self.completed(), r"\bexecutor b\b.*\brank [0-3]\b.*SIGKILL")


if __name__ == "__main__":
    unittest.main()
