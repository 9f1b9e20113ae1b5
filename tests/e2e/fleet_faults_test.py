"""One sweep of two-worker trials on three hosts, with one fault after another.

    FAULTS=100 TRIALS=60 ATTUNE_SEED=7 python3 tests/e2e/fleet_faults_test.py
"""

import collections
import contextlib
import errno
import os
import random
import signal
import subprocess
import time
import urllib.error

import hosts
from hosts import LEASE_S, WORKER, Hosts
from support import fill, small_disk

FAULTS = int(os.environ.get("FAULTS", 8))
TRIALS = int(os.environ.get("TRIALS", 12))
CONCURRENT_GANGS = 4       # gangs of two that fit on three hosts with three CPUs; one of them spans two hosts
FAULT_S = 2        # approximate duration of a fault and its repair
TRAINING_SHARE = 0.75      # share of the time in which gangs train; otherwise they start or wait
DISK_MB = 32
PATIENCE_S = 180  # after the last fault


@contextlib.contextmanager
def stopped(process):
    process.popen.send_signal(signal.SIGSTOP)
    yield
    process.popen.send_signal(signal.SIGCONT)


class Stopped(Hosts):
    def test_ranks_of_a_stopped_executor_end_with_its_lease(self):
        gate = self.close_gate(3)
        self.begin()
        self.create()
        self.await_report(trial=0, step=2)
        name, _ = self.ranks()[0]
        with stopped(self.executors[name]):
            self.await_event(lambda kind, data: kind == "attempt_changed" and data["attempt"] == 2 and
                             data["state"] == "running")
            self.until(lambda: len(self.ranks(attempt=2)) == 2, "a rank has not started")
        gate.close()
        self.await_end()
        self.check(trials=1)
        self.check_no_process_is_left()


class Full(Hosts):
    executor_flags = ("--min-free-disk", 0)  # so that gangs run into the full disk

    def test_a_disk_without_free_inodes_ends_no_trial(self):
        """Not even the folder of an attempt can be created, as on most full disks."""
        disk = self.folder / self.names[0]
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=500", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        self.begin()
        fillers = [disk / f"filler-{number}" for number in range(500)]
        with contextlib.suppress(OSError):
            for filler in fillers:
                filler.touch()
        self.create(trials=6, failure={"max_restarts": 1000, "backoff": "0.1s"})
        _, ended = self.await_event(lambda kind, data: kind == "attempt_changed" and
                                     data["outcome"] not in (None, "", "finished"))
        for filler in fillers:
            filler.unlink(missing_ok=True)
        self.await_end()
        self.assertIn(os.strerror(errno.ENOSPC), ended["failure"])
        self.assertEqual(ended["executor"], self.names[0])
        self.check(trials=6)
        self.check_no_process_is_left()


class Faults(Hosts):
    steps = 8

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("ATTUNE_SEED") or random.randrange(1 << 32))
        print("ATTUNE_SEED", self.seed, flush=True)
        self.draw = random.Random(self.seed)
        self.stopped_ranks = []
        disks = contextlib.ExitStack()
        self.addCleanup(disks.close)
        for name in self.names:
            disks.enter_context(small_disk(self.folder / name, DISK_MB))

    def pause(self, leases):
        time.sleep(self.draw.uniform(0, leases * LEASE_S))

    def any_host(self):
        return self.draw.choice(self.names)

    def any_rank(self):
        """Returns a pidfd of a random rank; None if no rank runs."""
        script = WORKER[-1].encode()
        ranks = [pid for name in self.names for pid, line in self.processes_on(name) if script in line.split(b"\0")]
        with contextlib.suppress(ProcessLookupError):
            return os.pidfd_open(self.draw.choice(ranks)) if ranks else None
        return None

    # ---- faults; each repairs the damage that would not repair itself

    def a_rank_is_killed(self):
        if rank := self.any_rank():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(rank, signal.SIGKILL)
            os.close(rank)

    def a_rank_is_stopped(self):
        """Stops a random rank. Every second one stays stopped until the last fault, or until it is found to be silent."""
        if rank := self.any_rank():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(rank, signal.SIGSTOP)
            self.stopped_ranks.append(rank)
            if self.draw.random() < 0.5:
                self.pause(leases=2)
                self.continue_ranks()

    def continue_ranks(self):
        """Continues stopped ranks. A rank that was stopped before its first step may be silent for half an hour."""
        for rank in self.stopped_ranks:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(rank, signal.SIGCONT)
            os.close(rank)
        self.stopped_ranks.clear()

    def an_executor_is_killed(self):
        name = self.any_host()
        self.executors[name].kill()
        self.until(lambda: not self.processes_on(name), f"processes are left on {name}")
        self.pause(leases=self.draw.choice((0, 2)))
        self.start_host(name)

    def an_executor_is_stopped(self):
        with stopped(self.executors[self.any_host()]):
            self.pause(leases=3)

    def the_server_is_killed(self):
        self.server.kill()
        self.pause(leases=2)
        self.serve()

    def the_server_is_stopped(self):
        with stopped(self.server):
            self.pause(leases=2)

    def a_host_is_cut_off(self):
        name = self.any_host()
        self.wire(name, **self.draw.choice([{"plugged": False}, {"towards": {"loss": 1}}, {"away": {"loss": 1}}]))
        self.pause(leases=3)
        self.wire(name)

    def a_disk_is_full(self):
        filler = fill(self.folder / self.any_host())
        self.pause(leases=1)
        filler.unlink()

    # ---- the test

    def test_every_trial_ends_and_nothing_is_lost_or_left(self):
        self.begin()
        pause = TRAINING_SHARE * FAULTS * FAULT_S * min(CONCURRENT_GANGS, TRIALS) / (TRIALS * self.steps)
        self.create(trials=TRIALS, parameters={"pause": {"value": pause}},
                    failure={"max_restarts": 1000, "backoff": "0.1s", "stall_timeout": "5s"})
        kinds = [self.a_rank_is_killed, self.a_rank_is_stopped, self.an_executor_is_killed,
                 self.an_executor_is_stopped, self.the_server_is_killed, self.the_server_is_stopped,
                 self.a_host_is_cut_off, self.a_disk_is_full]
        began, done = time.monotonic(), collections.Counter()
        self.until(self.processes_of_ranks, "nothing begins")
        for _ in range(FAULTS):
            # Every kind of fault happens once before any happens twice.
            least = min(done[kind.__name__] for kind in kinds)
            kind = self.draw.choice([kind for kind in kinds if done[kind.__name__] == least])
            done[kind.__name__] += 1
            print(f"{time.monotonic() - began:6.1f} s {kind.__name__}", flush=True)
            kind()
            time.sleep(self.draw.uniform(0, FAULT_S / 2))  # faults come at random times, not after events
        self.continue_ranks()
        faults_s = time.monotonic() - began
        self.until(self.has_ended, "the sweep does not end", PATIENCE_S)
        print(f"{FAULTS} faults in {faults_s:.0f} s, the sweep of {TRIALS} trials in "
              f"{time.monotonic() - began:.0f} s: {dict(done)}")
        self.check(TRIALS)
        self.check_no_process_is_left()
        self.check_decisions()

    def processes_of_ranks(self):
        return [pid for pid in [self.any_rank()] if pid is not None and os.close(pid) is None]

    def has_ended(self):
        with contextlib.suppress(urllib.error.URLError, ConnectionError, AssertionError):
            return self.get("/sweeps/s1")["state"] != "running"
        return False


if __name__ == "__main__":
    hosts.main()
