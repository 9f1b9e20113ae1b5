"""Ask and tell: a program asks the server for a trial, and tells it the results."""

from __future__ import annotations

import time
import typing

from attune import _metrics
from attune._channel import ERROR_CHARACTERS_MAX
from attune._rest import UNFINISHED_STATES, Error, Rest
from attune._trial import short_seed

if typing.TYPE_CHECKING:
    from attune._contract import Offer, Verdict


class Trial:
    """A trial that Sweep.ask() returned, and that this program runs.

    `number` is its number and `config` its configuration. `milestone` is the step of the next decision, and `max_step`
    is the last step (0: no limit). `seed` is the same in each attempt and below 2^31. `step` is the last reported step.
    A trial that was paused or failed is offered again, and continues after this step or starts again. `verdict` is the
    last decision (`continue`, `stop`, …), and `reason` explains it.

    The methods raise Error if the server refuses or does not answer, for example because the lease has expired and
    another program has the trial.
    """

    def __init__(self, rest: Rest, sweep: str, answer: Offer):
        self._rest, self._path = rest, f"{sweep}/trials/{answer['trial']}"
        self.number, self.config = answer["trial"], answer["config"]
        self.attempt, self.epoch, self.seed = answer["attempt"], answer["epoch"], short_seed(answer["seed"])
        self.milestone, self.max_step = answer["milestone"], answer["max_step"]
        self.step = rest.get(self._path)["step"] if self.attempt > 1 else 0
        self.verdict, self.reason = "continue", ""
        self._began = time.monotonic()

    def report(self, step: int | None, metrics: typing.Mapping[str, typing.Any]) -> bool:
        """Reports metrics at a step. Returns whether the trial continues.

        `step` is an integer above 0, or None if the sweep measures time in a metric (`time_attr`). `metrics` maps names
        to numbers. Raises ValueError if one of them is not allowed.
        """
        body: dict[str, typing.Any] = {"metrics": _metrics.to_json(_metrics.to_floats(metrics)),
                                       "seconds": time.monotonic() - self._began}
        if step is not None:
            body["step"] = _metrics.to_step(step)
        answer = self._tell(body)
        if answer:
            self.step = body.get("step", self.step)
            self.verdict, self.reason = answer["verdict"], answer["reason"]
            self.milestone = answer["milestone"]
        return self.verdict == "continue"

    def progress(self) -> bool:
        """Tells that the trial still runs, which renews its lease. Returns whether the trial continues."""
        self._tell({"state": "running"})
        return self.verdict == "continue"

    def complete(self) -> None:
        """Tells that the trial is complete. Does nothing if the server has already ended the trial."""
        self._end({"state": "completed"})

    def fail(self, message: str = "") -> None:
        """Tells that the trial failed. The server offers it again as often as `failure` in the sweep file allows."""
        # The server rejects lone surrogates, which occur in file names that are not UTF-8.
        message = message.encode("utf-8", "replace").decode()[:ERROR_CHARACTERS_MAX]
        self._end({"state": "failed", "message": message})

    def release(self) -> None:
        """Gives the trial back. It is offered again at once, and this does not use up a restart."""
        self._end({"state": "released"})

    def _end(self, body: dict[str, typing.Any]) -> None:
        if self.verdict == "continue":
            self._tell(body)
            self.verdict = "stop"

    def _tell(self, body: dict[str, typing.Any]) -> Verdict | None:
        try:
            answer: Verdict = self._rest.post(self._path + ":tell", {"epoch": self.epoch, **body})
            return answer
        except Error as error:
            if error.status != 409:
                raise
            trial = self._rest.get(self._path)
            if trial["state"] in UNFINISHED_STATES:
                raise  # another program has the trial now
            self.verdict, self.reason = "stop", trial["reason"]  # a user has ended it
            return None
