"""`attune.client` with a real server: running sweeps, ask and tell, and errors."""

import concurrent.futures
import datetime
import os
import pathlib
import re
import subprocess
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import EndToEnd, PATIENCE_S, ROOT, sweep  # noqa: E402

sys.path[:0] = [str(ROOT / "clients/python"), str(ROOT / "scripts")]

import markdown_pages as markdown  # noqa: E402
import attune.tensorboard  # noqa: E402
from attune.client import Error, Server  # noqa: E402

ASKED = {"name": "asked", "metric": {"name": "loss", "mode": "min"},
         "parameters": {"x": {"min": 0.0, "max": 1.0}}, "searcher": {"name": "random", "seed": 1},
         "scheduler": {"name": "asha", "min": 1, "max": 4, "reduction_factor": 2}, "stop": {"max_trials": 8}}


def loss(trial, step):
    return (trial.config["x"] - 0.3)**2 + 1 / step


class Client(EndToEnd):
    def serve(self, *args):
        process = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0, *args)
        process.await_stderr(r"http://")
        return process

    def server(self, *args):
        self.serve(*args)
        return Server(data_dir=self.data)

    def aside(self, work, *args):
        """Runs a function on a thread and returns its future."""
        pool = concurrent.futures.ThreadPoolExecutor(1)
        self.addCleanup(pool.shutdown, wait=False)
        return pool.submit(work, *args)


class Running(Client):
    def test_creates_a_sweep_waits_for_it_and_reads_its_results(self):
        created = self.server("--with-executor").create(self.write(sweep()))
        self.assertEqual(created.wait(PATIENCE_S)["state"], "completed")
        best, trials, curves = created.best(), created.trials(), created.curves()
        self.assertEqual([trial["number"] for trial in trials], list(range(8)))
        self.assertEqual(best["value"], max(trial["best"] for trial in trials))
        self.assertEqual(best["config"], trials[best["trial"]]["config"])
        self.assertEqual([len(curve["values"]) for curve in curves], [trial["step"] for trial in trials])
        self.assertEqual([each.id for each in Server(data_dir=self.data).sweeps()], ["s1"])

    def test_fetches_checkpoints_of_a_trial(self):
        created = self.server("--with-executor").create(sweep(checkpoint={"every": 1, "keep_last": 2},
                                                              stop={"max_trials": 1}))
        created.wait(PATIENCE_S)
        trial = created.trial(0)
        newest, best = trial.checkpoint(), trial.checkpoint(best=True)
        self.assertEqual((newest.step, newest.name), (4, "s1/0/1-4"))
        self.assertEqual(best.step, created.best()["checkpoint_step"])
        for checkpoint in newest, best:
            [kept] = [each["path"] for each in trial["checkpoints"] if each["step"] == checkpoint.step]
            copy = checkpoint.to_directory(self.folder / checkpoint.name)
            self.assertEqual(subprocess.run(["diff", "-r", copy, kept]).returncode, 0)
        with self.assertRaisesRegex(Error, r"\bs1/0\b.*\bstep 1\b"):
            trial.checkpoint(step=1)

    def test_waiting_survives_the_kill_of_the_server(self):
        gate = self.close_gate(2)
        serve = self.serve("--with-executor")
        created = Server(data_dir=self.data).create(sweep(stop={"max_trials": 1}))
        self.await_report(trial=0, step=1)
        waiting = self.aside(created.wait)
        serve.kill()
        self.serve("--with-executor")  # at another port
        gate.close()
        self.assertEqual(waiting.result(PATIENCE_S)["state"], "completed")

    def test_steers_a_sweep(self):
        created = self.server().create(sweep())
        self.assertTrue(created.pause())
        self.assertEqual(created.get()["state"], "paused")
        self.assertIn("continues", created.resume())
        self.assertTrue(created.stop())
        self.assertEqual(created.wait(PATIENCE_S)["state"], "stopped")

    def test_deletes_only_ended_sweeps(self):
        server = self.server("--with-executor")
        created = server.create(sweep())
        with self.assertRaisesRegex(Error, "attune sweep kill s1"):
            created.delete()
        created.kill()
        with self.assertRaisesRegex(Error, r"\bs1\b.*\bkilled\b"):
            created.wait(PATIENCE_S)
        created.annotate(note="two\nlines", add_tags=["slow"])  # also after the end
        self.assertEqual((created.get()["note"], created.get()["tags"]), ("two\nlines", ["slow"]))
        created.delete(delay=600)
        self.assertLessEqual(created.get()["deletion"]["seconds_left"], 600)
        self.assertIn("kept", created.undelete())
        self.assertNotIn("deletion", created.get())
        created.delete()
        self.assertEqual(server.sweeps(), [])
        with self.assertRaisesRegex(Error, "already deleted"):
            created.undelete()
        created.delete()  # the same as a retry after a lost answer

    def test_a_failed_sweep_raises_its_reason(self):
        created = self.server("--with-executor").create(
            sweep(command=["/bin/false"], stop={"max_trials": 1}, failure={"max_restarts": 0}))
        with self.assertRaisesRegex(Error, r"\bs1\b.*\bfailed: "):
            created.wait(PATIENCE_S)

    def test_errors_name_the_fault(self):
        server = self.server()
        with self.assertRaisesRegex(Error, "^<text>:2:25: metric.mode: "):
            server.create("parameters: {}\nmetric: {name: a, mode: most}\nstop: {max_trials: 1}\n")
        with self.assertRaisesRegex(Error, "^parameters.x.max: "):
            server.create(sweep(parameters={"x": {"min": 1.0, "max": 0.0}}))
        with self.assertRaisesRegex(Error, r"\btoken\b.*ATTUNE_TOKEN"):
            Server(data_dir=self.data, token="wrong").sweeps()
        with self.assertRaisesRegex(Error, "attune serve"):
            Server(data_dir=self.folder)


