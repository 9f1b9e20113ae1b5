"""The network of three hosts fails: every trial ends, nothing runs twice, and lost hosts are named."""

import datetime
import os
import signal
import subprocess
import time
from unittest import mock

import hosts
import support
from hosts import LEASE_S, Hosts
from support import FASHION_MNIST, ProcessExit

RECOVERY_S = LEASE_S + 2
STALL_S = 4
BACK_S = 2 * RECOVERY_S  # the pauses between its attempts have grown
SLOW_PATIENCE_S = 180  # TCP doubles its timeouts, so a connection or its first message may take a minute
SLOW_LEASE_S = 15  # the default; with 20 % packet loss, TCP may need 6 s
ONE_EACH = {"workers": 2, "cpus_per_worker": 2}  # each host has three CPUs, so a gang spans two hosts
TRAINING = {"command": [FASHION_MNIST], "metric": {"name": "accuracy", "mode": "max"},
            "parameters": {"lr": {"value": 0.1}, "width": {"value": 8}, "samples_per_step": {"value": 1024}}}
CUTS = {"both ways": {"plugged": False}, "towards the host": {"towards": {"loss": 1}},
        "from the host": {"away": {"loss": 1}}}


def seconds(event):
    """Returns the time of an event in seconds, like time.time()."""
    return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


class Partition(Hosts):
    def attempt(self, number, state, trial=0):
        return self.await_event(lambda kind, data: kind == "attempt_changed" and data["trial"] == trial and
                                data["attempt"] == number and data["state"] == state)[1]

    def why(self, ended):
        """Returns the reason that the trial shows after the end of an attempt, while it waits for the next."""
        return self.await_event(lambda kind, data: kind == "trial_changed" and data["trial"] == ended["trial"] and
                                data["state"] == "pending", after=ended["seq"] - 1)[1]["reason"]

    def end(self, trials=1):
        self.await_end()
        self.check(trials)
        self.check_no_process_is_left()
        self.check_decisions()


