"""Runs the Trainer of Hugging Face's Transformers as a rank of a gang; needs `transformers`.

    arguments = TrainingArguments(learning_rate=config["lr"], **training_arguments())
    trainer = Trainer(model, arguments, …, callbacks=[ReportCallback()])
    trainer.train(resume_from_checkpoint=checkpoint())
"""

from __future__ import annotations

import attune._distribution  # first: it raises if pip mixed two packages

import os
import pathlib
import shutil
import typing

import torch.distributed
from transformers import TrainerCallback, TrainingArguments

import attune
from attune import _trainer_data
from attune.torch import device

if typing.TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState

__all__ = ["ReportCallback", "checkpoint", "training_arguments"]


def training_arguments(every: int | str = "epoch") -> dict[str, typing.Any]:
    """Returns options of TrainingArguments that make the Trainer a rank of the gang.

    The Trainer evaluates and saves a checkpoint after each epoch, or with `every=500` after each 500 steps of the
    Trainer. Each evaluation is a step of the trial. The training ends with the last step that the sweep needs.

    The options set the folder of checkpoints: `$ATTUNE_TRIAL_DIR/trainer`, or `trainer_output` by hand. They set the
    seeds, and turn off progress bars and other reporters. Python raises TypeError if you pass an option twice: change
    the dict instead, as in `{**training_arguments(), "seed": 3}`.
    """
    folder = os.environ.get("ATTUNE_TRIAL_DIR")
    options: dict[str, typing.Any] = {
        "output_dir": str(_output_folder(folder)) if folder else "trainer_output", "seed": attune.seed,
        "data_seed": attune.seed, "save_total_limit": 1, "report_to": "none", "disable_tqdm": True,
        "use_cpu": device().type == "cpu"}  # otherwise, without a GPU, each rank would train alone
    if every == "epoch":
        options.update(eval_strategy="epoch", save_strategy="epoch")
    else:
        options.update(eval_strategy="steps", save_strategy="steps", eval_steps=every, save_steps=every)
    if "average_tokens_across_devices" in TrainingArguments.__dataclass_fields__:
        # Otherwise the loss of many models is a multiple of that of one process, by the size of the gang.
        options["average_tokens_across_devices"] = False
    if attune.max_step:
        options.update({"num_train_epochs": attune.max_step} if every == "epoch" else
                       {"max_steps": attune.max_step * every})
    return options


def checkpoint() -> str | None:
    """Returns the `resume_from_checkpoint` of `Trainer.train`: the folder to resume from, or None.

    Raises CheckpointError if a file of the checkpoint has changed since it was saved.
    """
    return str(_trainer_data.resumed_folder()) if attune.checkpoint else None


class ReportCallback(TrainerCallback):
    """Reports each evaluation, with the checkpoint that the Trainer saves after it if one is due.

    `metrics` names the values of an evaluation that are reported, such as `["eval_loss"]`; by default all. `log` names
    values that the Trainer logs, such as `loss`. The callback logs them equally often, at the right fraction of a step
    of the trial. Each step of the Trainer also tells the executor that the rank is alive.

    `Trainer.train` raises the exceptions of `attune.report`: TrialEnded when the trial must end, ValueError if a
    value is not a number, LostPeer, CheckpointError and DiskFull.

    The callback also resumes the Trainer in a gang of another size: at the same sample and position of its schedule.
    """

    def __init__(self, metrics: typing.Collection[str] | None = None, log: typing.Iterable[str] = ()) -> None:
        self._metrics, self._log = metrics, tuple(log)
        self._evaluated: dict[str, float] = {}  # values that are not reported yet
        self._reported_at = 0  # the Trainer's step of the last report
        self._is_training = False
        self._position: _trainer_data.Position  # set when training begins

    def on_init_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                    **_: typing.Any) -> None:
        _trainer_data.convert(args)

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                       train_dataloader: typing.Any = None, lr_scheduler: typing.Any = None, **_: typing.Any) -> None:
        self._is_training = True
        self._reported_at = state.global_step
        self._position = _trainer_data.Position(args, state, train_dataloader, lr_scheduler)
        if _saves_in_output_folder(args) and attune.local_rank == 0:
            self._position.remove_outdated(args.output_dir, state)

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                     **_: typing.Any) -> None:
        self._position.end_epoch()

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                     **_: typing.Any) -> None:
        self._report(state, None)
        self._is_training = False
        _wait_for_all()  # ranks may still read the best model
        _remove_checkpoints(args)

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                      **_: typing.Any) -> None:
        self._report(state, None)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                    **_: typing.Any) -> None:
        attune.progress()

    def on_prediction_step(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                           **_: typing.Any) -> None:
        attune.progress()

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
               logs: dict[str, float] | None = None, **_: typing.Any) -> None:
        logged = logs or {}
        values = {name: logged[name] for name in self._log if name in logged}
        if values and args.eval_strategy == "steps":
            fraction = (state.global_step - self._reported_at) / args.eval_steps
            attune.log(values, attune.step + min(fraction, 1))
        elif values:
            attune.log(values, state.epoch)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                    metrics: dict[str, float] | None = None, **_: typing.Any) -> None:
        """Collects values. The Trainer calls this once for each data set, and a checkpoint may follow the last call."""
        if self._is_training and state.global_step > 0:
            self._evaluated.update({name: value for name, value in (metrics or {}).items()
                                    if self._metrics is None or name in self._metrics})

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                **_: typing.Any) -> None:
        saved = pathlib.Path(args.output_dir) / f"checkpoint-{state.global_step}"
        _wait_for_all()  # each rank has written its part

        def save(folder: pathlib.Path) -> None:
            if attune.rank == 0:
                copy = _link if _saves_in_output_folder(args) else shutil.copy2
                shutil.copytree(saved, folder, copy_function=copy, dirs_exist_ok=True)
                self._position.save(folder, state.global_step)

        kept_path = state.best_model_checkpoint
        try:
            self._report(state, save)
        except attune.TrialEnded as ended:
            kept_path = kept_path if ended.action == "pause" else None
            raise
        finally:
            _remove_checkpoints(args, kept_path)

    def _report(self, state: TrainerState, save: typing.Callable[[pathlib.Path], None] | None) -> None:
        metrics, self._evaluated = self._evaluated, {}
        if metrics:
            self._reported_at = state.global_step
            attune.report(metrics, checkpoint=save, every_rank=save is not None)


def _saves_in_output_folder(args: TrainingArguments) -> bool:
    """Returns whether the Trainer saves in the folder of training_arguments(), which nothing else uses."""
    folder = os.environ.get("ATTUNE_TRIAL_DIR")
    return folder is not None and pathlib.Path(args.output_dir) == _output_folder(folder)


def _output_folder(folder: str) -> pathlib.Path:
    return pathlib.Path(folder) / "trainer"


def _remove_checkpoints(args: TrainingArguments, kept_path: str | None = None) -> None:
    """Removes the Trainer's checkpoints except `kept_path`, because Attune has copies, unless the program keeps several."""
    if _saves_in_output_folder(args) and args.save_total_limit == 1 and attune.local_rank == 0:
        for path in pathlib.Path(args.output_dir).glob("checkpoint-*"):
            if str(path) != kept_path:
                shutil.rmtree(path, ignore_errors=True)


def _wait_for_all() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.barrier()


def _link(source: str, target: str) -> None:
    """Links or copies a file. A link is enough, because the Trainer never changes a file in _output_folder()."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
