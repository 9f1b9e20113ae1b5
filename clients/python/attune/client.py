"""Creates and follows sweeps on a server.

    import attune.client

    sweep = attune.client.Server().create("sweep.yaml")
    sweep.wait()
    print(sweep.best()["config"])

A sweep without a command has trials that a program asks for, runs itself and tells the results of:

    best = sweep.run(lambda trial: train(trial.config["lr"]), workers=4)

Methods return the JSON of docs/reference/rest-api.md. Metrics are floats, also NaN and infinity. Methods raise Error if
the server refuses a request or does not answer. Any thread can use any object. docs/reference/python.md is the user
guide.
"""

from __future__ import annotations

import attune._distribution  # first: it raises if pip mixed two packages

import concurrent.futures
import contextlib
import functools
import json
import math
import os
import pathlib
import threading
import time
import traceback
import typing
import urllib.parse
import warnings

from attune import _code_upload, _notebook, _progress, function
from attune._ask_tell import Trial
from attune._fetch import Checkpoint, write_new_file
from attune._rest import UNFINISHED_STATES, Error, FoundServer, Rest, find_server, find_server_of_folder
from attune._results import Curves, TrialDetail, Trials
from attune._serve import ServerProcess, run_attune

if typing.TYPE_CHECKING:
    from attune._contract import Best, LoggedPoint, NewTrial, Offer, SteeredSweep, SweepDetail

__all__ = ["Checkpoint", "Curves", "Error", "LocalServer", "Server", "Sweep", "Trial", "TrialDetail", "Trials"]

_PAUSE_S_MIN, _PAUSE_S_MAX = 0.05, 1.0
_POINTS_MAX = 10_000  # logged points in one answer
_STARTING_S = 10  # how long a server that another program starts may take to answer


class Server:
    """A server, found by the same rules as in the CLI.

    The address is `server` (HOST:PORT or a URL), otherwise ATTUNE_SERVER, otherwise the address of the server that runs
    on the data folder `data_dir`. The token is the first line of `token_file`, otherwise `token`, otherwise ATTUNE_TOKEN.
    The token of the data folder is sent only to its own server. If a server has answered before and does not answer now,
    a request is retried for `patience` seconds. For https://, Python must trust the certificate. SSL_CERT_FILE names a
    file with additional certificates.

    Raises Error if no server is found.
    """

    def __init__(self, server: str | None = None, token: str | None = None,
                 token_file: str | os.PathLike[str] | None = None,
                 data_dir: str | os.PathLike[str] = "attune-data", patience: float = 60) -> None:
        self._rest = Rest(functools.partial(find_server, server, token, token_file, _absolute(data_dir)), patience)

    def create(self, sweep: str | os.PathLike[str] | dict[str, typing.Any],
               directory: str | os.PathLike[str] | None = None,
               train: typing.Callable[..., typing.Any] | None = None) -> Sweep:
        """Creates a Sweep. `sweep` is the path of a sweep file, its text (several lines, or JSON), or a dict.

        Relative paths in the sweep start at `directory`. The default is the folder of the file, or the current folder.
        If the sweep has `code`, this sends the files that the server does not have.

        `train` is a function that each rank of a trial calls as `train(config)`. The sweep is then a dict without a
        command. Executors import a function of a module or script from its file. Other functions (lambdas, closures,
        functools.partial, those of a notebook) are written by cloudpickle into the folder `attune-functions` of the
        sweep's working directory, which each host needs until the sweep is deleted.

        Raises Error if the server refuses the sweep or a file of `code` cannot be sent, ValueError if `train` cannot be
        used, and ImportError if it needs cloudpickle.

        Warns (UserWarning) about risks in the sweep, such as a name in `env` that looks like a secret.
        """
        if train is not None:
            sweep = function.sweep_of_function(sweep, train, directory)
        query: dict[str, typing.Any] = {}
        document = ""
        if hasattr(sweep, "items"):
            text = json.dumps(sweep, indent=2, allow_nan=False, default=os.fspath)
        elif isinstance(sweep, str) and ("\n" in sweep or sweep.lstrip().startswith("{")):
            text, document = sweep, "<text>"
        else:
            path = pathlib.Path(sweep)
            text, document, query["file"] = path.read_text(), str(path), path.name
            directory = directory or path.absolute().parent
        query["directory"] = pathlib.Path(directory or ".").absolute()
        answer = _code_upload.create_sweep(self._rest, text.encode(), query, document)
        for warning in answer.get("warnings", ()):
            warnings.warn(warning, stacklevel=2)
        return Sweep(self._rest, answer)

    def sweep(self, id: str) -> Sweep:
        """Returns the Sweep `id`, such as "s1". Raises Error if there is none."""
        return Sweep(self._rest, self._rest.get(_path(id)))

    def sweeps(self) -> list[Sweep]:
        """Returns all sweeps, the newest first."""
        return [Sweep(self._rest, each) for each in self._rest.list_all("/sweeps", "sweeps")]


