"""Sweeps of a server, from a program.

    import attune.client

    sweep = attune.client.Server().create("sweep.yaml")
    sweep.wait()
    print(sweep.best()["config"])

and those without a program, whose trials are asked for and told about:

    best = sweep.run(lambda trial: train(trial.config["lr"]), workers=4)

What methods return is the JSON of docs/rest-api.md, in which metrics are numbers, also NaN and infinities.
What is refused, or cannot be asked, raises Error. All is for any thread. docs/python.md tells the story.
"""

import attune._distribution  # first: it may refuse

import concurrent.futures
import functools
import json
import math
import os
import pathlib
import threading
import time
import traceback
import urllib.parse

from attune import function
from attune._channel import ERROR_CHARACTERS_MAX
from attune._rest import Error, Rest, find_own, find_server
from attune._serve import Serving
from attune._trial import numbers, short_seed, spoken

__all__ = ["Error", "LocalServer", "Server", "Sweep", "Trial"]

GOES_ON = ("pending", "running", "paused")
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.05, 1.0
_POINTS_MAX = 10_000  # of what was logged, in one answer
_STARTING_S = 10  # until a server that another program starts answers


class Server:
    """The server at the address `server` or, without one, as `attune` finds it: ATTUNE_SERVER, else the
    one that runs on the data folder `data_dir`.

    Its token is that of `token_file`, `token`, ATTUNE_TOKEN, or else the data folder's, where it is that
    folder's server. A server that has answered and then does not is asked again for `patience` seconds.
    With https:// its certificate has to be of an authority that Python trusts; SSL_CERT_FILE names a file of others.
    """

    def __init__(self, server=None, token=None, token_file=None, data_dir="attune-data", patience=60):
        self._rest = Rest(functools.partial(find_server, server, token, token_file, _absolute(data_dir)), patience)

    def create(self, sweep, directory=None, train=None):
        """A new Sweep, of a sweep file's path, its text (several lines, or beginning with `{`), or a dict of
        what it would say.

        `directory` is what relative paths in it mean: the file's own folder, or else the current one.

        `train`, with a dict that has no command, is a function of a module or script that executors can import,
        too: each rank of a trial calls `train(config)`, as `attune.function` says.
        """
        if train is not None:
            sweep = _of_function(sweep, train)
        query, document = {}, ""
        if hasattr(sweep, "items"):
            text = json.dumps(sweep, indent=2, allow_nan=False, default=os.fspath)
        elif isinstance(sweep, str) and ("\n" in sweep or sweep.lstrip().startswith("{")):
            text, document = sweep, "<text>"
        else:
            path = pathlib.Path(sweep)
            text, document, query["file"] = path.read_text(), path, path.name
            directory = directory or path.absolute().parent
        query["directory"] = pathlib.Path(directory or ".").absolute()
        answer = self._rest.post("/sweeps", text.encode(), query, "application/yaml", document)
        return Sweep(self._rest, answer)

    def sweep(self, id):
        """The Sweep `id`, such as "s1"."""
        return Sweep(self._rest, self._rest.get(_path(id)))

    def sweeps(self):
        """All of them, the newest first."""
        return [Sweep(self._rest, each) for each in self._rest.pages("/sweeps", "sweeps")]


