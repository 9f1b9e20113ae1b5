"""Sweeps that tune a function of a Python program, on a server that the program starts."""

import concurrent.futures
import contextlib
import functools
import importlib.machinery
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import ATTUNE, EndToEnd, PATIENCE_S, ProcessExit, ROOT  # noqa: E402

sys.path[:0] = [str(ROOT / "clients/python"), str(ROOT / "tests/e2e/programs"), str(ROOT / "scripts")]

import markdown_pages as markdown  # noqa: E402
import pickled_script  # noqa: E402
import tuned_script  # noqa: E402
from attune.client import Error, LocalServer  # noqa: E402

ANY_PORT = ["--port", "0", "--rpc-port", "0"]


class Local(EndToEnd):
    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, self.environment, PYTHONDONTWRITEBYTECODE="1")
        patch.start()
        self.addCleanup(patch.stop)
        self.server_output = io.StringIO()

    def local(self, **options):
        with contextlib.redirect_stderr(self.server_output):
            server = LocalServer(**{"data_dir": self.data, "attune": ATTUNE, "options": ANY_PORT, **options})
        self.addCleanup(server.stop)
        return server

    def script(self, script=tuned_script, **environment):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python"), **environment}
        return subprocess.run([sys.executable, script.__file__, ATTUNE, self.data], text=True,
                              env=environment, cwd=self.folder, capture_output=True, timeout=PATIENCE_S)


class Functions(Local):
    def run_function(self, function, **changes):
        sweep = self.local().create({**tuned_script.SWEEP, **changes}, train=function)
        sweep.wait(PATIENCE_S)
        return sweep

    def test_a_function_reports_and_is_stopped_early(self):
        trials = self.run_function(tuned_script.train, stop={"max_trials": 9}).trials()
        self.assertEqual({trial["state"] for trial in trials}, {"completed", "stopped"})
        self.assertEqual({trial["step"] for trial in trials}, {1, 4})

    def test_a_function_returns_its_value(self):
        sweep = self.run_function(tuned_script.value, scheduler={"name": "fifo"})
        best = sweep.best()
        self.assertEqual(best["value"], tuned_script.value(best["config"]))

    def test_a_function_returns_its_metrics_and_its_ranks_are_forked(self):
        trials = self.run_function(tuned_script.metrics, scheduler={"name": "fifo"},
                                   max_concurrent_trials=1).trials()
        self.assertLessEqual(len({trial["metrics"]["parent"] for trial in trials}), 2)  # the executor, at first
        self.assertEqual((self.data / "launchers" / f"{os.path.basename(sys.executable)}.log").read_text(), "")

    def test_a_function_that_returns_text_fails_its_trial(self):
        with self.assertRaisesRegex(Error, "failed"):
            self.run_function(tuned_script.word)
        self.assertIn("metric 'loss' is 'good'", self.rows("SELECT failure FROM attempts")[0][0])

    def test_a_function_without_result_and_report_fails_its_trial(self):
        with self.assertRaisesRegex(Error, "failed"):
            self.run_function(tuned_script.nothing)
        self.assertRegex(self.rows("SELECT failure FROM attempts")[0][0], r"RuntimeError: \S*\bnothing\b")

    def test_accepts_static_methods(self):
        self.assertEqual(self.run_function(tuned_script.Kinds.static, scheduler={"name": "fifo"}).best()["value"], 2)

    def test_refuses_functions_that_ranks_cannot_run(self):
        server = self.local()
        with mock.patch.dict(sys.modules, cloudpickle=None):
            for train in (lambda config: 0, functools.partial(tuned_script.train), tuned_script.Kinds().method,
                          tuned_script.Kinds.inherited, tuned_script.replaced, print):
                with self.assertRaisesRegex(ImportError, "pip install cloudpickle"):
                    server.create(tuned_script.SWEEP, train=train)
        with self.assertRaisesRegex(Error, "metric.name"):
            server.create({**tuned_script.SWEEP, "metric": {"mode": "min"}}, train=tuned_script.train)
        with self.assertRaisesRegex(ValueError, "^train is 'tuned_script:train'"):
            server.create(tuned_script.SWEEP, train="tuned_script:train")
        with self.assertRaisesRegex(ValueError, "^command and train="):
            server.create({**tuned_script.SWEEP, "command": ["true"]}, train=tuned_script.train)
        with self.assertRaisesRegex(ValueError, r"^train= .*\bdict\b"):
            server.create("sweep.yaml", train=tuned_script.train)
        self.assertEqual(server.sweeps(), [])


class Pickled(Local):
    """Functions that need cloudpickle. Skipped if cloudpickle is not installed."""

    def setUp(self):
        super().setUp()
        found = importlib.machinery.PathFinder.find_spec("cloudpickle", [*sys.path, str(ROOT / ".deps/python-torch")])
        if found is None:
            self.skipTest("no cloudpickle: pip install cloudpickle, or run scripts/setup")
        (self.folder / "packages").mkdir()  # contains cloudpickle only
        (self.folder / "packages/cloudpickle").symlink_to(pathlib.Path(found.origin).parent)

    def run_script(self):
        return self.script(pickled_script, PYTHONPATH=f"{ROOT / 'clients/python'}:{self.folder / 'packages'}")

    def test_tunes_lambdas_closures_and_partials(self):
        run = self.run_script()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout), [0.5, 1.0, 5.0])
        files = {path.name for path in (self.folder / "attune-functions").iterdir()}
        self.assertEqual(len(files), 3)
        commands = [" ".join(json.loads(row[0])["command"]) for row in self.rows("SELECT spec FROM sweeps")]
        self.assertTrue(all(any(file in command for command in commands) for file in files), commands)


