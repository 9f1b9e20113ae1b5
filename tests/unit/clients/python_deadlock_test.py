"""Finds ranks that wait for each other in attune.report() and in collectives of torch.distributed.

    scripts/python_torch.py python3 python_deadlock_test.py

Skipped if this Python has no torch.
"""

import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients/python"))
import attune.torch  # noqa: E402
from attune import _deadlock  # noqa: E402
from forked_gang import Gang  # noqa: E402

CHECK_INTERVAL_S = 0.05
# Ranks sleep this long to be late: longer than a deadlock takes to be certain.
CERTAIN_S = 10 * CHECK_INTERVAL_S


def save(folder):
    dcp.save({"a": torch.ones(3)}, checkpoint_id=str(folder / "state"))


class Deadlock(unittest.TestCase):
    def gang(self, script, size=2):
        def rank():
            attune.torch.init_process_group()
            script(attune.rank)
            return "left"

        fast = mock.patch.object(_deadlock, "CHECK_INTERVAL_S", CHECK_INTERVAL_S)
        with tempfile.TemporaryDirectory() as folder, fast:
            gang = Gang([(rank, size) for rank in range(size)], rank, folder, "continue", milestone=1,
                        checkpoint_dir=folder)
            return gang, gang.log

    def expect_error(self, script, *texts, size=2):
        gang, log = self.gang(script, size)
        errors = [message["message"] for message in gang.of_type("error") if not message.get("lost_peer")]
        self.assertTrue(errors, log)
        for text in texts:
            self.assertIn(text, errors[0])

    def expect_none(self, script, size=2):
        gang, log = self.gang(script, size)
        self.assertEqual(gang.found, ["left"] * size, log)

    def test_finds_a_checkpoint_function_that_calls_a_collective_late(self):
        def slow(folder):
            time.sleep(CERTAIN_S)
            save(folder)

        self.expect_error(lambda rank: attune.report({"loss": 1}, checkpoint=slow),
                          "rank 0", "rank 1", "every_rank=True")

    def test_finds_a_checkpoint_function_that_other_ranks_reach_late(self):
        def script(rank):
            time.sleep(CERTAIN_S * (rank > 0))
            attune.report({"loss": 1}, checkpoint=save)

        self.expect_error(script, "rank 0", "ranks 1 and 2", "every_rank=True", size=3)

    def test_finds_a_checkpoint_function_that_uses_another_group(self):
        def script(rank):
            group = dist.new_group([0, 1])
            attune.report({"loss": 1}, checkpoint=lambda folder: dcp.save(
                {"a": torch.ones(3)}, checkpoint_id=str(folder / "state"), process_group=group))

        self.expect_error(script, "rank 0", "rank 1", "every_rank=True")

    def test_finds_a_checkpoint_function_of_rank_0_and_a_barrier_of_all(self):
        def script(rank):
            if rank == 0:
                attune.report({"loss": 1}, checkpoint=save)
            dist.barrier()

        self.expect_error(script, "rank 0", "barrier()", "rank 1", "every_rank=True")

    def test_finds_a_barrier_of_rank_0_before_its_report(self):
        def script(rank):
            if rank == 0:
                dist.barrier()
            attune.report({"loss": 1})

        self.expect_error(script, "torch.distributed.barrier()", "for rank 1")

    def test_finds_a_report_of_rank_1_alone(self):
        def script(rank):
            if rank == 1:
                attune.report({"loss": 1})
            dist.all_reduce(torch.ones(1))

        self.expect_error(script, "torch.distributed.all_reduce()", "for rank 1")

    def test_finds_every_rank_on_rank_0_alone(self):
        def script(rank):
            if rank == 0:
                attune.report({"loss": 1}, checkpoint=lambda folder: None, every_rank=True)
            dist.barrier()

        self.expect_error(script, "every_rank=True", "for rank 1", "torch.distributed.barrier()")

    def test_slow_ranks_are_not_a_deadlock(self):
        def script(rank):
            pair = dist.new_group([0, 2])
            if rank != 1:  # torch counts these as collectives of all ranks
                dist.send(torch.ones(1), 2) if rank == 0 else dist.recv(torch.ones(1), 0)
            for _ in range(2):
                time.sleep(CERTAIN_S * (rank == 2))
                dist.all_reduce(torch.ones(1))
                time.sleep(CERTAIN_S * (rank == 0))
                attune.report({"loss": 1}, checkpoint=lambda folder: time.sleep(CERTAIN_S))
                attune.report({"loss": 1}, every_rank=True, checkpoint=lambda folder: (
                    time.sleep(CERTAIN_S * (rank == 1)), save(folder)))
            work = dist.all_reduce(torch.ones(1), async_op=True) if rank == 0 else None
            attune.report({"loss": 1}, checkpoint=lambda folder: time.sleep(CERTAIN_S))
            work.wait() if work else dist.all_reduce(torch.ones(1))
            if rank != 1:
                time.sleep(CERTAIN_S * (rank == 2))
                dist.barrier(group=pair)
            parts = [torch.ones(1) for _ in range(3)] if rank == 0 else None
            time.sleep(CERTAIN_S * (rank == 2))
            dist.gather(torch.ones(1), parts)
            attune.report({"loss": 1})

        self.expect_none(script, size=3)


if __name__ == "__main__":
    unittest.main()
