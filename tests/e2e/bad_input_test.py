"""Wrong input: each case gives a message that names the fault, the right exit code, and loses no data."""

import json
import os
import sqlite3
import subprocess
import unittest

from support import ATTUNE, EndToEnd, FASHION_MNIST, ask_server, sweep


class SweepFile(EndToEnd):
    def check_refused(self, content, *expected):
        file = self.write(content)
        for command in (["sweep", "validate", file],
                        ["run", file, "--port", 0, "--data-dir", self.data]):
            code, out, err = self.attune(*command)
            self.assertEqual(code, 2, err)
            self.assertEqual(out, "")
            for text in expected:
                self.assertIn(text, err)
        self.assertFalse((self.data / "attune.db").exists(), "a refused file left a database")

    def test_unknown_key(self):
        text = ("command: [./train]\nmetric: {name: loss, mode: min}\n"
                "parameters:\n  lr: {min: 0.1, max: 1}\n"
                "scheduler:\n  name: asha\n  reduction_facter: 3\n  max: 9\nstop: {max_trials: 3}\n")
        self.check_refused(text, "sweep.yaml:7:3: scheduler.reduction_facter: ", "reduction_factor")

    def test_wrong_type(self):
        self.check_refused(sweep(stop={"max_trials": "many"}), "stop.max_trials")

    def test_no_space(self):
        self.check_refused(sweep(parameters=None), "parameters: ")

    def test_min_above_max(self):
        self.check_refused(sweep(parameters={"lr": {"min": 2.0, "max": 1.0}}), "parameters.lr")

    def test_log_scale_with_zero(self):
        self.check_refused(sweep(parameters={"lr": {"min": 0.0, "max": 1.0, "scale": "log"}}),
                           "parameters.lr", "log")

    def test_no_such_file(self):
        code, _, err = self.attune("run", self.folder / "nowhere.yaml", "--data-dir", self.data)
        self.assertEqual(code, 3)
        self.assertIn("nowhere.yaml", err)

    def test_not_yaml(self):
        self.check_refused("command: [", "sweep.yaml:")

    def test_validate_prints_the_resolved_file_and_the_rungs(self):
        code, out, err = self.attune("sweep", "validate", self.write(sweep()))
        self.assertEqual(code, 0, err)
        self.assertIn("max_restarts", out)
        self.assertIn("1, 2, 4", out + err)