class Scripts(Local):
    def test_a_script_tunes_its_own_function(self):
        run = self.script()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout), self.rows("SELECT min(best) FROM trials")[0][0])
        self.assertIn("\npage ", "\n" + run.stderr)
        self.assertFalse((self.data / "server.sock").exists())  # the server has ended

    def test_the_script_of_the_documentation_runs(self):
        [script] = markdown.code((ROOT / "docs/reference/python.md").read_text(), "python", "tune.py")
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python"),
                       "PATH": f"{os.path.dirname(ATTUNE)}:{os.environ['PATH']}"}
        run = subprocess.run([sys.executable, self.write(script, "tune.py")], text=True, env=environment,
                             cwd=self.folder, capture_output=True, timeout=PATIENCE_S)
        self.assertRegex(run.stdout, r"^\{'lr': 0\.\d+, 'width': \d+\}$", run.stderr)

    def test_a_script_without_a_main_guard_gets_an_error_that_names_it(self):
        run = self.script(UNGUARDED="1")
        self.assertRegex(run.stderr, r"Error: .*\bs1\b.*\bfailed\b")
        self.assertIn("__main__", self.rows("SELECT failure FROM attempts")[0][0])


class Servers(Local):
    def test_uses_a_running_server_and_does_not_stop_it(self):
        first = self.local()
        with self.local() as second:
            self.assertEqual(second.page, first.page)
        self.assertEqual(first.sweeps(), [])
        first.stop()
        with self.assertRaisesRegex(Error, f"{self.data}: .*attune serve"):
            first.page
        self.assertEqual(self.local().sweeps(), [])  # starts another server

    def test_the_next_server_continues_a_sweep(self):
        first = self.local()
        first.create(tuned_script.SWEEP, train=tuned_script.train)
        self.await_report(trial=0, step=1)
        first.stop()
        sweep = self.local().sweep("s1")
        self.assertEqual(sweep.wait(PATIENCE_S)["state"], "completed")
        self.assertEqual(len(sweep.trials()), 4)

    def test_replaces_a_server_that_ended_with_another_program(self):
        first, second = self.local(), self.local()
        first.stop()
        with contextlib.redirect_stderr(self.server_output):
            self.assertEqual(second.sweeps(), [])
        second.stop()
        with self.assertRaisesRegex(Error, f"{self.data}: .*attune serve"):
            first.sweeps()

    def test_programs_that_start_at_the_same_time_share_a_server(self):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            runs = [pool.submit(self.script) for _ in range(3)]
            for run in runs:
                self.assertEqual(run.result().returncode, 0, run.result().stderr)
        self.assertEqual(self.rows("SELECT count(*) FROM sweeps WHERE state = 'completed'"), [(3,)])

    def program(self, after):
        """Runs a program that starts a server and then executes `after`. Returns the ended program."""
        text = ("import os, signal, sys\n"
                "from attune.client import LocalServer\n"
                "server = LocalServer(sys.argv[1], sys.argv[2], sys.argv[3:])\n" + after)
        return subprocess.run([sys.executable, "-c", text, self.data, ATTUNE, *ANY_PORT], text=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python")},
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)

    def test_a_server_ends_when_its_program_is_killed(self):
        run = self.program("print(server._server_process._process.pid, flush=True)\n"
                           "os.kill(os.getpid(), signal.SIGKILL)\n")
        with contextlib.suppress(ProcessLookupError):  # it has already ended
            self.assertTrue(ProcessExit(int(run.stdout)).wait())

    def test_a_fork_of_the_program_does_not_stop_the_server(self):
        run = self.program("if os.fork() == 0: sys.exit(0)\n"
                           "print(os.wait()[1], server.sweeps())\n")
        self.assertEqual(run.stdout, "0 []\n")

    def test_works_without_stderr_and_after_a_change_of_the_working_directory(self):
        run = self.program("sys.stderr = None\n"
                           "server.stop()\n"
                           "os.chdir(os.path.dirname(sys.argv[1]))\n"
                           "again = LocalServer(os.path.basename(sys.argv[1]), sys.argv[2], sys.argv[3:])\n"
                           "os.chdir('/')\n"
                           "print(again.page[:5], again.sweeps())\n")
        self.assertEqual(run.stdout, "http: []\n")

    def test_the_error_says_why_a_server_does_not_start(self):
        with self.assertRaisesRegex(Error, "'no-such-program'"):
            self.local(attune="no-such-program")
        with self.assertRaisesRegex(Error, "--no-such-option"):
            self.local(options=["--no-such-option"])
        self.data.write_text("not a folder")
        with self.assertRaisesRegex(Error, "data"):
            self.local()


if __name__ == "__main__":
    unittest.main()
