"""Results of `attune.client`: fetched checkpoints, tables and drawings."""

import copy
import hashlib
import importlib.util
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import types
import unittest
import urllib.parse
import xml.etree.ElementTree
from unittest import mock

from fake_server import SWEEP, Client, problem

from attune import CheckpointError, _fetch, _progress
from attune.client import Curves, Error, Trials

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "clients/python"
PYTHON_WITH_TORCH = str(ROOT / "scripts/python_torch.py")
MARKUP = "<b>&\"'"


def trial(number=0, **members):
    return {"sweep": "s1", "number": number, "state": "completed", "step": 3, "config": {"lr": 0.1},
            "metrics": {"loss": 0.5}, "best": 0.5, "seconds": 2.0, "created": "2026-11-21T10:00:00.000000Z",
            "ended": None, "history": [], "checkpoints": [], **members}


def row(attempt=1, step=3, dropped=None, digest="", **more):
    """Returns a checkpoint in the form in which a trial lists it."""
    return {"attempt": attempt, "step": step, "digest": digest, "bytes": 7, "dropped": dropped, **more}


class Fetching(Client):
    def setUp(self):
        super().setUp()
        self.files = {"model.pt": b"weights", "deep/empty": b""}
        self.out = self.folder / "out"

    def manifest(self, **changes):
        listed = {name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                  for name, content in self.files.items()}
        return json.dumps({"format": "attune-checkpoint/1", "step": 3, "files": listed, **changes}).encode()

    def checkpoint(self, piece_bytes=1000, **manifest):
        """Returns a checkpoint of a server whose answers have at most `piece_bytes` bytes."""
        text = self.files["manifest.json"] = self.manifest(**manifest)
        listed = row(digest="sha256:" + hashlib.sha256(text).hexdigest())
        checkpoint = self.sweep(trial(checkpoints=[listed])).trial(0).checkpoint()

        def answer(path):
            path, _, query = path.partition("?")
            self.assertEqual(path, "/api/v1/sweeps/s1/trials/0/checkpoints/1-3/content")
            query = dict(urllib.parse.parse_qsl(query))
            content, offset = self.files[query["file"]], int(query["offset"])
            return 200, content[offset:offset + piece_bytes], {"X-File-Size": str(len(content))}

        self.fake.answers = answer
        return checkpoint

    def test_writes_the_files_into_the_folder(self):
        checkpoint = self.checkpoint(piece_bytes=3)
        self.assertEqual((checkpoint.name, checkpoint.step, checkpoint.attempt), ("s1/0/1-3", 3, 1))
        self.assertEqual(checkpoint.to_directory(self.out / "deeper"), self.out / "deeper")
        found = {path.relative_to(self.out / "deeper").as_posix(): path.read_bytes()
                 for path in self.out.rglob("*") if path.is_file()}
        self.assertEqual(found, self.files)
        self.assertEqual([path.name for path in self.out.iterdir()], ["deeper"])

    def test_does_not_fetch_a_checkpoint_twice(self):
        checkpoint = self.checkpoint()
        self.out.mkdir()  # an empty folder is allowed
        checkpoint.to_directory(self.out)
        self.fake.asked.clear()
        self.assertEqual(checkpoint.to_directory(str(self.out)), self.out)
        self.assertEqual(self.fake.asked, [])

    def test_does_not_change_a_folder_with_other_content(self):
        checkpoint = self.checkpoint()
        self.out.mkdir()
        (self.out / "mine").touch()
        for path in self.out, self.out / "mine":
            with self.assertRaisesRegex(FileExistsError, f"{path}: .*s1/0/1-3"):
                checkpoint.to_directory(path)
        self.assertEqual([path.name for path in self.out.iterdir()], ["mine"])

    def fails(self, checkpoint, kind, message):
        with self.assertRaisesRegex(kind, message):
            checkpoint.to_directory(self.out)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_writes_a_report_into_a_new_file(self):
        sweep = self.sweep((200, b"<title>s1</title>"), (200, b"newer"))
        path = self.folder / "reports" / "s1.html"
        self.assertEqual(sweep.to_html(path), path)
        self.assertEqual(self.asked(), ["GET /api/v1/sweeps/s1/report"])
        with self.assertRaisesRegex(FileExistsError, str(path)):
            sweep.to_html(str(path))
        self.assertEqual(path.read_bytes(), b"<title>s1</title>")
        self.assertEqual(list(path.parent.iterdir()), [path])

    def test_refuses_a_damaged_file(self):
        checkpoint = self.checkpoint()
        self.files["model.pt"] = b"weighty"
        self.fails(checkpoint, CheckpointError, r"/model\.pt: ")
        self.files["manifest.json"] += b" "
        self.fails(checkpoint, CheckpointError, "sha256:")

    def test_refuses_a_file_outside_of_the_folder(self):
        self.files["../evil"] = b""
        self.fails(self.checkpoint(), CheckpointError, r"'\.\./evil'")

    def test_refuses_another_format_or_step(self):
        self.fails(self.checkpoint(format="attune-checkpoint/9"), CheckpointError, "attune-checkpoint/9")
        del self.files["manifest.json"]
        self.fake.answers = []
        self.fails(self.checkpoint(step=4), CheckpointError, "step 3")

    def test_a_server_that_refuses_or_ends_a_file_early_is_an_error(self):
        checkpoint = self.checkpoint()
        self.fake.answers = [problem(404, "it was dropped"), (200, b"", {"X-File-Size": "5"}), (200, b"no server")]
        self.fails(checkpoint, Error, "it was dropped")
        self.fails(checkpoint, Error, r"s1/0/1-3: .*\b0 of 5 bytes of manifest\.json")
        self.fails(checkpoint, Error, "Attune server")

    def test_pieces_are_as_large_as_the_server_allows(self):
        self.checkpoint().to_directory(self.out)
        self.assertIn(f"limit={_fetch._PIECE_BYTES}", self.fake.asked[-1].path)


