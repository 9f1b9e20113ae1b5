"""Code before Main() works the same in forked ranks and in started ranks."""

import os
import unittest

from support import BUILD, EndToEnd, sweep

EARLY = str(BUILD / "tests/e2e/early")
SCALE = "2.5"


class Early(EndToEnd):
    def run_early(self, command, **changes):
        """Runs a sweep of two gangs with two workers. The program checks its arguments."""
        file = self.write(sweep(
            command=command, stop={"max_trials": 2}, max_concurrent_trials=1,
            scheduler={"name": "fifo", "max": 1},
            resources={"workers": 2, "cpus_per_worker": 0}, **changes))
        return self.run_sweep(file, "-o", "json")

    def check(self, run):
        self.assertEqual(run.wait(), 0, run.stderr)
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        server.await_stderr(r"http://")
        trials = self.get("/sweeps/s1/trials")["trials"]
        self.assertEqual([trial["state"] for trial in trials], ["completed"] * 2, trials)
        for trial in trials:
            self.assertEqual(trial["attempt_count"], 1, trial)
            self.assertAlmostEqual(trial["metrics"]["score"],
                                   float(SCALE) * trial["config"]["x"])

    def lines_of(self, pattern):
        """Counts the lines about loading in each log that matches."""
        return [log.read_text().count(f"loading with {SCALE}")
                for log in sorted(self.data.rglob(pattern))]

    def test_forked_ranks_share_the_data_of_their_launcher(self):
        self.check(self.run_early([EARLY, SCALE]))
        self.assertEqual(self.lines_of("early.log"), [1])
        self.assertEqual(self.lines_of("rank-*.log"), [0] * 4)

    def test_started_ranks_load_the_data_themselves(self):
        self.check(self.run_early([EARLY, SCALE, "${param.x}"]))  # each trial has a different command
        self.assertEqual(self.lines_of("early.log"), [])
        self.assertEqual(self.lines_of("rank-*.log"), [1] * 4)

    def test_slow_loading_fails_no_trial(self):
        gate = self.folder / "gate"
        os.mkfifo(gate)
        run = self.run_early([EARLY, SCALE], env={"EARLY_GATE": str(gate)})
        run.await_stderr(r"http://")
        # The executor stops waiting for the launcher and starts the ranks, which load the data themselves.
        self.await_event(lambda kind, data: kind == "attempt_changed" and data["state"] == "running")
        with open(gate, "w"):
            self.check(run)


if __name__ == "__main__":
    unittest.main()