class Https(Client):
    def setUp(self):
        super().setUp()
        self.certificate = self.folder / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", self.folder / "key.pem", "-out", self.certificate, "-days", "2",
                        "-subj", "/CN=attune", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)

    def test_clients_need_to_trust_the_certificate(self):
        files = ["--tls-cert", self.certificate, "--tls-key", self.folder / "key.pem"]
        serve = self.serve("--https-host", "127.0.0.1", "--https-port", 0, *files)
        url = serve.await_stderr(r"(https://localhost:\d+)").group(1)
        token = (self.data / "token").read_text().strip()
        sweeps = ["sweep", "list", "--server", url, "--token-file", self.data / "token"]
        code, _, err = self.attune(*sweeps)
        self.assertEqual(code, 1)
        self.assertIn("SSL_CERT_FILE", err)
        with self.assertRaisesRegex(Error, "CERTIFICATE_VERIFY_FAILED"):
            Server(url, token=token).sweeps()
        with mock.patch.dict(os.environ, SSL_CERT_FILE=str(self.certificate)):
            self.environment["SSL_CERT_FILE"] = str(self.certificate)
            self.assertEqual(self.attune(*sweeps)[0], 0)
            created = Server(url, token=token).create(sweep(stop={"max_trials": 1}))
            self.assertEqual(created.get()["state"], "running")

    def test_refuses_incomplete_options(self):
        code, _, err = self.attune("serve", "--data-dir", self.data, "--tls-cert", self.certificate)
        self.assertEqual(code, 2)
        self.assertIn("--https-host, --tls-cert, --tls-key", err)