class Choosing(Client):
    def choose(self, kept, listed=(), **choice):
        """Returns (attempt, step) of the chosen checkpoint. `listed` has (trial, attempt, step, best) of the sweep's."""
        listed = [row(attempt, step, trial=number, best=best) for number, attempt, step, best in listed]
        answers = [trial(checkpoints=[row(*each) for each in kept])]
        if choice.get("best"):
            answers.append({"checkpoints": listed, "next_page_token": ""})
        chosen = self.sweep(*answers).trial(0).checkpoint(**choice)
        return chosen.attempt, chosen.step

    def test_the_newest_that_exists(self):
        self.assertEqual(self.choose([(1, 9), (2, 6), (1, 3), (2, 9, "2026-11-21")]), (2, 6))

    def test_the_newest_of_a_step(self):
        self.assertEqual(self.choose([(1, 3), (2, 3), (2, 6)], step=3), (2, 3))

    def test_the_checkpoint_of_the_best_report(self):
        listed = [(0, 1, 3, 0.1), (0, 1, 6, None), (1, 1, 9, 0.05)]
        self.assertEqual(self.choose([(1, 3), (1, 6)], listed, best=True), (1, 3))

    def test_a_missing_checkpoint_is_an_error_that_names_the_steps_of_others(self):
        for arguments, message in ((([],), "s1/0"),
                                   (([(1, 3), (1, 6)],), r"\bstep 4\b.*\b3, 6$")):
            with self.assertRaisesRegex(Error, message):
                self.choose(*arguments, step=4 if arguments[0] else None)
        with self.assertRaisesRegex(Error, r"s1/0 .*\bbest\b.*\b3$"):
            self.choose([(1, 3)], best=True)
        with self.assertRaisesRegex(ValueError, "step and best"):
            self.choose([(1, 3)], step=3, best=True)


