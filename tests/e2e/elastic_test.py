"""Elastic gangs: real ranks on two executors. One executor is killed and comes back."""

import json
import os
import pathlib
import signal
import struct
import sys
import unittest

from fleet_test import Fleet, ranks_of
from support import BUILD

ELASTIC = str(BUILD / "tests/e2e/elastic")
SAMPLES, STEPS_PER_EPOCH = 60, 5  # of elastic.cc
LEASE_S = 5
ADDRESS = {"a": "127.0.0.2", "b": "127.0.0.3"}
CAN_GROW = r"^2 of 4 workers\b.* 4$"  # the reason of an attempt that leaves to grow


def tensors(folder):
    """Returns the values of a checkpoint's float tensors, by file and name."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        content = path.read_bytes()
        size = struct.unpack("<Q", content[:8])[0]
        for name, tensor in json.loads(content[8:8 + size]).items():
            if name == "__metadata__" or tensor["dtype"] != "F32":
                continue
            begin, end = (8 + size + offset for offset in tensor["data_offsets"])
            found[path.name, name] = struct.unpack(f"<{(end - begin) // 4}f", content[begin:end])
    return found


class Elastic(Fleet):
    def start_host(self, name):
        self.start_executor(name, 2, "--interface", ADDRESS[name])

    def begin_elastic(self, last_step=12, **changes):
        self.begin({}, command=[ELASTIC], scheduler={"name": "fifo", "max": last_step},
                   resources={"workers": 4, "min_workers": 2, "cpus_per_worker": 1, "grow_after": "0s"},
                   **changes)

    def run_sweep(self, file, *args):
        return super().run_sweep(file, *args, "--lease", LEASE_S)

    def await_growth(self, attempt=1, after=0):
        """Waits until the gang of this attempt on host a is told to stop for a larger gang.

        Returns the reason and the number of the event.
        """
        _, data = self.await_event(lambda kind, data: kind == "trial_yielding" and
                                   data["verdict"] == "resize", after)
        self.executors["a"].await_stderr(rf"\bs1/0\.{attempt}\b.*\bverdict\b")
        return data["reason"], data["seq"]

    def await_attempt(self, number):
        self.await_event(lambda kind, data: kind == "attempt_changed" and
                         data["attempt"] == number and data["state"] == "running")

    def attempts(self):
        """Returns the outcome, first step and number of ranks of each attempt of trial 0."""
        return [(outcome, resumed, len(json.loads(ranks))) for outcome, resumed, ranks in self.rows(
            "SELECT outcome, resumed_from, ranks FROM attempts ORDER BY number")]

    def visited(self):
        """Returns the samples of all ranks by step, from the attempts that the final checkpoint is based on."""
        attempts = self.attempts()
        starts = [resumed or 0 for _, resumed, _ in attempts]
        steps = {}
        for number, (start, (_, _, size)) in enumerate(zip(starts, attempts), 1):
            last = starts[number] if number < len(starts) else 1 << 30
            for rank in range(size):
                for line in (self.folder / f"samples-{number}-{rank}").read_text().splitlines():
                    head, samples = line.split(":")
                    step, world_size = map(int, head.split())
                    self.assertEqual(world_size, size)
                    if start < step <= last:
                        steps.setdefault(step, []).extend(map(int, samples.split()))
        return steps

    def check_whole(self, last_step):
        """Checks that each step was reported once and that each epoch contains each sample once."""
        reported = self.rows("SELECT step FROM reports ORDER BY seq")
        self.assertEqual(reported, [(step,) for step in range(1, last_step + 1)])
        steps = self.visited()
        self.assertEqual(sorted(steps), list(range(1, last_step + 1)))
        for epoch in range(last_step // STEPS_PER_EPOCH):
            begin = epoch * STEPS_PER_EPOCH + 1
            samples = [sample for step in range(begin, begin + STEPS_PER_EPOCH) for sample in steps[step]]
            self.assertEqual(sorted(samples), list(range(SAMPLES)), f"epoch {epoch}")

    def test_a_gang_shrinks_after_a_loss_and_grows_when_the_host_is_back(self):
        gates = {step: self.close_gate(step) for step in (3, 6, 8)}
        self.begin_elastic()
        self.start_host("a")
        self.await_report(trial=0, step=2)
        self.start_host("b")
        reason, seq = self.await_growth()
        self.assertRegex(reason, CAN_GROW)
        gates[3].close()

        self.await_report(trial=0, step=5)  # of the second attempt, which a gate holds at step 6
        self.executors["b"].kill()
        self.await_attempt(3)
        gates[6].close()
        self.await_report(trial=0, step=7)
        self.start_host("b")
        reason, _ = self.await_growth(attempt=3, after=seq)
        self.assertRegex(reason, CAN_GROW)
        gates[8].close()

        final = tensors(self.result()["best"]["checkpoint"])
        self.assertEqual(self.attempts(), [("paused", None, 2), ("lost", 3, 4), ("paused", 5, 2),
                                           ("finished", 8, 4)])
        decisions = self.rows("SELECT step, verdict, reason FROM decisions WHERE rule = 'resize'")
        self.assertEqual([decision[:2] for decision in decisions], [(3, "resize"), (8, "resize")])
        for *_, reason in decisions:
            self.assertRegex(reason, CAN_GROW)
        self.check_whole(12)
        self.check_as_uninterrupted(final)

    def check_as_uninterrupted(self, final):
        """Checks that the weights equal those of a gang with four workers throughout, except for rounding."""
        self.data = self.folder / "data-2"
        self.begin({"one": (4,)}, command=[ELASTIC], scheduler={"name": "fifo", "max": 12})
        alone = tensors(self.result()["best"]["checkpoint"])
        self.assertEqual(final.keys(), alone.keys())
        self.assertTrue(alone)
        worst = max(abs(one - other) for name in alone for one, other in zip(final[name], alone[name]))
        print(f"after 2, 4, 2 and 4 workers weights differ by at most {worst:.1e} from those of 4")
        self.assertLess(worst, 1e-5)

    def test_a_gang_grows_although_a_rank_is_killed_before(self):
        self.close_gate(3)
        self.begin_elastic(last_step=5, failure={"max_restarts": 1, "backoff": "0s"})
        self.start_host("a")
        self.await_report(trial=0, step=2)
        self.start_host("b")
        self.await_growth()
        gate = self.gates / "step-3"
        gate.unlink()  # ranks that wait at the gate keep waiting
        os.kill(ranks_of(self.executors["a"])[0], signal.SIGKILL)
        self.result()
        self.assertEqual(self.attempts(), [("failed", None, 2), ("finished", 2, 4)])
        self.check_whole(5)

    def test_a_gang_grows_although_the_server_is_killed_before(self):
        gate = self.close_gate(3)
        self.begin_elastic(last_step=5)
        self.start_host("a")
        self.await_report(trial=0, step=2)
        self.start_host("b")
        _, seq = self.await_growth()
        self.run_.kill()
        self.run_ = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port)
        self.run_.await_stderr(r"http://")
        gate.close()
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "completed")
        self.assertEqual(self.attempts(), [("paused", None, 2), ("finished", 3, 4)])
        asked = self.rows("SELECT seq FROM events WHERE kind = 'trial_yielding'")
        self.assertEqual(asked, [(seq,)])
        self.check_whole(5)

    def test_a_grown_gang_is_judged_by_samples_and_not_by_steps(self):
        gate = self.close_gate(2)
        # One of two learning rates diverges. A step has 10 samples with two workers, 20 with four.
        self.begin({}, command=[ELASTIC],
                   parameters={"x": {"min": 0.0, "max": 1000.0}, "batch_per_worker": {"value": 5}},
                   initial_points=[{"x": 1.0}, {"x": 1000.0}], stop={"max_trials": 2}, max_concurrent_trials=1,
                   scheduler={"name": "asha", "time_attr": "samples", "min": 40, "max": 160, "reduction_factor": 2},
                   resources={"workers": 4, "min_workers": 2, "cpus_per_worker": 1, "grow_after": "0s"})
        self.start_host("a")
        self.await_report(trial=0, step=10)
        self.start_host("b")
        self.await_growth()
        gate.close()

        manifest = json.loads((pathlib.Path(self.result()["best"]["checkpoint"]) / "manifest.json").read_text())
        self.assertEqual((manifest["step"], manifest["time"]), (9, 160))
        sizes = self.rows("SELECT trial, resumed_from, json_array_length(ranks) FROM attempts ORDER BY 1, number")
        self.assertEqual(sizes, [(0, None, 2), (0, 20, 4), (1, None, 4)])
        reports = self.rows("SELECT trial, step FROM reports ORDER BY seq")
        self.assertEqual(reports, [*((0, samples) for samples in (10, 20, 40, 60, 80, 100, 120, 140, 160)),
                                   (1, 20), (1, 40)])
        decisions = self.rows("SELECT trial, step, verdict, rung, rank, peers FROM decisions ORDER BY seq")
        self.assertEqual(decisions, [(0, 20, "resize", 0, 0, 0), (0, 40, "continue", 40, 1, 1),
                                     (0, 80, "continue", 80, 1, 1), (0, 160, "stop", 0, 0, 0),
                                     # compares its values after two steps with those of the first trial after three
                                     (1, 40, "stop", 40, 2, 2)])
        [(cutoff, score)] = self.rows(
            "SELECT d.cutoff, json_extract(r.metrics, '$.score') FROM decisions AS d, reports AS r "
            "WHERE d.trial = 1 AND r.trial = 0 AND r.step = 40")
        self.assertEqual(cutoff, score)


class Promising(Fleet):
    # Reports a hundred times a second until it is stopped.
    SCRIPT = """import itertools, time, attune
