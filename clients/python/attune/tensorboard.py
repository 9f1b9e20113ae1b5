"""Writes the reports of a sweep's trials for TensorBoard: a run for each trial, with its hyperparameters.

    python3 -m attune.tensorboard s1 runs    # until the sweep has ended
    tensorboard --logdir runs

Needs torch and tensorboard, or tensorboardX, which write these files. docs/reference/python.md is the user guide.
"""

from __future__ import annotations

import attune._distribution  # first: it raises if pip mixed two packages

import argparse
import datetime
import importlib
import os
import pathlib
import sys
import typing

from attune._rest import UNFINISHED_STATES
from attune.client import Error, Server, Sweep, poll_times

if typing.TYPE_CHECKING:
    from attune._contract import SweepDetail
    from attune._contract import Trial as TrialRow
    from attune.client import TrialDetail

__all__ = ["write"]


def write(sweep: Sweep, folder: str | os.PathLike[str], follow: bool = True) -> SweepDetail:
    """Writes the reports of all trials of `sweep` into `folder`, with a run for each trial: `s1/trial-7`.

    With `follow` it returns when the sweep has ended, otherwise when it has written the present reports. It replaces the
    files of earlier calls for the sweep. Reports have the times at which the server received them. Values that a trial
    logged between reports are `logged/…`. Their steps are 1, 2, 3, …, because TensorBoard's steps are integers. When a
    trial has ended, TensorBoard shows its configuration as hyperparameters, with its best value as `best/…`.

    Returns the sweep's last get(). Raises ImportError if no library that writes TensorBoard's files is installed, and
    Error if the server refuses or does not answer.
    """
    runs: dict[int, _Run] = {}
    for _ in poll_times():
        answer = sweep.get()  # before its trials, so that the last reports are read after the sweep's end
        for trial in sweep.trials():
            number = trial["number"]
            if number not in runs:
                runs[number] = _Run(sweep, number, pathlib.Path(folder, sweep.id, f"trial-{number}"))
            runs[number].follow(trial, logs=bool(answer["logged_metrics"]))
        if not follow or answer["state"] not in UNFINISHED_STATES:
            break
    for run in runs.values():
        run.close()
    return answer


class _Run:
    def __init__(self, sweep: Sweep, number: int, folder: pathlib.Path) -> None:
        for earlier in folder.glob("events.out.tfevents.*"):
            earlier.unlink()
        self._sweep, self._number = sweep, number
        # The suffix avoids the name of the file for hyperparameters, which may be created in the same second.
        self._writer = _writer_class()(str(folder), filename_suffix=".reports")
        self._last_row: TrialRow | None = None
        self._written = 0
        self._logged, self._logged_seq = 0, 0
        self._has_hyperparameters = False

    def follow(self, trial: TrialRow, logs: bool) -> None:
        if trial != self._last_row:
            self._last_row = trial
            self._write_reports()
        elif trial["state"] != "running":
            return
        if logs or trial["state"] not in UNFINISHED_STATES:
            self._write_logged()
        self._writer.flush()

    def _write_reports(self) -> None:
        detail = self._sweep.trial(self._number)
        for report in detail["history"][self._written:]:
            for name, value in report["metrics"].items():
                self._writer.add_scalar(name, value, report["step"], _seconds(report["time"]))
        self._written = len(detail["history"])
        if detail["state"] not in UNFINISHED_STATES and not self._has_hyperparameters:
            self._has_hyperparameters = True
            self._write_hyperparameters(detail)

    def _write_logged(self) -> None:
        for point in self._sweep.logged(self._number, after=self._logged_seq):
            self._logged_seq = point["seq"]
            self._logged += 1
            for name, value in point["metrics"].items():
                self._writer.add_scalar(f"logged/{name}", value, self._logged, _seconds(point["time"]))

    def _write_hyperparameters(self, detail: TrialDetail) -> None:
        best = detail["best"]
        metrics = {} if best is None else {f"best/{self._sweep.metric}": float(best)}
        config = {name: value if isinstance(value, (bool, int, float, str)) else str(value)
                  for name, value in detail["config"].items()}
        run_name = {"name" if type(self._writer).__module__.startswith("tensorboardX") else "run_name": "."}
        self._writer.add_hparams(config, metrics, **run_name)

    def close(self) -> None:
        self._writer.close()


def _writer_class() -> typing.Any:
    for module in "torch.utils.tensorboard", "tensorboardX":
        try:
            return importlib.import_module(module).SummaryWriter
        except ImportError:
            pass
    raise ImportError("neither torch with tensorboard nor tensorboardX is installed; run `pip install tensorboardX`")


def _seconds(time: str) -> float:
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def _main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m attune.tensorboard",
        description="Writes the reports of a sweep's trials for TensorBoard, until the sweep has ended.")
    parser.add_argument("sweep", help="the id of the sweep, such as s1")
    parser.add_argument("folder", help="the folder for tensorboard --logdir")
    parser.add_argument("--once", action="store_true", help="write the present reports only")
    parser.add_argument("--server", help="HOST:PORT; the default is found as by `attune`")
    parser.add_argument("--token-file")
    parser.add_argument("--data-dir", default="attune-data")
    options = parser.parse_args()
    try:
        sweep = Server(options.server, token_file=options.token_file, data_dir=options.data_dir).sweep(options.sweep)
        answer = write(sweep, options.folder, follow=not options.once)
    except (Error, ImportError) as error:
        sys.exit(f"attune: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    counts = typing.cast(typing.Dict[str, int], answer["trials"])
    trials = sum(counts.values())
    print(f"{trials} {'trial' if trials == 1 else 'trials'} of {options.sweep} ({answer['state']}); "
          f"to see them, run `tensorboard --logdir {options.folder}`")


if __name__ == "__main__":
    _main()
