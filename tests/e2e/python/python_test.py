"""Gangs of Python scripts, with and without the package `attune`."""

import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import EndToEnd, ROOT, sweep  # noqa: E402

PACKAGE = str(ROOT / "clients/python")


class PythonGang(EndToEnd):
    def spec(self, **changes):
        return sweep(**{"command": [sys.executable, "-B", str(ROOT / "tests/e2e/programs/python_worker.py")],
                        "env": {"PYTHONPATH": PACKAGE}, "working_directory": str(self.folder),
                        "resources": {"workers": 2, "cpus_per_worker": 1}, **changes})

    def finish(self, spec):
        """Runs a sweep to its end, and checks that no process is left. Returns (exit code, result, stderr)."""
        run = self.run_sweep(self.write(spec), "-o", "json")
        code = run.wait()
        pids = [path.name[4:] for path in self.folder.glob("pid-*")]
        self.assertTrue(pids)
        for pid in pids:
            self.assertFalse(pathlib.Path("/proc", pid).exists(), f"process {pid} is left")
        return code, json.loads(run.stdout), "\n".join(run.stderr)

    def serve(self):
        serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        serve.await_stderr(r"http://")


class Package(PythonGang):
    def test_pauses_and_resumes_from_checkpoints_of_every_rank(self):
        scheduler = {"name": "asha", "min": 1, "max": 4, "reduction_factor": 2, "mode": "promote"}
        code, result, err = self.finish(self.spec(scheduler=scheduler))
        self.assertEqual(code, 0, err)
        manifest = json.loads((pathlib.Path(result["best"]["checkpoint"]) / "manifest.json").read_text())
        self.assertEqual(sorted(manifest["files"]),
                         ["attune-config.json", "state-0.json", "state-1.json"])
        self.serve()
        self.check_histories_are_whole()
        self.assertTrue(self.rows("SELECT * FROM attempts WHERE resumed_from > 0"))
        self.check_logged()

    def check_logged(self):
        """Checks that each trial has logged halfway to each of its reports, also across attempts."""
        reported, logged = ({curve["number"]: curve[steps]
                             for curve in self.get(f"/sweeps/s1/curves?metric={metric}")["trials"]}
                            for metric, steps in (("score", "steps"), ("halfway", "logged_steps")))
        self.assertEqual(logged, {number: [step - 0.5 for step in steps] for number, steps in reported.items()})

    def test_is_judged_by_samples_if_time_attr_names_them(self):
        scheduler = {"name": "asha", "time_attr": "samples", "min": 100, "max": 400, "reduction_factor": 2,
                     "mode": "promote"}
        code, result, err = self.finish(self.spec(scheduler=scheduler))
        self.assertEqual(code, 0, err)
        manifest = json.loads((pathlib.Path(result["best"]["checkpoint"]) / "manifest.json").read_text())
        # A report has 32 samples. The first report with at least 400 is judged.
        self.assertEqual((manifest["step"], manifest["time"]), (13, 416))
        resumed = self.rows("SELECT DISTINCT resumed_from FROM attempts WHERE resumed_from > 0 ORDER BY 1")
        self.assertEqual(resumed, [(128,), (224,)])
        self.assertEqual(self.rows("SELECT count(*) FROM checkpoints WHERE dropped IS NOT NULL AND removed IS NULL"),
                         [(0,)])
        steps = self.rows("SELECT step FROM reports WHERE trial = ? ORDER BY step", result["best"]["trial"])
        self.assertEqual(steps, [(32 * n,) for n in range(1, 14)])

    def test_every_rank_ends_at_the_same_step(self):
        code, _, err = self.finish(self.spec(stop={"max_trials": 2}))
        self.assertEqual(code, 0, err)
        for trial in self.data.glob("sweeps/s1/trials/*"):
            ends = [log.read_text().splitlines()[-1].split("ends")[1] for log in trial.rglob("rank-*.log")]
            self.assertEqual(len(ends), 2)
            self.assertEqual(ends[0], ends[1])

    def test_yields_when_its_sweep_is_paused(self):
        serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--with-executor")
        serve.await_stderr(r"http://")
        forever = {"name": "fifo", "max": 1_000_000}
        file = self.write(self.spec(scheduler=forever, stop={"max_trials": 1}))
        for verb in (("create", file), ("pause", "s1"), ("resume", "s1")):
            code, _, err = self.attune("sweep", *verb, "--data-dir", self.data)
            self.assertEqual(code, 0, err)
            if verb[0] == "create":
                self.await_report(trial=0, step=3)
            elif verb[0] == "pause":
                _, ended = self.await_event(lambda kind, data: kind == "attempt_changed" and
                                            data["state"] == "ended")
                paused = self.get("/sweeps/s1/trials/0")
                self.assertEqual(paused["attempts"][0]["outcome"], "paused")
        self.await_event(lambda kind, data: kind == "trial_reported" and
                         data["step"] == paused["step"] + 1, after=ended["seq"])
        again = self.get("/sweeps/s1/trials/0")
        self.assertEqual(again["attempts"][1]["resumed_from"], paused["step"])
        self.check_histories_are_whole()


