"""`attune.client`, with a fake server that gives the answers of the test."""

import errno
import json
import math
import os
import pathlib
import signal
import threading
import unittest
from unittest import mock

from fake_server import OFFER, PATIENCE_S, SWEEP, Client, FakeServer, problem

from attune import _rest
from attune.client import Error, Server

NONE_NOW = {"state": "running", "reason": "every trial is running", "trial": None}
OVER = {"state": "completed", "reason": "", "trial": None}
CONTINUE = {"verdict": "continue", "reason": "rank 1 of 3", "milestone": 3}
STOP = {"verdict": "stop", "reason": "rank 3 of 3", "milestone": 0}


class FindingTheServer(Client):
    def credentials(self, *args, **options):
        self.fake.answers.append(SWEEP)
        Server(*args, **options).sweep("s1")
        return self.fake.asked.pop().headers["Authorization"]

    def test_by_its_address_and_token(self):
        self.assertEqual(self.credentials(f"127.0.0.1:{self.fake.server_port}", token="a"), "Bearer a")
        self.assertEqual(self.credentials(f":{self.fake.server_port}/", token="a"), "Bearer a")

    def test_by_the_environment(self):
        os.environ.update(ATTUNE_SERVER=self.fake.url, ATTUNE_TOKEN="b")
        self.assertEqual(self.credentials(data_dir=self.folder), "Bearer b")

    def test_by_its_data_folder(self):
        self.use_folder(self.fake)
        self.assertEqual(self.credentials(data_dir=self.folder), "Bearer of-the-folder")

    def test_a_given_token_overrides_that_of_the_folder_and_a_file_overrides_both(self):
        self.use_folder(self.fake)
        os.environ["ATTUNE_TOKEN"] = "b"
        self.assertEqual(self.credentials(data_dir=self.folder), "Bearer b")
        self.assertEqual(self.credentials(data_dir=self.folder, token="a"), "Bearer a")
        (self.folder / "mine").write_text("c \nnot this\n")
        both = {"token": "a", "token_file": self.folder / "mine"}
        self.assertEqual(self.credentials(data_dir=self.folder, **both), "Bearer c")

    def test_does_not_send_the_token_of_the_folder_to_another_server(self):
        self.use_folder(self.start())
        self.assertIsNone(self.credentials(self.fake.url, data_dir=self.folder))

    def test_errors_name_the_wrong_value(self):
        loop = pathlib.Path(self.folder, "loop")
        loop.symlink_to(loop)
        for wrong, options in ((f"{self.folder}: .*attune serve", {"data_dir": self.folder}),
                               (f"{loop}: {os.strerror(errno.ELOOP)}", {"data_dir": loop}),
                               ("'ftp://x'", {"server": "ftp://x"}),
                               ("'a/b'", {"server": "a/b"}),
                               (f"{self.folder}/no: {os.strerror(errno.ENOENT)}", {"server": ":1", "token_file": self.folder / "no"})):
            with self.assertRaisesRegex(Error, wrong):
                Server(**options)
        self.answer("{}")
        with self.assertRaisesRegex(Error, f"{self.folder}: .*attune serve"):
            Server(data_dir=self.folder)

    def test_by_a_data_folder_with_a_long_path(self):
        self.folder = self.folder / ("a" * 150)
        self.folder.mkdir()
        self.use_folder(self.fake)
        self.assertEqual(self.credentials(data_dir=self.folder), "Bearer of-the-folder")

    def test_a_program_that_took_the_port_of_a_dead_server_gets_no_token(self):
        die = self.use_folder(self.fake)
        server = Server(data_dir=self.folder, patience=0)
        die()
        with self.assertRaisesRegex(Error, f"{self.folder}: .*attune serve"):
            server.sweep("s1")
        with self.assertRaisesRegex(Error, f"{self.folder}: .*attune serve"):
            Server(data_dir=self.folder)
        self.assertEqual(self.fake.asked, [])


