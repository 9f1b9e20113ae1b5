"""Decisions that were worked out by hand (tests/data/golden_traces), taken with real processes; the same files run in
virtual time in tests/conformance/golden_traces_test.cc."""

import json
import sys
import unittest

from support import EndToEnd, ROOT

TRACES = ROOT / "tests/data/golden_traces"
# Reports what its trial's curve has; the curve's end is as far as a trial may come.
SCRIPT = """import json, os, attune
curve = json.loads(os.environ["CURVES"])[int(os.environ["ATTUNE_TRIAL"])]
for value in curve[attune.step:]:
    attune.report({os.environ["METRIC"]: value}, checkpoint=lambda folder: (folder / "state").touch())
raise RuntimeError("the trial goes on beyond its curve")
"""
# Verdicts and promotions as they came.
DECISIONS = """
SELECT d.seq, d.trial, d.step, replace(d.verdict, 'promote', 'promoted'), d.rule, d.rank, d.peers, d.cutoff,
  c.donor, c.step, json_extract(d.config, '$.x')
FROM decisions AS d LEFT JOIN clones AS c USING (seq)
ORDER BY 1"""


class GoldenTraces(EndToEnd):
    def decisions(self):
        """As the files have them."""
        lines = []
        for _, trial, step, what, rule, rank, peers, cutoff, donor, donors, x in self.rows(DECISIONS):
            if donor is not None:
                what = f"clones {donor}@{donors} with x {x:g}"
            if rule == "max_step":
                what, peers, cutoff = "complete", 0, None
            lines.append(f"{trial}@{step} {what}" + (f", rank {rank} of {peers}" if peers else "") +
                         (f", cutoff {cutoff:g}" if isinstance(cutoff, float) else ""))
        return lines

    def train(self, spec, curves):
        # Ranks are forked from one launcher, once it is ready.
        command = [sys.executable, "-B", "-m", "attune.launcher", "--import", "json", self.write(SCRIPT, "train.py")]
        env = {"PYTHONPATH": str(ROOT / "clients/python"), "METRIC": spec["metric"]["name"],
               "CURVES": json.dumps(curves)}
        run = self.run_sweep(self.write({**spec, "command": command, "env": env, "failure": {"max_restarts": 0}}))
        self.assertEqual(run.wait(), 0, run.stderr)

    def decides_as_written(self, name):
        trace = json.loads((TRACES / f"{name}.json").read_text())
        self.train(trace["sweep"], trace["curves"])
        self.assertEqual(self.decisions(), [decision for decision, _ in trace["decisions"]])
        for state, trials in trace["ends"].items():
            self.assertEqual(self.rows(f"SELECT number FROM trials WHERE state = '{state}' ORDER BY 1"),
                             [(trial,) for trial in trials])
        steps = self.rows("SELECT trial, json_group_array(step) FROM (SELECT * FROM reports ORDER BY seq) GROUP BY 1")
        self.assertEqual([json.loads(each) for _, each in steps],
                         [list(range(1, len(curve) + 1)) for curve in trace["curves"]])
        code, out, err = self.attune("db", "check", "--decisions", "--data-dir", self.data)
        self.assertEqual(code, 0, out + err)

    def test_a_round_of_hyperband_is_that_of_the_paper_with_many_trials_at_once(self):
        # R = 9, η = 3: s_max = 2, and ⌈3·9/3⌉, ⌈3·3/2⌉ and 3 trials begin. Trials at steps:
        brackets = [[(9, 1), (3, 3), (1, 9)], [(5, 3), (1, 9)], [(3, 9)]]
        trials = sum(bracket[0][0] for bracket in brackets)
        curves = [[(7 * trial + 5 * step) % trials / trials for step in range(1, 10)]  # each step ranks them anew
                  for trial in range(trials)]
        self.train({"metric": {"name": "loss", "mode": "min"}, "parameters": {"x": {"min": 0.0, "max": 1.0}},
                    "scheduler": {"name": "hyperband", "max": 9, "reduction_factor": 3},
                    "resources": {"cpus_per_worker": 0}, "max_concurrent_trials": 6,
                    "stop": {"max_trials": trials}}, curves)
        expected, first = [], 0
        for bracket in brackets:
            left, before = list(range(first, first + bracket[0][0])), 1
            furthest = dict.fromkeys(left)
            for count, step in bracket:  # algorithm 1, lines 4 to 9
                left = sorted(left, key=lambda trial: curves[trial][before - 1])[:count]
                furthest.update(dict.fromkeys(left, step))
                before = step
            expected += furthest.items()
            first += len(furthest)
        self.assertEqual(self.rows("SELECT trial, max(step) FROM reports GROUP BY 1 ORDER BY 1"), expected)


for path in sorted(TRACES.glob("*.json")):
    setattr(GoldenTraces, f"test_{path.stem}", lambda self, name=path.stem: self.decides_as_written(name))


if __name__ == "__main__":
    unittest.main()
