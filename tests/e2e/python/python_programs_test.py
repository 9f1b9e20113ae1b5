"""Programs that start other programs, and events in their trials: each combination is a test with two ranks.

Without arguments nine combinations run, which have each row and each column; with the argument Matrix all do.
Fails where Python has no torch, Lightning, Transformers or Accelerate: scripts/setup installs them.
"""

import json
import os
import pathlib
import re
import select
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import PATIENCE_S, ROOT, EndToEnd, ProcessExit, sweep  # noqa: E402
from torch_environment import ENVIRONMENT, NO_TORCH  # noqa: E402

PROGRAMS = ROOT / "tests/e2e/programs/launched"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
ACCELERATE = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]


def program(name):
    return str(PROGRAMS / name)


# name → command, workers
ROWS = {
    "plain": ([sys.executable, program("ddp.py")], 2),
    "torchrun": ([*TORCHRUN, program("ddp.py")], 1),
    "accelerate": (["bash", "-c", 'exec "$@" --main_process_port "$MASTER_PORT" ' + program("accelerated.py"), "bash",
                    *ACCELERATE], 1),
    "lightning": ([sys.executable, program("lightning_loop.py")], 2),
    "transformers": ([sys.executable, program("transformers_loop.py")], 2),
    "spawn": ([sys.executable, program("spawned.py")], 1),
    "subprocess": ([sys.executable, program("wrapper.py")], 2),
}
COLUMNS = ("fresh", "promoted", "cloned", "killed", "stopped")
# Each row and each column.
DEFAULT = ["plain_promoted", "torchrun_killed", "torchrun_stopped", "accelerate_fresh", "lightning_cloned",
           "transformers_killed", "spawn_cloned", "spawn_stopped", "subprocess_promoted"]