class Tokens(Client):
    def test_each_person_has_a_token(self):
        self.serve()
        secrets = {}
        for name, role in (("ada", "admin"), ("bob", "viewer")):
            code, secret, _ = self.attune("token", "create", name, "--role", role, "--data-dir", self.data)
            self.assertEqual(code, 0)
            secrets[name] = secret.strip()
        self.assertIn("bob", self.attune("token", "list", "--data-dir", self.data)[1])
        ada, bob = (Server(data_dir=self.data, token=secret) for secret in secrets.values())
        created = ada.create(sweep())
        self.assertEqual(created.get()["owner"], "ada")
        self.assertEqual([each.id for each in bob.sweeps()], ["s1"])
        with self.assertRaisesRegex(Error, r"\bbob\b.*\bviewer\b"):
            bob.sweep("s1").kill()
        self.assertEqual(self.attune("token", "rm", "bob", "--data-dir", self.data)[0], 0)
        with self.assertRaisesRegex(Error, r"\btoken\b.*ATTUNE_TOKEN"):
            bob.sweeps()


class Recorded:
    """Replaces tensorboardX, which tests do not require. It records the content of the files."""
    __module__ = "tensorboardX"

    def __init__(self, folder, filename_suffix):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if list(folder.iterdir()):
            raise AssertionError("an earlier file is there")
        (folder / ("events.out.tfevents.1" + filename_suffix)).touch()
        self.scalars, self.config, self.best, self.closed = [], None, None, False
        Recorded.runs[folder] = self

    def add_scalar(self, name, value, step, time):
        self.scalars.append((name, step, value))
        assert abs(time - datetime.datetime.now().timestamp()) < 2 * PATIENCE_S

    def add_hparams(self, config, best, name):
        assert name == "."
        self.config, self.best = config, best

    def flush(self):
        pass

    def close(self):
        self.closed = True


class TensorBoard(Client):
    def setUp(self):
        super().setUp()
        library = types.ModuleType("tensorboardX")
        library.SummaryWriter, Recorded.runs = Recorded, {}
        patch = mock.patch.dict(sys.modules, {"torch.utils.tensorboard": None, "tensorboardX": library})
        patch.start()
        self.addCleanup(patch.stop)

    def check(self, answer, created):
        trials = created.trials()
        self.assertEqual(answer["state"], "completed")
        self.assertEqual({folder.relative_to(self.folder / "runs") for folder in Recorded.runs},
                         {pathlib.Path(f"s1/trial-{number}") for number in range(8)})
        for trial in trials:
            run = Recorded.runs[self.folder / "runs" / "s1" / f"trial-{trial['number']}"]
            history = created.trial(trial["number"])["history"]
            reported = [("score", each["step"], each["metrics"]["score"]) for each in history]
            logged = [("logged/halfway", each["step"], each["metrics"]["score"] / 2) for each in history]
            self.assertEqual(sorted(run.scalars), logged + reported)
            self.assertEqual((run.config, run.best), (trial["config"], {"best/score": trial["best"]}))
            self.assertTrue(run.closed)

    def test_each_trial_is_a_run_that_grows_with_the_sweep(self):
        gate = self.close_gate(2)
        created = self.server("--with-executor").create(
            sweep(parameters={"x": {"min": 0.0, "max": 1.0}, "mode": {"value": "logs"}}))
        self.await_report(trial=0, step=1)
        begun = attune.tensorboard.write(created, self.folder / "runs", follow=False)
        self.assertEqual(begun["state"], "running")
        first = Recorded.runs[self.folder / "runs/s1/trial-0"]
        self.assertEqual(([(name, step) for name, step, _ in first.scalars], first.config),
                         ([("score", 1), ("logged/halfway", 1)], None))
        writing = self.aside(attune.tensorboard.write, created, self.folder / "runs")
        gate.close()
        self.check(writing.result(PATIENCE_S), created)

    def test_names_the_library_if_it_is_missing(self):
        created = self.server("--with-executor").create(self.write(sweep(stop={"max_trials": 1})))
        created.wait(PATIENCE_S)
        with mock.patch.dict(sys.modules, {"tensorboardX": None}):
            with self.assertRaisesRegex(ImportError, "pip install tensorboardX"):
                attune.tensorboard.write(created, self.folder / "runs")