class Cut(Partition):
    def train(self, **changes):
        """Starts one gang, which a gate holds before its third step."""
        gate = self.close_gate(3)
        self.begin()
        self.create(**changes)
        self.await_report(trial=0, step=2)
        self.until(lambda: len(self.ranks()) == 2, "a rank has not started")
        return gate

    def cut_for_long(self, rank, how, **changes):
        """Cuts off the host of this rank until its gang runs on other hosts."""
        gate = self.train(**changes)
        victim, _ = self.ranks()[rank]
        ends = [ProcessExit(process) for _, process in self.ranks().values()]
        cut = time.time()
        self.wire(victim, **CUTS[how])
        lost = self.attempt(1, "ended")
        self.assertEqual(lost["outcome"], "lost", lost)
        self.assertRegex(self.why(lost), rf"^executor {victim} was lost\b")
        recovered = seconds(self.attempt(2, "running")) - cut
        self.assertTrue(all(end.wait(0) for end in ends), "a rank of the first attempt lives")
        self.until(lambda: len(self.ranks(attempt=2)) == 2, "a rank has not started")
        self.assertNotIn(victim, [host for host, _ in self.ranks(attempt=2).values()])
        healed = time.time()
        self.wire(victim)
        _, joined = self.await_event(lambda kind, data: kind == "executor_changed" and data["state"] == "online"
                                     and data["executor"] == victim, after=lost["seq"])
        back = seconds(joined) - healed
        print(f"{how}, lease {LEASE_S:g} s: its gang runs elsewhere after {recovered:.2f} s; the host is back "
              f"{back:.2f} s after it can be")
        gate.close()
        self.end()
        self.assertLess(recovered, RECOVERY_S)
        self.assertLess(back, BACK_S)

    def test_an_unplugged_host_is_named_and_its_gang_resumes_elsewhere(self):
        self.cut_for_long(0, "both ways")

    def test_a_host_that_receives_nothing_is_named(self):
        self.cut_for_long(0, "towards the host")

    def test_a_host_that_cannot_send_is_named(self):
        self.cut_for_long(0, "from the host")

    def test_the_host_of_rank_zero_is_named_and_no_other(self):
        self.cut_for_long(0, "both ways", resources=ONE_EACH)

    def test_the_host_of_rank_zero_is_not_named_if_another_one_is_cut_off(self):
        self.cut_for_long(1, "both ways", resources=ONE_EACH)

    def test_a_host_that_can_send_but_not_receive_is_named(self):
        self.cut_for_long(1, "towards the host", resources=ONE_EACH)

    def test_a_cut_that_heals_within_the_lease_costs_nothing(self):
        gate = self.train(resources=ONE_EACH)
        ranks = self.ranks()
        for name in self.names:
            self.wire(name, plugged=False)
        time.sleep(LEASE_S / 4)
        for name in self.names:
            self.wire(name)
        gate.close()
        self.end()
        self.assertEqual(self.ranks(), ranks)
        self.assertFalse(self.ranks(attempt=2))

    def test_a_host_that_returns_after_its_lease_has_ended_its_gang(self):
        gate = self.train(resources=ONE_EACH)
        victim, process = self.ranks()[1]
        end = ProcessExit(process)
        self.wire(victim, plugged=False)
        self.assertTrue(end.wait(RECOVERY_S), "a rank outlives its lease")
        healed = time.time()
        self.wire(victim)
        why = self.why(self.attempt(1, "ended"))
        self.assertRegex(why, rf"\bexecutor {victim}\b.*\b(server|lost)\b")
        recovered = seconds(self.attempt(2, "running")) - healed
        gate.close()
        print(f"cut until its lease was over: its gang runs again {recovered:.2f} s after it can")
        self.end()
        self.assertLess(recovered, RECOVERY_S)

    def test_hosts_that_only_reach_the_server_resume_when_they_reach_each_other(self):
        gate = self.train(resources=ONE_EACH)
        ranks = self.ranks()
        self.set_all_apart()
        gate.close()
        time.sleep(2 * LEASE_S)
        self.set_apart()
        self.end()
        self.assertEqual(self.ranks(), ranks)
        self.assertFalse(self.ranks(attempt=2))

    def check_they_resume_when_connected(self, **changes):
        self.begin()
        self.set_all_apart()
        self.create(resources=ONE_EACH, **changes)
        self.until(lambda: any(map(self.gave_up_resolving, self.names)), "no rank looks for another")
        self.set_apart()
        _, report = self.await_report(trial=0, step=1)
        self.assertEqual(report["attempt"], 1)

    def gave_up_resolving(self, name):
        """Whether the host has given up resolving the address of another one, which ends the first connection attempt."""
        said = subprocess.run(["nsenter", f"--net={self.namespaces[name]}", "ip", "neigh"], capture_output=True,
                              text=True, check=True).stdout
        return "FAILED" in said

    def test_ranks_that_cannot_connect_at_first_resume_later(self):
        self.check_they_resume_when_connected()
        self.end()

    def test_torch_ranks_that_cannot_connect_at_first_resume_later(self):
        self.check_they_resume_when_connected(**TRAINING, scheduler={"name": "fifo", "max": 1})
        self.await_end()

    def test_a_gang_whose_ranks_lose_each_other_ends_at_the_stall_limit(self):
        self.begin()
        self.create(**TRAINING, scheduler={"name": "fifo", "max": 10000}, resources=ONE_EACH,
                    failure={"max_restarts": 3, "backoff": "0s", "stall_timeout": f"{STALL_S}s"})
        self.await_report(trial=0, step=2)
        self.set_all_apart()
        cut = time.time()
        ended = self.attempt(1, "ended")
        self.assertEqual(ended["outcome"], "failed")
        why = self.why(ended)
        print(f"ranks that have lost each other alone: ended after {seconds(ended) - cut:.2f} s: {why}")
        self.assertRegex(why, r"^attempt 1: .*\bexecutor \w+\b.*\brank \d\b.*\bstall_timeout\b")
        self.assertLess(seconds(ended) - cut, 2 * STALL_S)
        self.set_apart()
        after = self.attempt(2, "running")
        self.await_event(lambda kind, data: kind == "trial_reported", after=after["seq"])
        self.assertEqual(self.attune("sweep", "kill", "s1", "--data-dir", self.data)[0], 0)

    def test_separated_hosts_exchange_checkpoints_through_the_server(self):
        gate = self.train()
        first, _ = self.ranks()[0]
        self.set_all_apart()
        code, _, err = self.attune("executor", "drain", first, "--now", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        gate.close()
        self.attempt(2, "running")
        self.until(lambda: len(self.ranks(attempt=2)) == 2, "a rank has not started")
        second, _ = self.ranks(attempt=2)[0]
        self.assertNotEqual(first, second)
        self.executors[second].await_stderr(rf"checkpoint \S+ .*\bexecutor {first}\b")
        self.executors[second].await_stderr(r"checkpoint \S+ .*\b[\d.]+ MB\b(?!.*\bdirectly\b)")
        self.end()

    def test_a_server_that_was_cut_off_gets_all_gangs_back(self):
        self.begin()
        self.create(trials=6, parameters={"pause": {"value": 0.3}})
        for trial in range(3):
            self.await_report(trial=trial, step=2)
        self.wire("server", plugged=False)
        self.until(lambda: not any(b"hosts_worker" in line for name in self.names
                                   for _, line in self.processes_on(name)), "ranks outlive their lease")
        self.wire("server")
        self.end(trials=6)


class Slow(Partition):
    """Six gangs. One of them loses a rank that is not on the host of rank 0."""

    def setUp(self):
        super().setUp()
        patient = mock.patch.object(support, "PATIENCE_S", SLOW_PATIENCE_S)
        patient.start()
        self.addCleanup(patient.stop)

    def sweep_over(self, how):
        gate = self.close_gate(3)  # holds the first gang until it loses its rank, even if its reports are late
        self.begin(SLOW_LEASE_S)
        for name in self.namespaces:
            self.wire(name, away=how)
        began = time.monotonic()
        self.create(trials=6, parameters={"pause": {"value": 0.1}, "ballast": {"value": 500_000}},
                    resources=ONE_EACH, failure={"max_restarts": 1, "backoff": "0s"})
        self.await_report(trial=0, step=2)
        self.until(lambda: len(self.ranks()) == 2, "a rank has not started")
        host, process = self.ranks()[1]
        os.kill(process, signal.SIGKILL)
        gate.close()
        failed = self.attempt(1, "ended")
        self.assertRegex(failed["failure"], rf"\bexecutor {host}\b.*\brank 1\b.*SIGKILL")
        self.await_end()
        print(f"{how}: six trials in {time.monotonic() - began:.1f} s")
        for name in self.namespaces:
            self.wire(name)
        self.end(trials=6)

    def test_a_host_lost_during_a_checkpoint_transfer_is_named_and_not_rank_zero(self):
        gate = self.close_gate(3)
        self.begin()
        self.create(parameters={"ballast": {"value": 1_000_000}}, resources=ONE_EACH)
        self.await_report(trial=0, step=2)
        self.until(lambda: len(self.ranks()) == 2, "a rank has not started")
        first, second = (self.ranks()[rank][0] for rank in (0, 1))
        third = next(name for name in self.names if name not in (first, second))
        self.wire(second, plugged=False)
        self.attempt(1, "ended")
        self.wire(second)
        self.wire(first, away={"bits_per_s": 2e6})
        fetching = self.folder / third / "sweeps/s1/trials/0/checkpoints/.attempt-2-resumed-1/ballast"
        self.until(fetching.exists, f"{third} fetches nothing")
        self.executors[third].kill()
        lost = self.attempt(2, "ended")
        self.wire(first)
        gate.close()
        self.start_host(third)
        self.assertEqual(lost["outcome"], "lost", lost)
        self.assertRegex(self.why(lost), f"^executor {third} was lost")
        self.end()

    def test_a_network_that_loses_a_fifth_of_all_packets(self):
        self.sweep_over({"loss": 0.2})

    def test_a_network_of_ten_megabits_per_second(self):
        self.sweep_over({"bits_per_s": 10e6})

    def test_a_network_with_a_delay_of_100_ms(self):
        self.sweep_over({"delay_s": 0.1})


if __name__ == "__main__":
    hosts.main()