class Connections(Client):
    def test_stay_open(self):
        sweep = self.sweep(SWEEP, {"effect": ""}, SWEEP)
        sweep.get(), sweep.pause(), sweep.get()
        self.assertEqual(len({each.connection for each in self.fake.asked}), 1)

    def test_each_thread_has_its_own_connection(self):
        sweep = self.sweep(SWEEP, SWEEP)
        sweep.get()
        thread = threading.Thread(target=sweep.get)
        thread.start()
        thread.join(PATIENCE_S)
        self.assertEqual(len({each.connection for each in self.fake.asked}), 2)

    def test_a_forked_child_has_its_own_connection(self):
        sweep = self.sweep(SWEEP, SWEEP)
        sweep.get()
        child = os.fork()
        if child == 0:
            os._exit(sweep.get()["id"] != "s1")
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(len({each.connection for each in self.fake.asked}), 2)

    def test_reconnects_if_the_server_has_closed_an_idle_connection(self):
        sweep = self.sweep(SWEEP, FakeServer.BREAK, SWEEP)
        sweep.get(), sweep.get()
        self.assertEqual(len({each.connection for each in self.fake.asked}), 2)

    def test_retries_a_broken_request_with_the_same_key(self):
        trial = self.sweep(FakeServer.BREAK, FakeServer.BREAK, OFFER).ask()
        self.assertEqual(trial.config, {"lr": 0.1})
        first, second, third = self.keys()
        self.assertTrue(first == second == third)

    def test_each_request_has_another_key(self):
        sweep = self.sweep(OFFER, OFFER)
        sweep.ask(), sweep.ask()
        self.assertEqual(len(set(self.keys())), 2)

    def test_retries_if_the_server_is_busy(self):
        sweep = self.sweep((*problem(503, "reads its log"), {"Retry-After": "0"}), SWEEP)
        self.assertEqual(sweep.get()["state"], "running")
        self.assertEqual(self.asked(), ["GET /api/v1/sweeps/s1"] * 2)

    def test_gives_up_if_the_server_stays_busy(self):
        sweep = self.sweep(problem(503, "reads its log"), patience=0)
        with self.assertRaises(Error) as caught:
            sweep.get()
        self.assertEqual(caught.exception.status, 503)

    def test_does_not_retry_if_the_server_has_never_answered(self):
        self.fake.close()
        with self.assertRaisesRegex(Error, r"http://127\.0\.0\.1:\d+ .*refused") as caught:
            self.server().sweeps()
        self.assertIsNone(caught.exception.status)

    def test_finds_a_server_that_restarts_at_another_port(self):
        self.use_folder(self.fake)
        self.fake.answers += [SWEEP]
        sweep = Server(data_dir=self.folder).sweep("s1")
        self.fake.close()
        again = self.start()
        again.answers += [SWEEP]
        self.fake.answers += [FakeServer.BREAK]  # closes the open connection
        self.use_folder(again, token="another")
        self.assertEqual(sweep.get()["id"], "s1")
        self.assertEqual(again.asked[0].headers["Authorization"], "Bearer another")


class Errors(Client):
    FAULT = {"pointer": "/parameters/a~1b/values/2", "line": 3, "column": 5, "message": "is there twice"}

    def refused(self, call):
        with self.assertRaises(Error) as caught:
            call()
        return caught.exception

    def test_have_the_message_of_the_server(self):
        error = self.refused(self.sweep(problem(409, "it has ended")).pause)
        self.assertEqual((str(error), error.status, error.errors), ("it has ended", 409, []))

    def test_name_the_place_in_the_sweep_file(self):
        file = self.folder / "sweep.yaml"
        file.write_text("parameters: {}\n")
        server = self.server(problem(422, "2 things are wrong", [self.FAULT, {**self.FAULT, "pointer": ""}]))
        error = self.refused(lambda: server.create(file))
        self.assertEqual(str(error), f"{file}:3:5: parameters.a/b.values[2]: is there twice\n"
                                     f"{file}:3:5: is there twice")
        self.assertEqual(error.errors[0]["line"], 3)

    def test_name_only_the_key_in_a_sweep_that_is_a_dict(self):
        server = self.server(problem(422, "line:3:5: …", [self.FAULT]))
        error = self.refused(lambda: server.create({"parameters": {}}))
        self.assertEqual(str(error), "parameters.a/b.values[2]: is there twice")

    def test_name_the_source_of_a_token(self):
        error = self.refused(self.server(problem(401, "send it as Authorization")).sweeps)
        self.assertEqual(error.status, 401)
        self.assertRegex(str(error), r"\btoken\b.*ATTUNE_TOKEN")

    def test_for_a_server_that_is_not_attune(self):
        error = self.refused(self.server((502, b"<html>")).sweeps)
        self.assertEqual(error.status, 502)
        self.assertIn("502", str(error))
        error = self.refused(self.server((200, b"<html>")).sweeps)
        self.assertEqual(error.status, 200)
        self.assertIn("Attune server", str(error))


