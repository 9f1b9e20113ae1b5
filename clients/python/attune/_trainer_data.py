"""Resumes the Trainer of Transformers in a gang of another size; needs torch.

The Trainer derives its epoch, its position in the data and its end from its number of steps. In a gang of another size,
a step has another number of samples. So checkpoints record how many samples were taken. The Trainer resumes from a copy
of the checkpoint, with the number of steps that the new gang needs for these samples.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import json
import os
import pathlib
import shutil
import sys
import tempfile
import typing

from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import IterableDataset, Sampler

import attune

if typing.TYPE_CHECKING:
    from transformers import TrainerState, TrainingArguments

_FILE = "attune-data.json"
_STATE_FILE = "trainer_state.json"  # a file of the Trainer


class _Plan:
    """How many samples a step of a Trainer takes, and how many steps an epoch has."""

    def __init__(self, args: TrainingArguments, samples: int | None) -> None:
        ranks = 1 if args.accelerator_config.split_batches else args.world_size
        self.samples = samples  # number of samples of an epoch; None if unknown
        self._batch: int = args.train_batch_size * ranks  # batch size of the gang
        self._samples_per_step: int = self._batch * args.gradient_accumulation_steps
        if samples is not None:
            self.batches: int = samples // self._batch if args.dataloader_drop_last else -(-samples // self._batch)
            self._steps: int = max(-(-self.batches // args.gradient_accumulation_steps), 1)

    @property
    def knows_epochs(self) -> bool:
        return self.samples is not None

    def samples_at(self, step: int) -> int:
        """Returns how many samples the Trainer has taken up to this step, in all epochs."""
        if self.samples is None:
            return step * self._samples_per_step
        epochs, steps = divmod(step, self._steps)
        return epochs * self.samples + min(steps * self._samples_per_step, self.samples)

    def step_at(self, samples: int) -> int:
        """Returns the last step at which the Trainer has taken at most this number of samples."""
        epochs, rest = divmod(samples, typing.cast(int, self.samples))
        return epochs * self._steps + rest // self._samples_per_step

    def batches_at(self, samples: int) -> int:
        """Returns how many batches each rank has taken when the gang has taken this number of samples."""
        return samples // self._batch


class _ShiftedSampler(Sampler):
    """A sampler whose epochs begin `samples` earlier in the sequence of the samples of all epochs."""

    def __init__(self, sampler: typing.Any, samples: int) -> None:
        self._sampler, self._shift, self._epoch = sampler, samples, 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> typing.Iterator[typing.Any]:
        epoch, place = divmod(self._epoch * len(self) - self._shift, len(self))
        yield from itertools.islice(self._samples_of_epoch(epoch), place, None)
        yield from itertools.islice(self._samples_of_epoch(epoch + 1), place)

    def _samples_of_epoch(self, epoch: int) -> typing.Iterator[typing.Any]:
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(epoch)
        return iter(self._sampler)


class Position:
    """The position of a Trainer in its data. Create it when training begins or resumes from resumed_folder()."""

    def __init__(self, args: TrainingArguments, state: TrainerState, loader: typing.Any, schedule: typing.Any) -> None:
        self._plan, self._shift = _plan_for(args, loader), 0
        self._loader = loader
        saved = _read_data_position()
        if not saved or not self._plan or state.global_step != _read_trainer_state(resumed_folder())["global_step"]:
            return
        self._shift = self._plan.samples_at(state.global_step) - saved["taken"]
        if self._shift and not self._plan.knows_epochs:
            loader.skip_batches = self._plan.batches_at(saved["taken"])
        elif self._shift and not args.ignore_data_skip and _has_sampler(loader):
            loader.set_sampler(_ShiftedSampler(loader.get_sampler(), self._shift))
        else:
            self._shift = 0  # the Trainer uses the position that follows from its steps
        _advance_schedule(schedule, state.global_step - _read_trainer_state(attune.checkpoint)["global_step"])

    def end_epoch(self) -> None:
        """Stops skipping batches, which is only correct in the first epoch."""
        if hasattr(self._loader, "skip_batches"):
            self._loader.skip_batches = 0

    def save(self, folder: pathlib.Path, step: int) -> None:
        if self._plan:
            (folder / _FILE).write_text(json.dumps(
                {"taken": self._plan.samples_at(step) - self._shift, "samples": self._plan.samples}))

    def remove_outdated(self, folder: str, state: TrainerState) -> None:
        """Removes checkpoints of earlier attempts from `folder` whose names the Trainer will use again.

        These are the checkpoints of later steps. If a step has another number of samples now, these are all but the best.
        """
        resumed_state = _read_trainer_state(attune.checkpoint) if state.global_step else {}
        is_same_step = resumed_state.get("global_step") == state.global_step
        best = pathlib.Path(folder) / f"checkpoint-{resumed_state.get('best_global_step')}"
        for path in pathlib.Path(folder).glob("checkpoint-*"):
            step = path.name.partition("-")[2]
            if path != best and not (is_same_step and step.isdigit() and int(step) <= state.global_step):
                shutil.rmtree(path, ignore_errors=True)
        if not is_same_step and best.exists():
            best.rename(best.with_name(f"checkpoint-{state.best_global_step}"))


@functools.lru_cache(None)
def _read_data_position() -> dict[str, typing.Any] | None:
    """Returns the content of _FILE in the checkpoint, or None if there is no such file."""
    path = attune.checkpoint and attune.checkpoint / _FILE
    saved: dict[str, typing.Any] | None = json.loads(path.read_text()) if path and path.exists() else None
    return saved


@functools.lru_cache(None)
def resumed_folder() -> pathlib.Path | None:
    """Returns the checkpoint to resume from: a folder of links, in which convert() may replace the Trainer's state."""
    checkpoint = attune.checkpoint
    if not checkpoint or not _read_data_position():
        return checkpoint
    folder = pathlib.Path(os.environ.get("ATTUNE_TRIAL_DIR") or tempfile.mkdtemp()) / f"resumed-{attune.rank}"
    shutil.rmtree(folder, ignore_errors=True)  # left by an earlier attempt
    folder.mkdir(parents=True)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in checkpoint.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