class Host(EndToEnd):
    def test_a_data_folder_with_a_newline_in_its_name(self):
        code, out, err = self.attune("run", self.write(sweep()), "--data-dir", self.folder / "a\nb")
        self.assertEqual(code, 2, err)
        self.assertIn("control character", err)
        self.assertFalse((self.folder / "a\nb").exists())

    def test_a_deleted_working_directory(self):
        gone = self.folder / "gone"
        gone.mkdir()
        ended = subprocess.run(["sh", "-c", f'rmdir "{gone}"; exec "{ATTUNE}" run ../sweep.yaml'], cwd=gone,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("working directory", ended.stderr)

    def test_a_loopback_interface_that_is_down(self):
        if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode != 0:
            self.skipTest("may not create a network namespace")
        ended = subprocess.run(["unshare", "-rn", ATTUNE, "run", self.write(sweep()), "--data-dir", self.data],
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("loopback", ended.stderr)

    def test_a_gang_larger_than_this_machine_ends_the_run(self):
        file = self.write(sweep(resources={"workers": 2, "cpus_per_worker": 100000}))
        code, out, err = self.attune("run", file, "--data-dir", self.data, "--port", 0)
        self.assertEqual(code, 5, err)
        self.assertRegex(err, r"\b200000 CPUs\b")
        self.assertEqual(self.rows("SELECT state FROM sweeps"), [("killed",)])


class Program(EndToEnd):
    def run_failing(self, **changes):
        process = self.run_sweep(self.write(sweep(**changes)), "-o", "json")
        code = process.wait()
        return code, json.loads(process.stdout), "\n".join(process.stderr)

    def mode(self, mode, **more):
        return {"parameters": {"x": {"min": 0.0, "max": 1.0}, "mode": {"value": mode}}, **more}

    def failure(self):
        return self.rows("SELECT failure FROM attempts ORDER BY trial, number")[0][0]

    def failures(self):
        return [text for text, in self.rows(
            "SELECT failure FROM attempts WHERE failure IS NOT NULL AND outcome = 'failed'")]

    def test_a_missing_program(self):
        code, out, err = self.attune("run", self.write(sweep(command=["./no-such-program"])),
                                     "--data-dir", self.data, "--port", 0)
        self.assertEqual(code, 2, err)
        self.assertIn("no-such-program", out + err)

    def test_a_program_outside_the_path(self):
        code, result, err = self.run_failing(command=["no-such-program-anywhere"])
        self.assertEqual(code, 5, err)
        self.assertEqual(result["state"], "failed")
        self.assertIn("no-such-program-anywhere", err)

    def test_a_program_that_exits_before_its_first_report(self):
        code, result, err = self.run_failing(**self.mode("exit", failure={"max_restarts": 0}))
        self.assertEqual(code, 5, err)
        self.assertEqual(result["trials"]["failed"], 3)
        self.assertRegex(self.failure(), r"rank 0\b.*exit.* 1")
        self.assertIn("giving up", self.failure())

    def test_a_program_that_throws(self):
        code, _, err = self.run_failing(**self.mode("throw", failure={"max_restarts": 0}))
        self.assertEqual(code, 5, err)
        self.assertIn("too green", self.failure())

    def test_a_program_that_hangs(self):
        code, _, err = self.run_failing(
            **self.mode("hang", failure={"max_restarts": 0, "stall_timeout": "1s"}))
        self.assertEqual(code, 5, err)
        self.assertIn("rank 0", self.failure())
        self.assertIn("stall_timeout", self.failure())

    def test_a_program_with_a_wrong_protocol(self):
        code, _, err = self.run_failing(**self.mode("babble", failure={"max_restarts": 0}))
        self.assertEqual(code, 5, err)
        self.assertIn("hello", self.failure())

    def test_a_report_that_cannot_be_stored_delays_no_other_trial(self):
        spec = sweep(parameters={"x": {"values": [0.25, 0.75]},
                                 "mode": {"values": ["nan-seconds", "well"]}},
                     searcher={"name": "grid"}, failure={"max_restarts": 0})
        process = self.run_sweep(self.write(spec), "-o", "json")
        process.wait()
        trials = json.loads(process.stdout)["trials"]
        self.assertEqual(trials["failed"], 2, "\n".join(process.stderr))
        self.assertEqual(sum(trials.values()), 4)
        failures = self.failures()
        self.assertEqual(len(failures), 2)
        for failure in failures:
            self.assertIn("rank 0", failure)
            self.assertIn("""'seconds' is '"nan"'""", failure)

    def test_a_dead_rank_is_named(self):
        self.close_gate(1)  # holds rank 0, which would continue
        code, _, err = self.run_failing(
            **self.mode("die", failure={"max_restarts": 0}, stop={"max_trials": 1},
                        resources={"workers": 2, "cpus_per_worker": 1}))
        self.assertEqual(code, 5, err)
        self.assertIn("rank 1", self.failure())
        self.assertIn("SIGKILL", self.failure())

    def test_a_program_that_does_not_report_the_metric(self):
        code, _, err = self.run_failing(metric={"name": "accuracy", "mode": "max"},
                                        scheduler={"name": "fifo", "max": 2})
        self.assertEqual(code, 5, err)
        self.assertRegex(err, r"\baccuracy\b.*\bscore\b")

    def test_the_example_without_its_data_names_the_folder(self):
        self.environment["ATTUNE_DATA_DIR"] = str(self.folder / "empty")
        code, _, err = self.run_failing(
            command=[FASHION_MNIST], metric={"name": "accuracy", "mode": "max"},
            parameters={"lr": {"min": 0.01, "max": 0.1}}, failure={"max_restarts": 0})
        self.assertEqual(code, 5, err)
        self.assertIn(str(self.folder / "empty"), self.failure())


class Environment(EndToEnd):
    def begin(self):
        self.close_gate(2)
        run = self.run_sweep(self.write(sweep()))
        run.await_stderr(r"http://")
        self.await_event(lambda kind, _: kind == "sweep_created")
        return run

    def test_a_second_server_on_the_same_folder(self):
        self.begin()
        code, _, err = self.attune("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        self.assertEqual(code, 1)
        self.assertIn(str(self.data), err)
        self.get("/sweeps/s1")

    def test_a_taken_port(self):
        self.begin()
        port = ask_server(self.data)["http"].rsplit(":", 1)[1]
        code, _, err = self.attune("serve", "--data-dir", self.folder / "other", "--port", port,
                                   "--rpc-port", 0)
        self.assertEqual(code, 1)
        self.assertIn(port, err)

    def test_a_database_of_another_format(self):
        self.assertEqual(self.run_sweep(self.write(sweep(stop={"max_trials": 1}))).wait(), 0)
        database = sqlite3.connect(self.data / "attune.db")
        with database:
            database.execute("UPDATE written_by SET version = '9.8.7'")
            database.execute("PRAGMA user_version = 9999")
        database.close()
        code, _, err = self.attune("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        self.assertEqual(code, 1)
        self.assertRegex(err, r"\b9999\b.*\b9\.8\.7\b")

    def test_a_file_that_is_not_a_database(self):
        self.data.mkdir()
        (self.data / "attune.db").write_text("this is not a database, it is a letter to a friend" * 99)
        code, _, err = self.attune("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        self.assertEqual(code, 1)
        self.assertIn("attune.db", err)

    def test_an_invalid_token_file(self):
        self.data.mkdir()
        (self.data / "token").write_text("abc def\n")
        code, _, err = self.attune("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        self.assertEqual(code, 2)
        self.assertIn(str(self.data / "token"), err)

    def test_a_data_folder_that_cannot_be_created(self):
        (self.folder / "file").write_text("")
        code, _, err = self.attune("serve", "--data-dir", self.folder / "file" / "data", "--port", 0)
        self.assertEqual(code, 1)
        self.assertIn(str(self.folder / "file"), err)

    def test_a_client_without_a_server(self):
        code, _, err = self.attune("sweep", "list", "--data-dir", self.data)
        self.assertEqual(code, 1)
        self.assertIn("attune serve", err)

    def test_a_wrong_token(self):
        self.begin()
        self.environment["ATTUNE_TOKEN"] = "wrong"
        url = ask_server(self.data)["http"]
        code, _, err = self.attune("sweep", "list", "--server", url)
        self.assertEqual(code, 4, err)

    def test_an_executor_with_a_wrong_token(self):
        self.assertTrue(os.access(ATTUNE, os.X_OK))
        serve = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        serve.await_stderr(r"http://")
        token = self.write("wrong\n", "token")
        target = ask_server(self.data)["rpc"]
        code, _, err = self.attune("executor", "--server", target, "--token-file", token,
                                   "--data-dir", self.folder / "other")
        self.assertEqual(code, 4, err)
        self.assertIn("token", err)


if __name__ == "__main__":
    unittest.main()