class WarmStart(PythonGang):
    """Ranks that `python3 -m attune.launcher` forks."""

    def spec(self, **changes):
        command = [sys.executable, "-B", "-m", "attune.launcher", "--import", "json",
                   str(ROOT / "tests/e2e/programs/python_worker.py")]
        return super().spec(**{"command": command, **changes})

    def launchers(self, spec):
        """Runs a sweep of four gangs. Returns the parent processes of its ranks."""
        run = self.run_sweep(self.write(spec))
        self.assertEqual(run.wait(), 0, run.stderr)
        logs = [log.read_text() for log in self.data.glob("sweeps/s1/trials/*/attempts/1/rank-*.log")]
        self.assertEqual(len(logs), 8)
        parents = {re.search(r"a child of (\d+)", text).group(1) for text in logs}
        return parents - {str(run.popen.pid)}  # the executor itself starts ranks while the launcher is not ready

    def test_ranks_are_forked_from_one_launcher(self):
        launchers = self.launchers(self.spec(stop={"max_trials": 4}, max_concurrent_trials=1))
        self.assertEqual(len(launchers), 1)
        self.assertFalse(pathlib.Path("/proc", launchers.pop()).exists())

    def test_blames_a_forked_rank_that_raises(self):
        code, _, err = self.finish(self.spec(
            parameters={"x": {"value": 0.5}, "mode": {"value": "raise"}}, stop={"max_trials": 1},
            searcher={"name": "grid"}, failure={"max_restarts": 0}))
        self.assertEqual(code, 5, err)
        failure = self.rows("SELECT failure FROM attempts")[0][0]
        self.assertIn("rank 1", failure)
        self.assertIn("ValueError: too green", failure)

    def test_forks_if_imports_end_their_threads_before_a_fork(self):
        (self.folder / "forkable.py").write_text(
            "import os, threading\n"
            "end = threading.Event()\n"
            "thread = threading.Thread(target=end.wait)\n"
            "thread.start()\n"
            "os.register_at_fork(before=lambda: (end.set(), thread.join()))\n")
        command = [sys.executable, "-B", "-m", "attune.launcher", "--import", "forkable",
                   str(ROOT / "tests/e2e/programs/python_worker.py")]
        launchers = self.launchers(self.spec(command=command, stop={"max_trials": 4}, max_concurrent_trials=1))
        self.assertEqual(len(launchers), 1)

    def test_does_not_fork_if_imports_run_threads(self):
        (self.folder / "threaded.py").write_text(
            "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n")
        command = [sys.executable, "-B", "-m", "attune.launcher", "--import", "threaded",
                   str(ROOT / "tests/e2e/programs/python_worker.py")]
        code, _, err = self.finish(self.spec(command=command, stop={"max_trials": 2}))
        self.assertEqual(code, 0, err)
        launcher_log = "".join(log.read_text() for log in (self.data / "launchers").iterdir())
        self.assertRegex(launcher_log, r"attune\.launcher: .*\(1\).*--import")