def convert(args: TrainingArguments) -> None:
    """Converts the step in resumed_folder() to steps of a Trainer with these arguments.

    The step does not change if `max_steps` ends the training. Position then corrects the position in the data.
    """
    saved, folder = _read_data_position(), resumed_folder()
    if not saved or not folder:
        _warn_of_another_size()
        return
    plan, taken, state = _Plan(args, saved["samples"]), saved["taken"], _read_trainer_state(attune.checkpoint)
    if not plan.knows_epochs:
        if plan.samples_at(state["global_step"]) != taken:
            args.ignore_data_skip = True  # because Position skips another number
        return
    step = plan.step_at(taken)
    if args.max_steps > 0 or step == state["global_step"]:
        return
    if state.get("best_global_step"):
        state["best_global_step"] = round(state["best_global_step"] * step / state["global_step"])
        state["best_model_checkpoint"] = None  # the Trainer finds it by the step
    state["global_step"] = step
    path = folder / _STATE_FILE
    path.unlink()
    path.write_text(json.dumps(state))


def _read_trainer_state(checkpoint: pathlib.Path | None) -> dict[str, typing.Any]:
    """Returns the Trainer's state in a checkpoint; empty without a checkpoint."""
    state: dict[str, typing.Any] = json.loads((checkpoint / _STATE_FILE).read_text()) if checkpoint else {}
    return state


def _warn_of_another_size() -> None:
    if not attune.checkpoint or attune.rank != 0:
        return
    size = json.loads((attune.checkpoint / "manifest.json").read_text())["world_size"]
    if size != attune.world_size:
        print(f"attune: this gang has {attune.world_size} ranks, and the checkpoint is of a gang of {size}, so a step has "
              "another number of samples now. The position in the data, the schedule and the end follow from the number "
              "of steps, because the checkpoint of a Trainer with its own data loader does not record samples",
              file=sys.stderr, flush=True)


def _plan_for(args: TrainingArguments, loader: typing.Any) -> _Plan | None:
    """Returns the plan of a Trainer with this loader; None if the program made the loader."""
    if not hasattr(loader, "set_sampler") or not args.accelerator_config.even_batches:
        return None
    try:
        plan = _Plan(args, len(loader.dataset))
    except TypeError:  # an IterableDataset
        return _Plan(args, None)
    return plan if plan.batches == len(loader) else None


def _has_sampler(loader: typing.Any) -> bool:
    return not isinstance(loader.dataset, IterableDataset) and isinstance(loader.get_sampler(), Sampler)


def _advance_schedule(schedule: typing.Any, steps: int) -> None:
    """Moves a schedule of the learning rate ahead by `steps`, if Transformers made it."""
    if not steps or not isinstance(schedule, LambdaLR):
        return
    schedule.last_epoch += steps
    schedule._step_count += steps
    schedule._last_lr = [base * factor(schedule.last_epoch)
                         for base, factor in zip(schedule.base_lrs, schedule.lr_lambdas)]
    for group, rate in zip(schedule.optimizer.param_groups, schedule._last_lr):
        group["lr"] = rate