class Programs(EndToEnd):
    def setUp(self):
        super().setUp()
        self.notes = self.folder / "notes"
        self.notes.mkdir()
        self.environment.update(ENVIRONMENT, NOTES=str(self.notes))

    def sweep_of(self, command, workers, **changes):
        """Starts a sweep of trials of two steps, by default of one trial."""
        metric = "eval_loss" if program("transformers_loop.py") in command else "loss"
        spec = {"metric": {"name": metric, "mode": "min"}, "scheduler": {"name": "fifo"},
                "parameters": {"lr": {"values": [0.05, 1e-6]}}, "searcher": {"name": "grid"},
                "failure": {"max_restarts": 0}, "stop": {"max_trials": 1}, "max_concurrent_trials": 1, **changes}
        return self.run_sweep(self.write(sweep(
            command=command, resources={"workers": workers, "cpus_per_worker": 2 // workers}, **spec)), "-o", "json")

    def end(self, run, code=0):
        # A sweep has at most four attempts, and each imports torch.
        self.assertEqual(run.wait(4 * PATIENCE_S), code, "\n".join(run.stderr) + self.logs())

    def logs(self):
        return "".join(f"\n--- {log}\n{log.read_text()[-3000:]}" for log in sorted(self.data.rglob("rank-*.log")))

    def note(self, event, trial, attempt, rank):
        return json.loads((self.notes / f"{event}-{trial}-{attempt}-{rank}").read_text())

    def attempts(self):
        """Returns (trial, attempt, step that it has resumed from) of all attempts in order."""
        return self.rows("SELECT trial, number, resumed_from FROM attempts ORDER BY decided")

    def expect_whole(self, trial, attempt, begins):
        """Checks that two ranks have trained together, from this step to step 2."""
        for rank in 0, 1:
            started, trained = self.note("started", trial, attempt, rank), self.note("trained", trial, attempt, rank)
            self.assertEqual((started["world_size"], started["step"]), (2, begins))
            self.assertEqual((trained["world_size"], trained["step"]), (2, 2))
        self.assertEqual(*(self.note("trained", trial, attempt, rank)["weights"] for rank in (0, 1)))


class Matrix(Programs):
    """Has a test for each row and column, which the end of this file defines."""

    def fresh(self, command, workers):
        self.end(self.sweep_of(command, workers))
        self.assertEqual(self.attempts(), [(0, 1, None)])
        self.expect_whole(0, 1, begins=0)

    def promoted(self, command, workers):
        self.end(self.sweep_of(
            command, workers, stop={"max_trials": 2},
            scheduler={"name": "asha", "min": 1, "max": 2, "reduction_factor": 2, "mode": "promote"}))
        attempts = self.attempts()
        self.assertEqual(attempts[:2], [(0, 1, None), (1, 1, None)])
        promoted = attempts[2][0]
        self.assertEqual(attempts[2:], [(promoted, 2, 1)])
        self.expect_whole(promoted, 2, begins=1)

    def cloned(self, command, workers):
        # The smaller rate is first. It is usually worse, and clones the other trial while that is paused.
        self.end(self.sweep_of(
            command, workers, stop={"max_trials": 2}, parameters={"lr": {"values": [1e-6, 0.05]}},
            scheduler={"name": "pbt", "max": 2, "perturbation_interval": 1, "quantile_fraction": 0.5, "synchronous": True}))
        donors = self.rows("SELECT trial, donor FROM decisions WHERE donor IS NOT NULL")
        self.assertIn(donors, ([(0, 1)], [(1, 0)]))
        for trial in 0, 1:
            self.expect_whole(trial, 2, begins=1)

    def killed(self, command, workers):
        self.environment["AFTER_STEP_1"] = "kill"
        self.end(self.sweep_of(command, workers, failure={"max_restarts": 1}))
        self.assertEqual(self.attempts(), [(0, 1, None), (0, 2, 1)])
        self.expect_whole(0, 2, begins=1)

    def stopped(self, command, workers):
        self.environment["AFTER_STEP_1"] = "stay"
        os.mkfifo(self.notes / "stays")
        pipe = os.open(self.notes / "stays", os.O_RDWR)
        self.addCleanup(os.close, pipe)
        run = self.sweep_of(command, workers, failure={"grace": "1h"})
        said = b""
        while said.count(b"\n") < 2:
            self.assertTrue(select.select([pipe], [], [], PATIENCE_S)[0], "\n".join(run.stderr) + self.logs())
            said += os.read(pipe, 100)
        processes = [ProcessExit(int(pid)) for pid in said.split()]
        run.interrupt()
        self.end(run, 130)
        for process in processes:
            self.assertTrue(process.wait(), "a rank is left")
        for rank in 0, 1:
            self.assertEqual(self.note("left", 0, 1, rank)["step"], 1)


class Edges(Programs):
    """Programs that are refused, and ranks that report alone."""

    def failure_of(self, command, workers):
        # The long timeout shows that no test waits for it.
        run = self.sweep_of([sys.executable, *command], workers, failure={"max_restarts": 0, "stall_timeout": "1h"})
        self.end(run, 5)
        return self.rows("SELECT failure FROM attempts")[0][0]

    def test_torchrun_in_a_gang_of_several_workers(self):
        failure = self.failure_of([*TORCHRUN[1:], program("ddp.py")], 2)
        self.assertIn("resources.workers: 1", failure)

    def test_two_processes_that_report_as_one_rank(self):
        failure = self.failure_of([program("claims_twice.py")], 1)
        log = next(self.data.rglob("rank-0.log")).read_text()
        processes = re.findall(r"^process (\d+)$", log, re.M)
        self.assertEqual(len(processes), 2, log)
        for process in processes:
            self.assertIn(f"process {process} ", failure)

    def test_a_program_without_its_variables_gets_a_reason_that_names_env(self):
        paths = [f"{name}={value}" for name, value in ENVIRONMENT.items() if name.endswith("PATH")]
        self.end(self.sweep_of(["env", "-i", *paths, sys.executable, program("lone_reporter.py"), "0"], 1))
        [(reason,)] = self.rows("SELECT reason FROM trials")
        self.assertIn("env -i", reason)

    def test_rank_0_alone_reports(self):
        self.end(self.sweep_of([sys.executable, program("lone_reporter.py"), "0"], 2))
        self.assertEqual(self.rows("SELECT max(step) FROM reports"), [(2,)])

    def test_rank_1_alone_reports(self):
        self.assertIn("rank 0", self.failure_of([program("lone_reporter.py"), "1"], 2))


def make_test(row, column):
    return lambda self: getattr(self, column)(*ROWS[row])


for each_row in ROWS:
    for each_column in COLUMNS:
        setattr(Matrix, f"test_{each_row}_{each_column}", make_test(each_row, each_column))


if __name__ == "__main__":
    if not ENVIRONMENT:
        sys.exit(NO_TORCH)
    subprocess.run([sys.executable, "-c", "import accelerate, pytorch_lightning, transformers"], env=ENVIRONMENT, check=True)
    unittest.main(defaultTest=["Edges", *(f"Matrix.test_{name}" for name in DEFAULT)])