class Creating(Client):
    def create(self, *args, **options):
        server = self.server((201, SWEEP))
        self.fake.asked.clear()
        self.assertEqual(server.create(*args, **options).id, "s1")
        request = self.fake.asked[0]
        path, _, query = request.path.partition("?")
        self.assertEqual((request.method, path), ("POST", "/api/v1/sweeps"))
        return request.body.decode(), dict(_rest.urllib.parse.parse_qsl(query))

    def test_from_a_file(self):
        file = self.folder / "sweep.yaml"
        file.write_text("name: ä\n")
        for path in (file, str(file)):
            self.assertEqual(self.create(path),
                             ("name: ä\n", {"directory": str(self.folder), "file": "sweep.yaml"}))
        self.assertEqual(self.create(file, directory="/data")[1]["directory"], "/data")

    def test_from_text(self):
        for text in ("name: test\nmetric: {}\n", " {name: test}"):
            self.assertEqual(self.create(text), (text, {"directory": os.getcwd()}))

    def test_from_a_dict(self):
        text, query = self.create({"command": [pathlib.Path("/bin/true")]}, directory=self.folder)
        self.assertEqual(json.loads(text), {"command": ["/bin/true"]})
        self.assertEqual(query, {"directory": str(self.folder)})
        with self.assertRaises(TypeError):
            self.server().create({"name": object()})


