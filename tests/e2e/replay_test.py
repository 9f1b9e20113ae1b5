"""Replays a sweep under another scheduler, and trains the schedule of a clone again, over REST and the command line."""

import json
import unittest

from support import EndToEnd, sweep

# x is the final score of a trial. All trials grow alike, so every rung ranks them by x.
POINTS = [{"x": x} for x in (0.1, 0.5, 0.3, 0.9)]


class Replay(EndToEnd):
    def begin(self, **changes):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--with-executor")
        server.await_stderr(r"http://")
        spec = sweep(initial_points=POINTS, stop={"max_trials": 4}, max_concurrent_trials=1,
                     **changes)
        status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST",
                                      json.dumps(spec).encode())
        self.assertEqual(status, 201, answer)
        self.await_event(lambda kind, data: kind == "sweep_changed" and
                         data["state"] == "completed")

    def replay(self, *words):
        code, out, err = self.attune("replay", "s1", "--data-dir", self.data, *words)
        self.assertEqual(code, 0, err)
        return out

    def test_a_complete_recording_shows_the_stops_of_another_scheduler(self):
        self.begin(scheduler={"name": "fifo", "max": 4})
        words = ["--scheduler", "asha", "--set", "reduction_factor=2", "--set", "min=1"]
        answer = json.loads(self.replay(*words, "--json"))
        # One after another: 0.1 is the first of one, 0.5 the first of two, 0.3 the second of three.
        self.assertEqual([(trial["best_case"]["state"], trial["best_case"]["step"])
                          for trial in answer["trials"]],
                         [("completed", 4), ("completed", 4), ("stopped", 1), ("completed", 4)])
        self.assertEqual((answer["slots"], answer["unknown"]), (1, 0))
        self.assertEqual((answer["recorded"]["steps"], answer["worst_case"]["steps"]), (16, 13))
        self.assertTrue(answer["worst_case"]["keeps_best_trial"])
        self.assertEqual(answer["worst_case"]["regret"], 0)
        self.assertLess(answer["worst_case"]["cpu_hours"], answer["recorded"]["cpu_hours"])

        status, over_rest = self.request(
            "/api/v1/sweeps/s1:replay", "POST",
            b"scheduler: {name: asha, reduction_factor: 2, min: 1}")
        self.assertEqual((status, over_rest), (200, answer))

        table = self.replay(*words)
        self.assertRegex(table, r"\btrial 3\b.*\bstep 4\b")
        self.assertRegex(table, r"steps +16 +13 +-19 %")
        self.assertRegex(table, r"2  completed 4  stopped 1 .*rank 2 of 3 at rung 1")
        self.assertRegex(table, r"\b3 trials\b")

    def test_stopped_trials_are_unknown_and_have_bounds(self):
        self.begin(scheduler={"name": "asha", "min": 1, "max": 4, "reduction_factor": 2})
        answer = json.loads(self.replay("--scheduler", "fifo", "--json"))
        self.assertEqual([trial["unknown"] for trial in answer["trials"]],
                         [False, False, True, False])
        table = self.replay("--scheduler", "fifo", "--slots", 2)
        self.assertIn("1 of 4 trials ", table)
        self.assertRegex(table, r"2  stopped 1 +completed 4 \?")

    def test_an_invalid_scheduler_gets_the_errors_of_a_sweep_file(self):
        self.begin(scheduler={"name": "fifo", "max": 4})
        for words, said in ((["--scheduler", "ashaa"], " asha?"),
                            (["--scheduler", "asha", "--set", "reduction_facter=3"],
                             " reduction_factor?"),
                            (["--set", "x"], "KEY=VALUE"),
                            (["--set", "command=x"], "unknown key")):
            code, out, err = self.attune("replay", "s1", "--data-dir", self.data, *words)
            self.assertEqual(code, 2, out + err)
            self.assertIn(said, err)

    def test_one_trial_repeats_the_schedule_of_a_clone(self):
        self.begin(scheduler={"name": "pbt", "max": 8, "perturbation_interval": 2,
                              "resample_probability": 0.0, "synchronous": True},
                   parameters={"x": {"min": 0.0, "max": 4.0}})
        answers = [self.get(f"/sweeps/s1/trials/{trial}/schedule") for trial in range(4)]
        answer = max(answers, key=lambda answer_of_trial: len(answer_of_trial["schedule"]))
        schedule = {part["step"]: part["config"]["x"] for part in answer["schedule"]}
        self.assertGreaterEqual(len(schedule), 3, answers)
        for answer_of_trial in answers:  # each trial was really trained with this schedule
            own_steps = [part["step"] for part in answer_of_trial["schedule"] if part["trial"] == answer_of_trial["trial"]]
            self.check_scores(f"/sweeps/s1/trials/{answer_of_trial['trial']}", answer_of_trial["schedule"], own_steps[-1])

        name = f"s1/{answer['trial']}"
        code, out, err = self.attune("trial", "schedule", name, "-o", "yaml", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertEqual(out, answer["file"])
        code, out, err = self.attune("sweep", "create", self.write(out, "again.yaml"),
                                     "--data-dir", self.data)
        self.assertEqual((code, out.strip()), (0, "s2"), err)
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["sweep"] == "s2" and
                         data["state"] == "completed")
        trial = self.get("/sweeps/s2/trials/0")
        self.assertEqual((trial["state"], trial["step"]), ("completed", answer["step"]))
        self.assertEqual([attempt["resumed_from"] for attempt in trial["attempts"]],
                         [None, *[step for step in schedule if step > 0]])
        self.check_scores("/sweeps/s2/trials/0", answer["schedule"])
        # Each part began from the trial's own checkpoint, which the attempt before it had saved.
        expected = [dict(part, trial=0) for part in answer["schedule"]]
        for number, part in enumerate(expected[1:], start=1):
            part["checkpoint"] = f"s2/0/{number}-{part['step']}"
        self.assertEqual(self.get("/sweeps/s2/trials/0/schedule")["schedule"], expected)
        code, out, err = self.attune("db", "check", "--decisions", "--data-dir", self.data)
        self.assertEqual(code, 0, out + err)

    def check_scores(self, path, schedule, after=0):
        """Checks that the score of each step fits the x of the schedule at that step."""
        reports = [report for report in self.get(path)["history"] if report["step"] > after]
        self.assertTrue(reports)
        for report in reports:
            step = report["step"]
            x = [part["config"]["x"] for part in schedule if part["step"] < step][-1]
            self.assertEqual(report["metrics"]["score"], x * (1 - 0.5 ** step), (step, schedule))


if __name__ == "__main__":
    unittest.main()