class LocalServer(Server):
    """The server of a data folder of this machine's: the one that runs on it or, where none does, one that is
    started, with an executor, and ends with this.

        with LocalServer() as server:
            print(server.create({...}, train=train).wait())

    Without `with` it ends by stop(), or with the program, however that ends. Its trials then go on with the next
    server of that folder, from their checkpoints. Where another program's server was used, and has ended with that,
    this one starts its own. `attune` is the program, looked for in PATH and beside Python; `options` go to its
    `serve`, as in `["--port", "7070"]`; what it says is passed on to sys.stderr.
    """

    def __init__(self, data_dir="attune-data", attune="attune", options=(), patience=60):
        if "ATTUNE_RANK" in os.environ:
            raise Error("a trial wants a server of its own: what a script does beside its trials has to stand "
                        'behind `if __name__ == "__main__":`')
        self._data_dir = _absolute(data_dir)
        self._begin = functools.partial(Serving, attune, self._data_dir, options)
        self._serving, self._stopped, self._lock = None, False, threading.Lock()
        self._start()
        self._rest = Rest(self._find, patience)

    def _start(self):
        """Starts a server, unless one runs there, or another program is starting it now."""
        for _ in moments(_STARTING_S):
            try:
                self._serving = self._begin()
                return
            except Error as error:
                refusal = error
            try:
                Rest(functools.partial(find_own, self._data_dir), 0).get("/sweeps", page_size=1)
                return
            except Error:
                if "is in use by another server" not in str(refusal):
                    raise refusal from None
        raise refusal

    def _find(self):
        with self._lock:
            try:
                return find_own(self._data_dir)
            except Error:
                if self._stopped:
                    raise
                self._start()
                return find_own(self._data_dir)

    @property
    def page(self):
        """The address that opens the web page."""
        url, token, _ = self._find()
        return f"{url}/login?token={token}"

    def stop(self):
        """Ends the server, if this has started it; running trials leave, and go on with the next one."""
        with self._lock:
            self._stopped = True
            serving, self._serving = self._serving, None
        self._rest.give_up()
        if serving:
            serving.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Sweep:
    """A sweep of a server's: `id`, `name`, and `metric`, the name of the first one that it improves."""

    def __init__(self, rest, answer):
        self._rest, self._path = rest, _path(answer["id"])
        self.id, self.name, self.metric = answer["id"], answer["name"], answer["metric"]["name"]
        self._time_attr = answer["time_attr"]

    def __repr__(self):
        return f"<Sweep {self.id} {self.name}>"

    def get(self):
        """All that the server says of it now: `state`, `trials`, `best` …"""
        answer = self._rest.get(self._path)
        for report in [answer["best"], *answer["pareto_front"]]:
            _read_metrics(report)
        return answer

    def best(self):
        """The best report, with `trial`, `step`, `value`, `config`, `metrics`, `checkpoint`; or None."""
        return self.get()["best"]

    def trials(self):
        """All of them as they are now, by number."""
        return [_read_metrics(trial) for trial in self._rest.pages(self._path + "/trials", "trials")]

    def trial(self, number):
        """One of them, with its `history`, `attempts`, `decisions` and `checkpoints`."""
        answer = self._rest.get(f"{self._path}/trials/{number}")
        for report in [answer, *answer["history"]]:
            _read_metrics(report)
        return answer

    def logged(self, number, after=0):
        """What a trial has logged between reports, in order: `seq`, `time`, `attempt`, `step`, `metrics`; with
        `after`, behind that `seq`."""
        while True:
            points = self._rest.get(f"{self._path}/trials/{number}/logged", after=after,
                                    limit=_POINTS_MAX)["logged"]
            for point in points:
                yield _read_metrics(point)
            if len(points) < _POINTS_MAX:
                return
            after = points[-1]["seq"]

    def curves(self, metric=None):
        """What was reported or logged of a metric, else of the sweep's own: a dict of `number`, `steps`, `values`,
        `clones`, and where something was logged of it `logged_steps` and `logged_values`, a trial."""
        trials = self._rest.get(self._path + "/curves", metric=metric or self.metric)["trials"]
        for trial in trials:
            for values in ("values", "logged_values"):
                if values in trial:
                    trial[values] = [float(value) for value in trial[values]]
        return trials

    def wait(self, timeout=None):
        """Returns what get() says once the sweep has ended; looks each second.

        Raises Error if it has failed or was killed, TimeoutError if it goes on after `timeout` seconds.
        """
        for _ in moments(timeout):
            answer = self.get()
            if answer["state"] not in GOES_ON:
                break
        else:
            raise TimeoutError(f"sweep {self.id} has not ended within {timeout} s")
        if answer["state"] in ("failed", "killed"):
            raise Error(f"sweep {self.id} has ended as {answer['state']}: {answer['reason']}")
        return answer

    def pause(self):
        """Running trials save a checkpoint and leave at their next report; returns what follows, in words."""
        return self._steer("pause")

    def resume(self):
        """Goes on; what left with the pause is first."""
        return self._steer("resume")

    def stop(self):
        """Running trials finish, and none starts."""
        return self._steer("stop")

    def kill(self):
        """Every trial ends now."""
        return self._steer("kill")

    def delete(self):
        """Of the sweep, which has ended, nothing stays: no trial, checkpoint, log or file."""
        self._rest.delete(self._path)

    def _steer(self, verb):
        return self._rest.post(f"{self._path}:{verb}")["effect"]

    # ---- ask and tell, of a sweep without a program

    def ask(self, lease=None, wait=True):
        """The next Trial, or None when the sweep has ended.

        While there is none to be had, since others have to end before, waits for one, or with `wait=False`
        returns None. When nothing is told of a trial for as long as its `lease` ("10m"; else an hour), it
        goes to another asker.
        """
        return self._ask(lease, lambda: not wait)

    def run(self, objective, workers=1, lease=None):
        """Asks for trials, calls `objective(trial)` and tells, until the sweep has ended; returns its best().

        `objective` returns its metrics by name, or the value of the sweep's one metric, as the report of the
        step behind the last; or None where it has reported by itself. What it raises is the trial's failure.
        So many `workers` do this at once, each on a thread; one does on the caller's. Raises as wait() does.
        """
        over = threading.Event()
        if workers == 1:
            self._work(objective, lease, over)
        else:
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                try:
                    for work in [pool.submit(self._work, objective, lease, over) for _ in range(workers)]:
                        work.result()
                finally:
                    over.set()
        self.wait()
        return self.best()

    def _ask(self, lease, gives_up):
        for _ in moments():
            answer = self._rest.post(self._path + "/trials:ask", {"lease": lease} if lease else {})
            if answer["trial"] is not None:
                return Trial(self._rest, self._path, answer)
            if answer["state"] not in GOES_ON or gives_up():
                return None

    def _work(self, objective, lease, over):
        try:
            while not over.is_set() and (trial := self._ask(lease, over.is_set)):
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
        finally:
            over.set()  # for the others: the sweep has ended, or something is wrong with all of them


