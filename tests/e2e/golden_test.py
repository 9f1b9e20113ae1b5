"""Decisions that were worked out by hand (tests/data/golden_traces), checked with real processes.

tests/conformance/golden_traces_test.cc runs the same files in virtual time.
"""

import json
import sys
import unittest

from support import EndToEnd, ROOT

TRACES = ROOT / "tests/data/golden_traces"
# Reports the values of its trial's curve. No trial may train past the end of its curve.
SCRIPT = """import json, os, attune
curve = json.loads(os.environ["CURVES"])[int(os.environ["ATTUNE_TRIAL"])]
for value in curve[attune.step:]:
    attune.report({os.environ["METRIC"]: value}, checkpoint=lambda folder: (folder / "state").touch())
raise RuntimeError("the trial trained past the end of its curve")
"""
# Verdicts and promotions, in their order.
DECISIONS = """
SELECT d.seq, d.trial, d.step, replace(d.verdict, 'promote', 'promoted'), d.rule, d.rank, d.peers, d.cutoff,
  c.donor, c.step, json_extract(d.config, '$.x')
FROM decisions AS d LEFT JOIN clones AS c USING (seq)
ORDER BY 1"""


class GoldenTraces(EndToEnd):
    def decisions(self):
        """Returns the decisions in the format of the files."""
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
        # One launcher forks the ranks as soon as it is ready.
        command = [sys.executable, "-B", "-m", "attune.launcher", "--import", "json", self.write(SCRIPT, "train.py")]
        env = {"PYTHONPATH": str(ROOT / "clients/python"), "METRIC": spec["metric"]["name"],
               "CURVES": json.dumps(curves)}
        run = self.run_sweep(self.write({**spec, "command": command, "env": env, "failure": {"max_restarts": 0}}))
        self.assertEqual(run.wait(), 0, run.stderr)

    def check_decisions(self, name):
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

    def test_a_round_of_hyperband_with_concurrent_trials_matches_the_paper(self):
        # R = 9, η = 3: s_max = 2, and ⌈3·9/3⌉, ⌈3·3/2⌉ and 3 trials start. Trials at steps:
        brackets = [[(9, 1), (3, 3), (1, 9)], [(5, 3), (1, 9)], [(3, 9)]]
        trials = sum(bracket[0][0] for bracket in brackets)
        curves = [[(7 * trial + 5 * step) % trials / trials for step in range(1, 10)]  # each step ranks the trials differently
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
    setattr(GoldenTraces, f"test_{path.stem}", lambda self, name=path.stem: self.check_decisions(name))


if __name__ == "__main__":
    unittest.main()
