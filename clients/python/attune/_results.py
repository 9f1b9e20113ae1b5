"""Answers of a server as lists and dicts with additional methods, which notebooks show as HTML."""

from __future__ import annotations

import importlib
import typing

from attune import _notebook
from attune._fetch import Checkpoint
from attune._rest import Error, Rest

if typing.TYPE_CHECKING:
    from attune._contract import (AttemptEnvironment, Curve, SweepCheckpoint, Trial, TrialCheckpoint,
                                  TrialDetailMapping)
else:
    TrialDetailMapping = dict

_TIMES, _NUMBERS, _MAPS = ("created", "ended"), ("best", "seconds"), ("config", "metrics")


class Trials(typing.List["Trial"]):
    """Trials of a sweep: a list of the API's JSON."""

    def to_pandas(self) -> typing.Any:
        """Returns a pandas.DataFrame with a row for each trial.

        Its columns are the members of the JSON. Parameters are `config/NAME` and metrics `metrics/NAME`; `created` and
        `ended` are timestamps in UTC, `seconds` is training time. Raises ImportError without pandas.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from None
        frame = pandas.DataFrame([_row(trial) for trial in self])
        for name in _TIMES:
            if name in frame:
                frame[name] = pandas.to_datetime(frame[name], utc=True)
        return frame

    def _repr_html_(self) -> str:
        return _notebook.trials(self)


def _row(trial: Trial) -> dict[str, typing.Any]:
    row: dict[str, typing.Any] = {}
    for name, value in trial.items():
        if name in _MAPS:
            members = typing.cast(typing.Dict[str, typing.Any], value)
            row.update({f"{name}/{key}": each for key, each in members.items()})
        else:  # JSON has no NaN and no infinity, and the API writes them as text
            row[name] = float(typing.cast(typing.Any, value)) if name in _NUMBERS and value is not None else value
    return row


class Curves(typing.List["Curve"]):
    """The values of a metric over steps, for each trial: a list of the API's JSON. `metric` is the metric's name."""

    def __init__(self, curves: typing.Iterable[Curve], metric: str) -> None:
        super().__init__(curves)
        self.metric = metric

    def _repr_html_(self) -> str:
        return _notebook.curves(self, self.metric)


class TrialDetail(TrialDetailMapping):
    """A trial as it was at the time of the request: a dict of the API's JSON, with methods."""

    def __init__(self, rest: Rest, sweep_path: str, answer: typing.Mapping[str, typing.Any]) -> None:
        super().__init__(answer)
        self._rest, self._sweep_path = rest, sweep_path

    def __reduce__(self) -> typing.Any:
        members: dict[str, typing.Any] = dict(self.items())
        return dict, (members,)  # copies and pickles have only the JSON

    def environment(self, attempt: int | None = None) -> AttemptEnvironment:
        """Returns with which versions an attempt ran, by default the newest one: a record for each executor.

        A record has the versions of Python and its packages, the git commit, the GPU driver and more. Raises Error if
        the trial has no such attempt.
        """
        query = {} if attempt is None else {"attempt": attempt}
        answer: AttemptEnvironment = self._rest.get(
            f"{self._sweep_path}/trials/{self['number']}/environment", **query)
        return answer

    def checkpoint(self, step: int | None = None, best: bool = False) -> Checkpoint:
        """Returns the trial's newest checkpoint; with `step` the one of this step, with `best` the one of its best report.

        Raises Error if the trial has no such checkpoint, and ValueError for `step` together with `best`.
        """
        if best and step is not None:
            raise ValueError("step and best choose different checkpoints; give one of them")
        name = f"{self['sweep']}/{self['number']}"
        existing = [each for each in self["checkpoints"] if each["dropped"] is None]
        chosen: typing.Sequence[TrialCheckpoint | SweepCheckpoint] = existing
        if best:
            listed: list[SweepCheckpoint] = self._rest.list_all(self._sweep_path + "/checkpoints", "checkpoints")
            chosen = [each for each in listed if each["trial"] == self["number"] and each["best"] is not None]
        elif step is not None:
            chosen = [each for each in existing if each["step"] == step]
        if not chosen:
            which = " of its best report" if best else "" if step is None else f" at step {step}"
            steps = ", ".join(str(each["step"]) for each in existing)
            raise Error(f"trial {name} has no checkpoint{which}"
                        + (f"; its checkpoints are of steps {steps}" if existing else ""))
        newest = max(chosen, key=lambda each: (each["attempt"], each["step"]))
        return Checkpoint(self._rest, f"{self._sweep_path}/trials/{self['number']}", name, newest)

    def _repr_html_(self) -> str:
        return _notebook.trials([self])