for step in itertools.count(attune.step + 1):
    time.sleep(.01)
    attune.report({"score": attune.config["x"]}, step, checkpoint=lambda folder: (folder / "state").touch())
"""

    def test_free_slots_go_to_the_best_trial(self):
        script = self.write(self.SCRIPT, "train.py")
        self.begin({"one": (6,)}, command=[sys.executable, "-B", script],
                   scheduler={"name": "fifo", "max": 1_000_000}, parameters={"x": {"min": 0.0, "max": 1.0}},
                   initial_points=[{"x": 0.2}, {"x": 0.9}, {"x": 0.5}], stop={"max_trials": 3},
                   resources={"workers": 4, "min_workers": 2, "grow": "best", "grow_after": "0s"})
        for trial in range(3):
            self.await_report(trial, 2)
        self.assertEqual(self.attune("trial", "kill", "s1/2", "--data-dir", self.data)[0], 0)
        _, asked = self.await_event(lambda kind, data: kind == "trial_yielding" and
                                    data["verdict"] == "resize")
        self.assertEqual(asked["trial"], 1)
        self.assertRegex(asked["reason"], r"\b2 of 4 workers\b.*\bbest\b")
        self.await_event(lambda kind, data: kind == "attempt_changed" and data["trial"] == 1 and
                         data["attempt"] == 2 and data["state"] == "running")
        self.attune("sweep", "kill", "s1", "--data-dir", self.data)
        self.run_.wait()
        sizes = self.rows("SELECT trial, number, json_array_length(ranks) FROM attempts ORDER BY 1, 2")
        self.assertEqual(sizes, [(0, 1, 2), (1, 1, 2), (1, 2, 4), (2, 1, 2)])


if __name__ == "__main__":
    unittest.main()