class Trial:
    """A trial that was asked for: `config` is what to try, `number` its own.

    `milestone` is the step of the next decision and `max_step` the last one (0: none), `seed` the same in
    each attempt, `step` the last one that was reported: a trial that was paused or has failed comes again,
    and goes on behind it or begins anew. `verdict` and `reason` are what was decided last.
    """

    def __init__(self, rest, sweep, answer):
        self._rest, self._path = rest, f"{sweep}/trials/{answer['trial']}"
        self.number, self.config = answer["trial"], answer["config"]
        self.attempt, self.epoch, self.seed = answer["attempt"], answer["epoch"], short_seed(answer["seed"])
        self.milestone, self.max_step = answer["milestone"], answer["max_step"]
        self.step = rest.get(self._path)["step"] if self.attempt > 1 else 0
        self.verdict, self.reason = "continue", ""
        self._began = time.monotonic()

    def report(self, step, metrics):
        """Says how good it is at `step` (None where the sweep counts in a metric); whether it goes on."""
        body = {"metrics": {name: spoken(value) for name, value in numbers(metrics).items()},
                "seconds": time.monotonic() - self._began}
        if step is not None:
            body["step"] = step
        answer = self._tell(body)
        if answer:
            self.step = body.get("step", self.step)
            self.verdict, self.reason = answer["verdict"], answer["reason"]
            self.milestone = answer["milestone"]
        return self.verdict == "continue"

    def progress(self):
        """Says that it still runs, which renews its lease; whether it goes on."""
        self._tell({"state": "running"})
        return self.verdict == "continue"

    def complete(self):
        """It is done. Nothing is to be said of one that was told not to go on."""
        self._end({"state": "completed"})

    def fail(self, message=""):
        """It has failed, and is offered again, as `failure` in the sweep file says."""
        # Lone surrogates, as in names of files that are no UTF-8, are no text to the server.
        message = message.encode("utf-8", "replace").decode()[:ERROR_CHARACTERS_MAX]
        self._end({"state": "failed", "message": message})

    def _end(self, body):
        if self.verdict == "continue":
            self._tell(body)
            self.verdict = "stop"

    def _tell(self, body):
        try:
            return self._rest.post(self._path + ":tell", {"epoch": self.epoch, **body})
        except Error as error:
            if error.status != 409:
                raise
            trial = self._rest.get(self._path)
            if trial["state"] in GOES_ON:
                raise  # it is another asker's now
            self.verdict, self.reason = "stop", trial["reason"]  # a person's doing
            return None


def _of_function(sweep, train):
    """The sweep whose trials are that function."""
    if not hasattr(sweep, "items"):
        raise ValueError("train= goes with a sweep that is a dict; a sweep file says `command`")
    if "command" in sweep:
        raise ValueError("the sweep has a command and is given train=; either says what its trials run")
    metric = sweep.get("metric")
    return {**sweep, "command": function.command(train, metric.get("name") if isinstance(metric, dict) else None)}


def _absolute(folder):
    """The same also when the program goes elsewhere."""
    return os.path.abspath(os.path.expanduser(folder))


def _path(id):
    return "/sweeps/" + urllib.parse.quote(id, safe="")


def _read_metrics(report):
    """JSON has neither NaN nor infinities, but "nan", "inf" and "-inf"."""
    if report:
        report["metrics"] = {name: float(value) for name, value in report["metrics"].items()}
    return report


def moments(timeout=None):
    """Now, and again after pauses that grow; to the end of the timeout, if there is one."""
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    pause = _PAUSE_S_MIN
    while True:
        yield
        left = deadline - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(pause, left))
        pause = min(2 * pause, _PAUSE_S_MAX)
