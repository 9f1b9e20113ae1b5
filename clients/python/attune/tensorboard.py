"""What a sweep's trials report, as files that TensorBoard shows: a run a trial, with its hyperparameters.

    python3 -m attune.tensorboard s1 runs    # until the sweep has ended
    tensorboard --logdir runs

Needs torch and tensorboard, or tensorboardX, which write these files. docs/python.md tells the story.
"""

import attune._distribution  # first: it may refuse

import argparse
import datetime
import pathlib
import sys

from attune.client import GOES_ON, Error, Server, moments

__all__ = ["write"]


def write(sweep, folder, follow=True):
    """Writes the reports of all trials of an attune.client.Sweep into `folder`, run by run: `s1/trial-7`.

    With `follow`, until the sweep has ended; else what there is now. What an earlier call has written of the
    sweep is replaced. The reports carry the times at which the server has had them. What a trial has logged
    between reports is there as `logged/…`, counted as it came: TensorBoard's steps are whole. Once a trial has ended its
    configuration stands among TensorBoard's hyperparameters, with the metrics of its best report as `best/…`.
    Returns what the sweep's get() says in the end.
    """
    runs = {}
    for _ in moments():
        answer = sweep.get()  # before its trials: the last ones are read after its end
        for trial in sweep.trials():
            number = trial["number"]
            if number not in runs:
                runs[number] = _Run(sweep, number, pathlib.Path(folder, sweep.id, f"trial-{number}"))
            runs[number].follow(trial, logs=bool(answer["logged_metrics"]))
        if not follow or answer["state"] not in GOES_ON:
            break
    for run in runs.values():
        run.close()
    return answer


class _Run:
    def __init__(self, sweep, number, folder):
        for earlier in folder.glob("events.out.tfevents.*"):
            earlier.unlink()
        self._sweep, self._number = sweep, number
        # The hyperparameters go to a file of their own, which may be made in the same second.
        self._writer = _writer_class()(str(folder), filename_suffix=".reports")
        self._seen, self._written = None, 0
        self._logged, self._logged_seq = 0, 0
        self._summed_up = False

    def follow(self, trial, logs):
        if trial != self._seen:
            self._seen = trial
            self._write_reports()
        elif trial["state"] != "running":
            return
        if logs or trial["state"] not in GOES_ON:
            self._write_logged()
        self._writer.flush()

    def _write_reports(self):
        detail = self._sweep.trial(self._number)
        for report in detail["history"][self._written:]:
            for name, value in report["metrics"].items():
                self._writer.add_scalar(name, value, report["step"], _seconds(report["time"]))
        self._written = len(detail["history"])
        if detail["state"] not in GOES_ON and not self._summed_up:
            self._summed_up = True
            self._sum_up(detail)

    def _write_logged(self):
        for point in self._sweep.logged(self._number, after=self._logged_seq):
            self._logged_seq = point["seq"]
            self._logged += 1
            for name, value in point["metrics"].items():
                self._writer.add_scalar(f"logged/{name}", value, self._logged, _seconds(point["time"]))

    def _sum_up(self, detail):
        best = detail["best"]
        metrics = {} if best is None else {f"best/{self._sweep.metric}": float(best)}
        config = {name: value if isinstance(value, (bool, int, float, str)) else str(value)
                  for name, value in detail["config"].items()}
        here = {"name" if type(self._writer).__module__.startswith("tensorboardX") else "run_name": "."}
        self._writer.add_hparams(config, metrics, **here)

    def close(self):
        self._writer.close()


def _writer_class():
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise ImportError("neither torch with tensorboard nor tensorboardX is installed; try "
                              "`pip install tensorboardX`") from None
    return SummaryWriter


def _seconds(time):
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def _main():
    parser = argparse.ArgumentParser(
        prog="python3 -m attune.tensorboard",
        description="Writes what a sweep's trials report as files that TensorBoard shows, until it has ended.")
    parser.add_argument("sweep", help="such as s1")
    parser.add_argument("folder", help="for tensorboard --logdir")
    parser.add_argument("--once", action="store_true", help="what there is now, and no more")
    parser.add_argument("--server", help="HOST:PORT; else as `attune` finds it")
    parser.add_argument("--token-file")
    parser.add_argument("--data-dir", default="attune-data")
    asked = parser.parse_args()
    try:
        sweep = Server(asked.server, token_file=asked.token_file, data_dir=asked.data_dir).sweep(asked.sweep)
        answer = write(sweep, asked.folder, follow=not asked.once)
    except (Error, ImportError) as error:
        sys.exit(f"attune: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    trials = sum(answer["trials"].values())
    print(f"{trials} {'trial' if trials == 1 else 'trials'} of {asked.sweep}, which is {answer['state']}: "
          f"tensorboard --logdir {asked.folder}")


if __name__ == "__main__":
    _main()