class Reading(Client):
    def test_metrics_are_floats_and_parameters_keep_their_types(self):
        best = {"trial": 1, "config": {"schedule": "inf"}, "metrics": {"a": 1, "b": "nan"}}
        sweep = self.sweep({**SWEEP, "best": best, "pareto_front": [best]},
                           {"trials": [{"number": 0, "metrics": {"a": "-inf"}, "config": {"x": "nan"}}],
                            "next_page_token": ""},
                           {"trials": [{"number": 0, "steps": [1, 2, 3], "values": [0.5, "inf", "nan"]}],
                            "next_page_token": "t"},
                           {"trials": [{"number": 1, "steps": [1], "values": [2]}], "next_page_token": ""})
        self.assertTrue(math.isnan(sweep.best()["metrics"]["b"]))
        [trial] = sweep.trials()
        self.assertEqual((trial["metrics"], trial["config"]), ({"a": -math.inf}, {"x": "nan"}))
        curve, later = sweep.curves("a b")
        self.assertEqual(later["values"], [2.0])
        self.assertEqual(curve["values"][:2], [0.5, math.inf])
        self.assertTrue(math.isnan(curve["values"][2]))
        self.assertEqual(self.asked()[-2:], ["GET /api/v1/sweeps/s1/curves?metric=a+b",
                                              "GET /api/v1/sweeps/s1/curves?metric=a+b&page_token=t"])

    def test_reads_all_pages_of_a_list(self):
        server = self.server({"sweeps": [{**SWEEP, "id": "s2"}], "next_page_token": "x/1"},
                             {"sweeps": [SWEEP], "next_page_token": ""})
        self.assertEqual([sweep.id for sweep in server.sweeps()], ["s2", "s1"])
        self.assertEqual(self.asked()[1], "GET /api/v1/sweeps?page_token=x%2F1")

    def test_trials_are_sorted_and_filtered_by_the_server(self):
        sweep = self.sweep({"trials": [], "next_page_token": ""}, {"trials": [], "next_page_token": ""})
        self.assertEqual(sweep.trials(filter="lr<0.01 a OR b", order_by="-config.lr"), [])
        self.assertEqual(sweep.trials(), [])
        self.assertEqual(self.asked()[-2:],
                         ["GET /api/v1/sweeps/s1/trials?filter=lr%3C0.01+a+OR+b&order_by=-config.lr",
                          "GET /api/v1/sweeps/s1/trials"])

    def test_a_sweep_without_a_result_has_no_best(self):
        self.assertIsNone(self.sweep(SWEEP).best())

    def test_wait_returns_the_ended_sweep(self):
        sweep = self.sweep(SWEEP, {**SWEEP, "state": "paused"}, {**SWEEP, "state": "stopped"})
        self.assertEqual(sweep.wait()["state"], "stopped")

    def test_wait_raises_if_the_sweep_has_failed(self):
        sweep = self.sweep({**SWEEP, "state": "failed", "reason": "3 trials failed"},
                           {"trials": [], "next_page_token": ""})
        with self.assertRaisesRegex(Error, r"\bs1\b.*\bfailed: 3 trials failed"):
            sweep.wait()

    def test_wait_raises_with_the_newest_failure(self):
        trials = [{"number": number, "state": state, "ended": f"2026-11-21T10:00:0{number}.000000Z", "metrics": {}}
                  for number, state in enumerate(("failed", "failed", "stopped"))]
        attempt = {"failure": "rank 1: ValueError: too green\nTraceback\n  boom"}
        sweep = self.sweep({**SWEEP, "state": "failed", "reason": "every trial failed"},
                           {"trials": trials, "next_page_token": ""},
                           {**trials[1], "history": [], "attempts": [{"failure": "before"}, attempt]})
        with self.assertRaises(Error) as raised:
            sweep.wait()
        self.assertTrue(str(raised.exception).endswith(
            "failed: every trial failed\ntrial 1: rank 1: ValueError: too green\nTraceback\n  boom"), raised.exception)
        self.assertIn("GET /api/v1/sweeps/s1/trials/1", self.asked())

    def test_wait_raises_timeout_error(self):
        with self.assertRaisesRegex(TimeoutError, r"\bs1\b.*\b0 s"):
            self.sweep(SWEEP).wait(timeout=0)


class Annotating(Client):
    def sent(self, **changes):
        sweep = self.sweep({"effect": "its note is saved"})
        self.assertEqual(sweep.annotate(**changes), "its note is saved")
        asked = self.fake.asked.pop()
        return asked.path, json.loads(asked.body)

    def test_sends_only_what_is_given(self):
        self.assertEqual(self.sent(note=""), ("/api/v1/sweeps/s1:annotate", {"note": ""}))
        self.assertEqual(self.sent(tags=()), ("/api/v1/sweeps/s1:annotate", {"tags": []}))
        self.assertEqual(self.sent(trial=0, add_tags=["best"], remove_tags=("slow",)),
                         ("/api/v1/sweeps/s1/trials/0:annotate", {"add_tags": ["best"], "remove_tags": ["slow"]}))

    def test_a_refusal_has_the_place_of_the_fault(self):
        fault = {"pointer": "/add_tags/0", "line": 1, "column": 15, "message": "\"a b\" is not a tag"}
        with self.assertRaises(Error) as refused:
            self.sweep(problem(422, "\"a b\" is not a tag", [fault])).annotate(add_tags=["a b"])
        self.assertEqual((refused.exception.status, refused.exception.errors), (422, [fault]))