class LocalServer(Server):
    """The server of the data folder `data_dir` on this machine. If none runs, this object starts one with an executor.

        with LocalServer() as server:
            print(server.create({...}, train=train).wait())

    A server that this object started ends with the `with` block, with stop(), or with the program, also if that is
    killed. The next server of the folder continues its trials from their checkpoints. If the server of another program
    was used and has ended, this object starts a server. `attune` is the program; it is found in PATH or in Python's
    folder. `options` are arguments of `attune serve`, such as `["--port", "7070"]`. Its output goes to sys.stderr.
    `patience` is the same as in `Server`, in seconds.

    Raises Error if the server does not start, or if this is called in a trial.
    """

    def __init__(self, data_dir: str | os.PathLike[str] = "attune-data",
                 attune: str | os.PathLike[str] = "attune", options: typing.Sequence[str] = (),
                 patience: float = 60) -> None:
        if "ATTUNE_RANK" in os.environ:
            raise Error("a trial cannot start a LocalServer; put the code that creates it into a block "
                        '`if __name__ == "__main__":`')
        self._data_dir, self._attune = _absolute(data_dir), attune
        self._start_process = functools.partial(ServerProcess, attune, self._data_dir, options)
        self._server_process: ServerProcess | None = None
        self._stopped, self._lock = False, threading.Lock()
        self._start()
        self._rest = Rest(self._find, patience)

    def _start(self) -> None:
        """Starts a server, unless one runs on the folder or another program starts it now."""
        for _ in poll_times(_STARTING_S):
            try:
                self._server_process = self._start_process()
                return
            except Error as error:
                refusal = error
            try:
                Rest(functools.partial(find_server_of_folder, self._data_dir), 0).get("/sweeps", page_size=1)
                return
            except Error:
                if "is in use by another server" not in str(refusal):
                    raise refusal from None
        raise refusal

    def _find(self) -> FoundServer:
        with self._lock:
            try:
                return find_server_of_folder(self._data_dir)
            except Error:
                if self._stopped:
                    raise
                self._start()
                return find_server_of_folder(self._data_dir)

    @property
    def page(self) -> str:
        """The URL of the dashboard. `login_link` logs a browser in."""
        return self._find()[0]

    def login_link(self) -> str:
        """Returns a link to the dashboard that logs one browser in, once and within ten minutes.

        Raises Error if the server does not answer.
        """
        self._find()
        return run_attune(self._attune, "login", "--data-dir", str(self._data_dir)).strip()

    def stop(self) -> None:
        """Ends the server if this object started it. Running trials end, and the next server continues them."""
        with self._lock:
            self._stopped = True
            process, self._server_process = self._server_process, None
        self._rest.give_up()
        if process:
            process.stop()

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Sweep:
    """A sweep on a server.

    `id` is its identifier, such as "s1". `name` is its name in the sweep file, and `metric` is the name of the first
    metric that it optimizes. Every method raises Error if the server refuses or does not answer.
    """

    def __init__(self, rest: Rest, answer: SweepDetail):
        self._rest, self._path = rest, _path(answer["id"])
        self.id, self.name, self.metric = answer["id"], answer["name"], answer["metric"]["name"]
        self._time_attr = answer["time_attr"]

    def __repr__(self) -> str:
        return f"<Sweep {self.id} {self.name}>"

    def _repr_html_(self) -> str | None:
        try:
            return _notebook.sweep(self.get())
        except Error:
            return None  # so that the notebook shows the repr

    def get(self) -> SweepDetail:
        """Returns the sweep as it is now: `state`, `trials` (number by state), `best` and more."""
        answer: SweepDetail = self._rest.get(self._path)
        for report in [answer["best"], *answer["pareto_front"]]:
            _read_metrics(report)
        return answer

    def best(self) -> Best | None:
        """Returns the best report, with `trial`, `step`, `value`, `config`, `metrics`, `checkpoint`; None without one."""
        return self.get()["best"]

    def trials(self, filter: str | None = None, order_by: str | None = None) -> Trials:
        """Returns the trials as they are now, by number or by `order_by`: a list with a method `to_pandas`.

        `filter` selects trials, such as "lr<0.01 state:stopped". `order_by` is a column to sort by, such as "best" (the
        best first) or "-config.lr" (the largest first). docs/reference/rest-api.md describes both.
        """
        query = {name: text for name, text in (("filter", filter), ("order_by", order_by)) if text}
        trials = self._rest.list_all(self._path + "/trials", "trials", **query)
        return Trials(_read_metrics(trial) for trial in trials)

    def trial(self, number: int) -> TrialDetail:
        """Returns trial `number`: a dict with `history`, `attempts`, `decisions`, `checkpoints`, and a method `checkpoint`."""
        answer = self._rest.get(f"{self._path}/trials/{number}")
        for report in [answer, *answer["history"]]:
            _read_metrics(report)
        return TrialDetail(self._rest, self._path, answer)

    def logged(self, number: int, after: int = 0) -> typing.Iterator[LoggedPoint]:
        """Yields what trial `number` logged between reports, in order: `seq`, `time`, `attempt`, `step`, `metrics`.

        `step` may be a fraction: 2.25 is a quarter of the way from step 2 to step 3. `after` is a `seq`; only later
        points are yielded.
        """
        while True:
            points: list[LoggedPoint] = self._rest.get(f"{self._path}/trials/{number}/logged", after=after,
                                    limit=_POINTS_MAX)["logged"]
            for point in points:
                yield _read_metrics(point)
            if len(points) < _POINTS_MAX:
                return
            after = points[-1]["seq"]

    def curves(self, metric: str | None = None) -> Curves:
        """Returns the values of `metric` over steps, for each trial. The default is the metric that the sweep optimizes.

        `steps` and `values` are from reports, `logged_steps` and `logged_values` are from logs between reports.
        """
        metric = metric or self.metric
        trials = Curves(self._rest.list_all(self._path + "/curves", "trials", metric=metric), metric)
        for trial in trials:
            trial["values"] = [float(value) for value in trial["values"]]
            if "logged_values" in trial:
                trial["logged_values"] = [float(value) for value in trial["logged_values"]]
        return trials

    def to_html(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Writes a report of the sweep into the new file `path`: its pages, which a browser opens without a server.

        Returns the path. Raises FileExistsError if the file exists.
        """
        return write_new_file(path, self._rest.get_bytes(self._path + "/report"))

    def wait(self, timeout: float | None = None, progress: bool | None = None) -> SweepDetail:
        """Waits until the sweep has ended, and returns get(). It asks the server every second.

        `progress` shows the progress of the sweep on stderr: a bar of tqdm, if installed, in a terminal or a notebook,
        and a line every few seconds elsewhere. By default, it is shown only in a terminal or a notebook.

        Raises Error if the sweep failed or was killed, and TimeoutError if it still runs after `timeout` seconds.
        """
        with _progress.progress_display(progress) as show:
            for _ in poll_times(timeout):
                answer = self.get()
                show(answer)
                if answer["state"] not in UNFINISHED_STATES:
                    break
            else:
                raise TimeoutError(f"sweep {self.id} has not ended within the timeout of {timeout} s")
        if answer["state"] in ("failed", "killed"):
            raise Error(f"sweep {self.id} ended in state {answer['state']}: {answer['reason']}{self._last_failure()}")
        return answer

    def _last_failure(self) -> str:
        """Returns lines that say why the newest failed trial failed, with the end of its log; or nothing."""
        try:
            failed = [trial for trial in self.trials() if trial["state"] == "failed"]
            if not failed:
                return ""
            number = max(failed, key=lambda trial: trial["ended"] or "")["number"]
            attempts = self.trial(number)["attempts"]
        except Error:
            return ""  # the error of the sweep is more important than this one
        return f"\ntrial {number}: {attempts[-1]['failure']}" if attempts else ""

    def pause(self) -> str:
        """Pauses the sweep: running trials save a checkpoint and end at their next report.

        Returns a sentence about the effect.
        """
        return self._steer("pause")

    def resume(self) -> str:
        """Resumes a paused sweep. Trials that the pause has interrupted start first. Returns the effect."""
        return self._steer("resume")

    def stop(self) -> str:
        """Stops the sweep: running trials finish, and no other trial starts. Returns the effect."""
        return self._steer("stop")

    def kill(self) -> str:
        """Kills the sweep: every trial ends now. Returns the effect."""
        return self._steer("kill")

    def delete(self, delay: int = 0) -> None:
        """Deletes the sweep, with its trials, checkpoints, logs and files. Raises Error if it has not ended.

        With a `delay` in seconds, the server deletes it later, and undelete() can undo this until then.
        """
        self._rest.delete(self._path, **({"delay": delay} if delay else {}))

    def undelete(self) -> str:
        """Keeps the sweep if its deletion was delayed. Raises Error if it is deleted already. Returns the effect."""
        return self._steer("undelete")

    def annotate(self, note: str | None = None, tags: typing.Sequence[str] | None = None,
                 add_tags: typing.Sequence[str] = (), remove_tags: typing.Sequence[str] = (),
                 trial: int | None = None) -> str:
        """Changes the note and the tags of the sweep, or of the trial with the number `trial`. Returns the effect.

        It works at any time, also after the end of the sweep. `note` may have several lines; "" removes it. `tags`
        replaces all tags, and cannot be combined with `add_tags` and `remove_tags`.
        """
        given = {"note": note, "tags": tags, "add_tags": add_tags or None, "remove_tags": remove_tags or None}
        body = {name: value if isinstance(value, str) else list(value)
                for name, value in given.items() if value is not None}
        path = self._path if trial is None else f"{self._path}/trials/{trial}"
        answer: SteeredSweep = self._rest.post(f"{path}:annotate", body)
        return answer["effect"]

    def _steer(self, verb: str) -> str:
        answer: SteeredSweep = self._rest.post(f"{self._path}:{verb}")
        return answer["effect"]

    # ---- ask and tell, for a sweep without a command

    def enqueue(self, config: dict[str, typing.Any], patch: str | os.PathLike[str] | None = None) -> TrialDetail:
        """Adds a trial with the configuration `config`, which runs before any other proposal, and returns it.

        Missing parameters are drawn at random. `patch` is a file with a patch of the sweep's code for this trial alone,
        as `git diff` writes it.
        """
        body: NewTrial = {"config": config}
        if patch is not None:
            body["patch"] = pathlib.Path(patch).read_text()
        answer = self._rest.post(self._path + "/trials", body)
        return TrialDetail(self._rest, self._path, _read_metrics(answer))

    def ask(self, lease: str | None = None, wait: bool = True) -> Trial | None:
        """Returns the next Trial, or None if the sweep has ended.

        If no trial is available before others end, it waits, or returns None with `wait=False`. If the program tells
        nothing about a trial for the duration of its `lease` ("10m"; default: an hour), another program gets the trial.
        """
        return self._ask(lease, lambda: not wait)

    def run(self, objective: typing.Callable[[Trial], typing.Any], workers: int = 1,
            lease: str | None = None) -> Best | None:
        """Asks for trials and calls `objective(trial)` for each, until the sweep has ended. Returns best().

        `objective` returns a dict of metrics, or the value of the sweep's only metric. This is reported for the next
        step. It returns None if it has reported all metrics itself. If it raises, the trial fails. `workers` trials run
        at the same time, each on a thread; a single worker uses the caller's thread. `lease` is the same as in ask().

        KeyboardInterrupt (Ctrl-C) and SystemExit give the running trials back, and they are offered again at once. With
        several workers, each of them ends when its objective reports or returns.

        Raises the errors of wait().
        """
        stopping = threading.Event()
        running: set[Trial] = set()
        if workers == 1:
            self._work(objective, lease, stopping, running)
        else:
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                try:
                    for work in [pool.submit(self._work, objective, lease, stopping, running) for _ in range(workers)]:
                        work.result()
                except (KeyboardInterrupt, SystemExit):
                    stopping.set()
                    for trial in list(running):
                        _release(trial)
                    raise
                finally:
                    stopping.set()
        self.wait(progress=False)
        return self.best()

    def _ask(self, lease: str | None, gives_up: typing.Callable[[], bool]) -> Trial | None:
        for _ in poll_times():
            answer: Offer = self._rest.post(self._path + "/trials:ask", {"lease": lease} if lease else {})
            if answer["trial"] is not None:
                return Trial(self._rest, self._path, answer)
            if answer["state"] not in UNFINISHED_STATES or gives_up():
                return None
        return None

    def _work(self, objective: typing.Callable[[Trial], typing.Any], lease: str | None, stopping: threading.Event,
              running: set[Trial]) -> None:
        try:
            while not stopping.is_set() and (trial := self._ask(lease, stopping.is_set)):
                running.add(trial)
                try:
                    if stopping.is_set():
                        trial.release()
                    else:
                        self._run_objective(objective, trial)
                except (KeyboardInterrupt, SystemExit):
                    _release(trial)
                    raise
                finally:
                    running.remove(trial)
        finally:
            stopping.set()  # also ends the other workers: the sweep has ended, or the error concerns all of them

    def _run_objective(self, objective: typing.Callable[[Trial], typing.Any], trial: Trial) -> None:
        try:
            result = objective(trial)
            if result is not None:
                metrics = result if hasattr(result, "items") else {self.metric: result}
                trial.report(None if self._time_attr else trial.step + 1, metrics)
        except Error:
            raise
        except Exception as error:
            trial.fail(f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
        else:
            trial.complete()


def _release(trial: Trial) -> None:
    """Releases a trial when the program ends. If the server does not answer, the trial's lease expires instead."""
    with contextlib.suppress(Error):
        trial.release()


def _absolute(folder: str | os.PathLike[str]) -> str:
    """Returns a path that stays valid when the program changes its working directory."""
    return os.path.abspath(os.path.expanduser(folder))


def _path(id: str) -> str:
    return "/sweeps/" + urllib.parse.quote(id, safe="")


def _read_metrics(report: typing.Any) -> typing.Any:
    """Converts the metrics to floats. JSON has neither NaN nor infinity; the API writes "nan", "inf" and "-inf"."""
    if report:
        report["metrics"] = {name: float(value) for name, value in report["metrics"].items()}
    return report


def poll_times(timeout: float | None = None) -> typing.Iterator[None]:
    """Yields at once, then after pauses that grow, until the timeout, if there is one."""
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    pause = _PAUSE_S_MIN
    while True:
        yield
        left = deadline - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(pause, left))
        pause = min(2 * pause, _PAUSE_S_MAX)