class Lists(Client):
    def page(self, **lists):
        return {**lists, "next_page_token": ""}

    def trials(self, *rows):
        return self.sweep(self.page(trials=list(rows))).trials()

    def curves(self, *rows):
        return self.sweep(self.page(trials=list(rows))).curves()

    def test_are_lists_and_dicts_of_json(self):
        trials = self.trials(trial(0), trial(1))
        self.assertEqual(trials, [trial(0), trial(1)])
        self.assertEqual(json.loads(json.dumps(trials)), trials)
        detail = self.sweep(trial(0)).trial(0)
        self.assertEqual(detail, trial(0))
        for copied in pickle.loads(pickle.dumps(detail)), copy.deepcopy(detail):
            self.assertEqual(copied, trial(0))

    def test_a_trial_has_the_environment_of_its_attempts(self):
        environment = {"attempt": 2, "executors": [{"executor": "box", "record": {"attune": "1.0"}}]}
        detail = self.sweep(trial(7), environment, environment).trial(7)
        self.assertEqual(detail.environment(), environment)
        self.assertEqual(detail.environment(2), environment)
        path = "GET /api/v1/sweeps/s1/trials/7"
        self.assertEqual(self.asked(), [path, path + "/environment", path + "/environment?attempt=2"])

    def test_html_escapes_every_value(self):
        rows = [trial(0, config={MARKUP: MARKUP}, metrics={MARKUP: 1.0}, state=MARKUP)]
        best = {"trial": 0, "step": 3, "value": 0.5, "config": {MARKUP: MARKUP}, "metrics": {}}
        sweep = self.sweep({**SWEEP, "name": MARKUP, "reason": MARKUP, "best": best, "metric": {"name": MARKUP}})
        pages = [sweep._repr_html_(), self.trials(*rows)._repr_html_(),
                 Curves([{"number": 0, "steps": [1, 2], "values": [1.0, 2.0]}], MARKUP)._repr_html_(),
                 Curves([], MARKUP)._repr_html_()]
        for page in pages:
            self.assertIn("&lt;b&gt;&amp;&quot;&#x27;", page)
            self.assertNotIn("<b>", page)
            xml.etree.ElementTree.fromstring(f"<page>{page}</page>")

    def test_html_of_trials_has_all_parameters_and_few_rows(self):
        page = self.trials(*(trial(number, config={f"p{number % 2}": number}, best=None) for number in range(250)))
        table = xml.etree.ElementTree.fromstring(f"<page>{page._repr_html_()}</page>")
        self.assertEqual([cell.text for cell in table.iter("th")], ["trial", "state", "step", "best", "p0", "p1", "loss"])
        self.assertEqual(len(list(table.iter("tr"))), 101)
        self.assertEqual(table.find("p").text, "and 150 more trials")

    def test_a_sweep_that_cannot_be_read_has_no_html(self):
        self.assertIsNone(self.sweep(problem(404, "it was deleted"))._repr_html_())

    def drawn(self, *rows):
        """Returns the corners of each line of a drawing."""
        page = xml.etree.ElementTree.fromstring(f"<page>{self.curves(*rows)._repr_html_()}</page>")
        return [[tuple(map(float, corner.split(","))) for corner in line.get("points").split()]
                for line in page.iter("polyline")], page.findtext(".//figcaption")

    def test_curves_are_drawn_inside_the_picture(self):
        lines, caption = self.drawn({"number": 0, "steps": [1, 2, 3], "values": [4, "nan", 2]},
                                    {"number": 1, "steps": [1], "values": ["inf"]},
                                    {"number": 2, "steps": [2], "values": [3]})
        self.assertEqual(lines, [[(8, 8), (632, 232), (632, 232)], [(320, 120), (320, 120)]])
        self.assertEqual(caption, "loss from 2 to 4, steps 1 to 3")

    def test_curves_of_many_points_are_thinned(self):
        [line], _ = self.drawn({"number": 0, "steps": list(range(10_000)), "values": [1.0] * 10_000})
        self.assertLessEqual(len(line), 501)

    def test_names_pandas_if_it_is_missing(self):
        with mock.patch.dict(sys.modules, pandas=None), self.assertRaisesRegex(ImportError, "pip install pandas"):
            Trials().to_pandas()

    def test_a_table_of_pandas_has_a_row_for_each_trial(self):
        script = ("import json, sys; from attune.client import Trials\n"
                  "frame = Trials(json.load(sys.stdin)).to_pandas()\n"
                  "print(json.dumps([list(frame.columns), frame['config/lr'].tolist(), frame['best'].tolist()[0],\n"
                  "                  str(frame['created'][0]), str(frame['ended'][0]), str(frame['best'].dtype),\n"
                  "                  len(Trials().to_pandas())]))")
        python = [PYTHON_WITH_TORCH, sys.executable] if importlib.util.find_spec("pandas") is None else [sys.executable]
        rows = [trial(0), trial(1, best="nan", config={"lr": 0.2})]
        run = subprocess.run([*python, "-Bc", script], input=json.dumps(rows), text=True, capture_output=True,
                             env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        if "needs pandas" in run.stderr or "no torch" in run.stderr:
            self.skipTest(run.stderr)
        self.assertEqual(run.returncode, 0, run.stderr)
        columns, rates, best, created, ended, kind, rows = json.loads(run.stdout)
        self.assertLessEqual({"number", "state", "config/lr", "metrics/loss"}, set(columns))
        self.assertFalse({"config", "metrics"} & set(columns))
        self.assertEqual((rates, best, created, ended, kind, rows),
                         ([0.1, 0.2], 0.5, "2026-11-21 10:00:00+00:00", "NaT", "float64", 0))


class Progress(Client):
    """The progress that wait() shows."""

    def setUp(self):
        super().setUp()
        self.clock, self.err = 0.0, _Terminal()
        for patch in (mock.patch.object(_progress.time, "monotonic", lambda: self.clock),
                      mock.patch.object(sys, "stderr", self.err)):
            patch.start()
            self.addCleanup(patch.stop)

    def show(self, *states, wanted=None, tqdm=None):
        """Returns the output for states, each of which is (time, ended, running)."""
        with mock.patch.dict(sys.modules, {"tqdm": tqdm and types.SimpleNamespace(auto=tqdm), "tqdm.auto": tqdm}), \
                _progress.progress_display(wanted) as show:
            for self.clock, ended, running in states:
                best = {"value": 0.25, "trial": 1} if ended else None
                show({**SWEEP, "max_trials": 4, "trials": {"running": running, "completed": ended}, "best": best})
        return self.err.getvalue()

    def test_lines_are_printed_when_something_changed_and_seconds_have_passed(self):
        self.assertEqual(self.show((0, 0, 2), (1, 1, 2), (6, 2, 2), (20, 2, 2), (21, 3, 1), (22, 4, 0)),
                         "s1 test: running, 0 of 4 trials ended, 2 running\n"
                         "s1 test: running, 2 of 4 trials ended, 2 running, best loss 0.25 (trial 1)\n"
                         "s1 test: running, 3 of 4 trials ended, 1 running, best loss 0.25 (trial 1)\n"
                         "s1 test: running, 4 of 4 trials ended, 0 running, best loss 0.25 (trial 1)\n")

    def test_shows_nothing_outside_of_terminals_by_default(self):
        self.assertEqual(self.show((0, 0, 2), wanted=False), "")
        self.err.terminal = False
        self.assertEqual(self.show((0, 0, 2)), "")
        self.assertIn("0 of 4", self.show((0, 0, 2), wanted=True))

    def test_shows_progress_in_a_notebook(self):
        self.err.terminal = False
        notebook = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1))
        with mock.patch.dict(sys.modules, IPython=notebook):
            self.assertIn("0 of 4", self.show((0, 0, 2)))

    def test_a_program_without_stderr_waits_in_silence(self):
        with mock.patch.object(sys, "stderr", None):
            self.show((0, 0, 2), wanted=True)

    def test_tqdm_is_used_in_a_terminal(self):
        bar = mock.Mock()
        tqdm = types.SimpleNamespace(tqdm=mock.Mock(return_value=bar))
        self.assertEqual(self.show((0, 0, 2), (1, 3, 1), tqdm=tqdm), "")
        tqdm.tqdm.assert_called_once_with(desc="s1 test", total=4, unit=" trials")
        self.assertEqual((bar.total, bar.n), (4, 3))
        self.assertEqual(bar.set_postfix_str.call_args.args, ("1 running, best loss 0.25 (trial 1)",))
        bar.close.assert_called_once_with()

    def test_wait_shows_the_last_state(self):
        self.sweep({**SWEEP, "state": "completed", "trials": {"running": 0, "completed": 2}}).wait(progress=True)
        self.assertRegex(self.err.getvalue(), r"s1 .*\bcompleted\b.*\b2\b")


class _Terminal(io.StringIO):
    terminal = True

    def isatty(self):
        return self.terminal


if __name__ == "__main__":
    unittest.main()