class AskAndTell(Client):
    def test_asking_waits_for_a_trial(self):
        trial = self.sweep(NONE_NOW, {**NONE_NOW, "state": "paused"}, OFFER).ask(lease="10m")
        self.assertEqual((trial.number, trial.milestone, trial.max_step, trial.step), (0, 1, 4, 0))
        self.assertEqual(self.told(), [{"lease": "10m"}] * 3)

    def test_asking_with_wait_false_returns_at_once(self):
        self.assertIsNone(self.sweep(NONE_NOW).ask(wait=False))

    def test_asking_returns_none_when_the_sweep_has_ended(self):
        self.assertIsNone(self.sweep(OVER).ask())

    def test_a_trial_that_is_offered_again_has_its_last_step(self):
        trial = self.sweep({**OFFER, "attempt": 2}, {"step": 3}).ask()
        self.assertEqual((trial.step, self.asked()[1]), (3, "GET /api/v1/sweeps/s1/trials/0"))

    def test_reports_until_the_verdict(self):
        trial = self.trial(CONTINUE, STOP)
        self.assertTrue(trial.report(1, {"loss": 0.5}))
        self.assertEqual((trial.milestone, trial.step), (3, 1))
        self.assertFalse(trial.report(3, {"loss": 0.4}))
        self.assertEqual((trial.verdict, trial.reason), ("stop", "rank 3 of 3"))
        for told, step in zip(self.told(), (1, 3)):
            self.assertGreater(told.pop("seconds"), 0)
            self.assertEqual((told["epoch"], told["step"]), (7, step))
        trial.complete()
        trial.fail("too late")
        self.assertEqual(len(self.fake.asked), 2)

    def test_sends_nan_and_infinity_as_text(self):
        trial = self.trial(CONTINUE)
        trial.report(None, {"a": math.nan, "b": math.inf, "c": -math.inf})
        [told] = self.told()
        self.assertEqual(told["metrics"], {"a": "nan", "b": "inf", "c": "-inf"})
        self.assertNotIn("step", told)

    def test_accepts_a_step_of_any_integer_type(self):
        whole = type("Whole", (), {"__index__": lambda self: 3})
        trial = self.trial(CONTINUE)
        trial.report(whole(), {"loss": 1})
        self.assertEqual(self.told()[0]["step"], 3)

    def test_does_not_send_wrong_metrics(self):
        with self.assertRaisesRegex(ValueError, "metric 'loss' is 'low'"):
            self.trial().report(1, {"loss": "low"})

    def test_sends_the_end_once(self):
        trial = self.trial((204, b""), (204, b""))
        self.assertTrue(trial.progress())
        trial.complete(), trial.complete()
        self.assertEqual(self.told(), [{"epoch": 7, "state": "running"}, {"epoch": 7, "state": "completed"}])

    def test_limits_the_length_of_a_failure(self):
        trial = self.trial((204, b""))
        trial.fail("\udcff" + "x" * 10_000)
        message = self.told()[0]["message"]
        self.assertEqual((message[:2], len(message)), ("?x", 4096))

    def test_a_killed_trial_does_not_continue(self):
        trial = self.trial(problem(409, "no such epoch"), {"state": "killed", "reason": "killed on request"})
        self.assertFalse(trial.report(1, {"loss": 0.5}))
        self.assertEqual(trial.reason, "killed on request")

    def test_a_trial_that_another_program_has_is_an_error(self):
        trial = self.trial(problem(409, "the lease has run out"), {"state": "running", "reason": ""})
        with self.assertRaises(Error) as raised:
            trial.complete()
        self.assertEqual(raised.exception.status, 409)