class Errors(PythonGang):
    def fail(self, mode, **changes):
        code, _, err = self.finish(self.spec(
            parameters={"x": {"value": 0.5}, "mode": {"value": mode}}, stop={"max_trials": 1},
            searcher={"name": "grid"}, failure={"max_restarts": 0}, **changes))
        self.assertEqual(code, 5, err)
        return self.rows("SELECT failure FROM attempts")[0][0]

    def test_an_exception_in_one_rank(self):
        failure = self.fail("raise")
        self.assertIn("ValueError: too green", failure)
        self.assertIn("rank 1", failure)
        self.assertIn("Traceback", failure)

    def test_exit_1_in_one_rank_and_0_in_the_other(self):
        failure = self.fail("exit")
        self.assertRegex(failure, r"\brank 1\b.*exit code 1\b")
        self.assertIn("giving up", failure)

    def test_broken_lines_on_the_channel(self):
        failure = self.fail("babble")
        self.assertRegex(failure, r"'step'.*\"first\"")
        self.assertRegex(failure, "rank [01] begins")

    def test_ranks_that_report_different_steps(self):
        failure = self.fail("out-of-step")
        self.assertRegex(failure, r"\bstep 2\b.*\bstep 5\b")

    def test_a_script_that_does_not_report_gets_an_error_that_names_the_metric(self):
        _, _, err = self.finish(self.spec(
            parameters={"x": {"value": 0.5}, "mode": {"value": "forget"}}, stop={"max_trials": 1},
            searcher={"name": "grid"}))
        self.assertRegex(err, r"\bscore\b")


class ReadFromTheLog(PythonGang):
    PATTERN = r"^epoch (?P<step>\d+): score=(?P<score>[^,]+)"

    def script(self, **changes):
        return self.spec(command=[sys.executable, "-B", str(ROOT / "tests/e2e/programs/plain_script.py"), "${args}"],
                         env={}, **{"reports": {"pattern": self.PATTERN}, **changes})

    def test_reports_are_judged_and_the_gang_is_ended(self):
        code, result, err = self.finish(self.script())
        self.assertEqual(code, 0, err)
        self.assertEqual(result["trials"]["completed"] + result["trials"]["stopped"], 8)
        self.assertGreater(result["trials"]["stopped"], 0)
        self.serve()
        self.check_histories_are_whole()

    def test_a_script_that_ends_itself_has_all_its_reports(self):
        (self.folder / "enough").touch()
        code, result, err = self.finish(self.script(scheduler={"name": "fifo"}, stop={"max_trials": 2}))
        self.assertEqual(code, 0, err)
        self.assertEqual(result["trials"]["completed"], 2)
        self.assertEqual(self.rows("SELECT count(*) FROM reports"), [(2,)])

    def test_a_pattern_that_is_never_found(self):
        (self.folder / "enough").touch()
        code, _, err = self.finish(self.script(reports={"pattern": "loss: (?P<score>.*)"},
                                               stop={"max_trials": 1}, failure={"max_restarts": 0}))
        self.assertEqual(code, 5, err)
        failure = self.rows("SELECT failure FROM attempts")[0][0]
        self.assertRegex(failure, r"\brank 0\b.*reports\.pattern")
        self.assertIn("epoch 1: score=", failure)

    def test_refuses_a_bad_pattern_with_its_line(self):
        text = ("command: [python3, train.py]\nmetric: {name: loss, mode: min}\n"
                "parameters: {x: {value: 1}}\nstop: {max_trials: 1}\n"
                "reports:\n  pattern: 'loss=(?P<loss>'\n")
        code, _, err = self.attune("sweep", "validate", self.write(text))
        self.assertEqual(code, 2, err)
        self.assertIn("sweep.yaml:6:12: reports.pattern: ", err)


if __name__ == "__main__":
    unittest.main()