class AskAndTell(Client):
    def test_a_loop_asks_and_tells_until_the_sweep_has_ended(self):
        asked = self.server().create(ASKED)
        verdicts, reported = [], []
        while trial := asked.ask():
            for step in range(1, trial.max_step + 1):
                reported.append(loss(trial, step))
                if not trial.report(step, {"loss": reported[-1], "other": float("nan")}):
                    break
            verdicts.append(trial.verdict)
            trial.complete()
        self.assertEqual(verdicts, ["stop"] * 8)
        self.assertEqual(asked.best()["value"], min(reported))
        states = asked.get()["trials"]
        self.assertEqual(states["stopped"] + states["completed"], 8)
        self.assertGreater(states["stopped"], 0)
        self.assertTrue(all(value != value for curve in asked.curves("other") for value in curve["values"]))

    def test_programs_share_a_sweep(self):
        self.server().create({**ASKED, "scheduler": {"name": "fifo"}})
        others = [Server(data_dir=self.data).sweep("s1") for _ in range(2)]
        runs = [self.aside(each.run, lambda trial: loss(trial, 4), 2) for each in others]
        best, again = [run.result(PATIENCE_S) for run in runs]
        self.assertEqual(best, again)
        self.assertEqual(others[0].get()["trials"]["completed"], 8)

    def test_a_paused_trial_is_offered_again_after_its_last_step(self):
        asked = self.server().create({**ASKED, "scheduler": {**ASKED["scheduler"], "mode": "promote"}})
        began = {}
        while trial := asked.ask():
            began.setdefault(trial.number, []).append(trial.step)
            while trial.report(trial.step + 1, {"loss": loss(trial, trial.step + 1)}):
                pass
        self.assertTrue(any(len(steps) > 1 for steps in began.values()), began)
        self.assertTrue(all(steps == sorted(set(steps)) for steps in began.values()), began)
        self.check_histories_are_whole()

    def test_a_trial_that_fails_is_offered_again(self):
        asked = self.server().create({**ASKED, "stop": {"max_trials": 1},
                                      "failure": {"max_restarts": 1, "backoff": "1s"}})
        asked.ask().fail("out of memory")
        again = asked.ask()
        self.assertEqual((again.number, again.attempt), (0, 2))
        again.report(4, {"loss": 1})
        self.assertEqual(asked.wait(PATIENCE_S)["state"], "completed")

    def test_an_objective_that_always_raises_fails_the_sweep_with_its_error(self):
        asked = self.server().create({**ASKED, "failure": {"max_restarts": 0}})
        with self.assertRaisesRegex(Error, "(?s)failed.*KeyError: 'lr'"):
            asked.run(lambda trial: trial.config["lr"])

    def test_a_killed_sweep_ends_its_asked_trial(self):
        asked = self.server().create(ASKED)
        trial = asked.ask()
        asked.kill()
        self.assertFalse(trial.report(1, {"loss": 1}))
        self.assertIn("killed", trial.reason)
        self.assertIsNone(asked.ask())


class Page(Client):
    def test_blocks_of_the_page_run(self):
        self.serve("--with-executor")
        page = ROOT / "docs/reference/python.md"
        wait, fetch, ask, run = [block for block in markdown.code(page.read_text(), "python")
                                 if re.search(r"Server\(\)|sweep\.(trial|run)\(", block)]
        self.write(sweep())
        names = {"train": lambda lr, step: lr / step}
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        (self.folder / "attune-data").symlink_to(self.data)
        with mock.patch("builtins.print") as printed:
            for block in (wait, fetch, ask, run):
                exec(block, names)  # a block of our documentation
        self.assertEqual(names["best"]["value"], names["sweep"].best()["value"])
        self.assertEqual(len(names["sweep"].trials()), 20)
        waited, fetched = printed.call_args_list
        self.assertTrue(os.path.isdir(waited.args[2]))
        self.assertIn("manifest.json", fetched.args[0])
        self.assertIn(b"<html", names["report"].read_bytes())


if __name__ == "__main__":
    unittest.main()