class Run(Client):
    def test_reports_what_the_objective_returns(self):
        best = {"trial": 0, "metrics": {}}
        for result, metrics in ((0.5, {"loss": 0.5}), ({"a": 1}, {"a": 1.0})):
            ended = {**SWEEP, "state": "completed", "best": best}
            sweep = self.sweep(OFFER, CONTINUE, (204, b""), OVER, ended, ended)
            self.assertEqual(sweep.run(lambda trial: result), best)
            _, report, end, _ = self.told()
            self.assertEqual((report["step"], report["metrics"], end["state"]), (1, metrics, "completed"))

    def test_sends_no_step_if_the_sweep_has_time_attr(self):
        ended = {**SWEEP, "state": "completed"}
        sweep = self.server({**SWEEP, "time_attr": "n"}, OFFER, STOP, OVER, ended, ended).sweep("s1")
        sweep.run(lambda trial: {"loss": 1, "n": 40})
        self.assertNotIn("step", self.told()[1])

    def test_an_objective_may_report_itself(self):
        ended = {**SWEEP, "state": "completed"}
        sweep = self.sweep(OFFER, CONTINUE, STOP, OVER, ended, ended)
        sweep.run(lambda trial: [trial.report(step, {"loss": 1}) for step in (1, 2)] and None)
        self.assertEqual(len(self.told()), 4)

    def test_an_exception_of_the_objective_is_the_failure_of_its_trial(self):
        ended = {**SWEEP, "state": "completed"}
        sweep = self.sweep(OFFER, (204, b""), OVER, ended, ended)
        sweep.run(lambda trial: trial.config["no such"])
        told = self.told()[1]
        self.assertEqual(told["state"], "failed")
        self.assertRegex(told["message"], r"(?s)^KeyError: 'no such'\nTraceback.*no such")

    def test_an_objective_that_ends_the_program_gives_its_trial_back(self):
        for end in (KeyboardInterrupt, SystemExit):
            sweep = self.sweep(OFFER, (204, b""))
            with self.assertRaises(end):
                sweep.run(mock.Mock(side_effect=end))
            self.assertEqual(self.told()[1:], [{"epoch": 7, "state": "released"}])

    def test_a_program_ends_also_if_its_trial_cannot_be_given_back(self):
        sweep = self.sweep(OFFER, problem(403, "this token may only read"))
        with self.assertRaises(KeyboardInterrupt):
            sweep.run(mock.Mock(side_effect=KeyboardInterrupt))

    def test_an_interrupted_program_gives_the_trials_of_all_workers_back(self):
        offers, all_told = [OFFER, {**OFFER, "trial": 1}], threading.Event()
        all_run = threading.Barrier(2, timeout=PATIENCE_S)

        def answer(path):
            if path.endswith("ask"):
                return offers.pop() if offers else NONE_NOW
            if sum("tell" in each for each in self.asked()) == 2:
                all_told.set()
            return 204, b""

        def objective(trial):
            if all_run.wait() == 0:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            all_told.wait(PATIENCE_S)

        sweep = self.sweep()
        self.fake.answers = answer
        with self.assertRaises(KeyboardInterrupt):
            sweep.run(objective, workers=2)
        released = [each.path for each in self.fake.asked if b"released" in each.body]
        self.assertEqual(sorted(released), [f"/api/v1/sweeps/s1/trials/{number}:tell" for number in (0, 1)])

    def test_workers_run_at_the_same_time(self):
        both = threading.Barrier(2, timeout=PATIENCE_S)
        offers = [OFFER, {**OFFER, "trial": 1}]
        sweep = self.sweep()
        self.fake.answers = lambda path: (offers.pop() if offers else OVER) if path.endswith("ask") else (
            (204, b"") if path.endswith("tell") else {**SWEEP, "state": "completed"})
        sweep.run(lambda trial: [both.wait()] and None, workers=2)
        self.assertEqual(sorted(path for path in self.asked() if "tell" in path),
                         [f"POST /api/v1/sweeps/s1/trials/{number}:tell" for number in (0, 1)])

    def test_an_error_of_one_worker_ends_the_others(self):
        refusals = [problem(404, "there is no sweep s1")]
        sweep = self.sweep()
        self.fake.answers = lambda path: refusals.pop() if refusals else NONE_NOW
        with self.assertRaises(Error) as raised:
            sweep.run(lambda trial: None, workers=2)
        self.assertEqual(raised.exception.status, 404)


if __name__ == "__main__":
    unittest.main()
