"""The Trainer of Hugging Face's Transformers as a rank of a gang of Attune's; needs `transformers`.

    arguments = TrainingArguments(learning_rate=config["lr"], **training_arguments())
    trainer = Trainer(model, arguments, …, callbacks=[ReportCallback()])
    trainer.train(resume_from_checkpoint=checkpoint())
"""

import attune._distribution  # first: it may refuse

import os
import pathlib
import shutil

import torch.distributed
from transformers import TrainerCallback, TrainingArguments

import attune
from attune import _trainer_data
from attune.torch import device


def training_arguments(every="epoch"):
    """Options of TrainingArguments: an evaluation, which is a step of the trial, and a checkpoint after each epoch.

    The folder of checkpoints is one in `$ATTUNE_TRIAL_DIR`, the same in all attempts. Bars and other reporters are off.
    With `every=500` they come after each 500 of the Trainer's own steps instead, for as long as the trial may run.
    """
    folder = os.environ.get("ATTUNE_TRIAL_DIR")
    options = {"output_dir": str(_output_folder(folder)) if folder else "trainer_output", "seed": attune.seed,
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


def checkpoint():
    """For `resume_from_checkpoint` of `Trainer.train`: the folder to resume from, or None."""
    return str(_trainer_data.resumed_folder()) if attune.checkpoint else None


class ReportCallback(TrainerCallback):
    """Reports each evaluation, with the checkpoint that the Trainer saves after it if one is due.

    `metrics` are the names that count, as in `["eval_loss"]`; all, if left out. The callback also logs the values in
    `log`, such as `loss`, as often as the Trainer logs them. Each step is a sign of life. When the trial has to end,
    `train` raises the exception of `attune.report`.

    The callback also resumes the Trainer in a gang of another size: at the same sample and place of its schedule.
    """

    def __init__(self, metrics=None, log=()):
        self._metrics, self._log = metrics, tuple(log)
        self._evaluated = {}  # and not reported yet
        self._reported_at = 0  # a step of the Trainer's
        self._trains = False
        self._position = None  # in the data

    def on_init_end(self, args, state, control, **_):
        _trainer_data.convert(args)

    def on_train_begin(self, args, state, control, train_dataloader=None, lr_scheduler=None, **_):
        self._trains = True
        self._reported_at = state.global_step
        self._position = _trainer_data.Position(args, state, train_dataloader, lr_scheduler)
        if _is_ours(args) and attune.local_rank == 0:
            self._position.remove_outdated(args.output_dir, state)

    def on_epoch_end(self, args, state, control, **_):
        self._position.end_epoch()

    def on_train_end(self, args, state, control, **_):
        self._report(state, None)
        self._trains = False
        _wait_for_all()  # ranks may still read the best model
        _remove_checkpoints(args)

    def on_step_begin(self, args, state, control, **_):
        self._report(state, None)

    def on_step_end(self, args, state, control, **_):
        attune.progress()

    def on_prediction_step(self, args, state, control, **_):
        attune.progress()

    def on_log(self, args, state, control, logs=None, **_):
        values = {name: logs[name] for name in self._log if name in (logs or {})}
        if values and args.eval_strategy == "steps":
            part = (state.global_step - self._reported_at) / args.eval_steps
            attune.log(values, attune.step + min(part, 1))
        elif values:
            attune.log(values, state.epoch)

    def on_evaluate(self, args, state, control, metrics=None, **_):
        """Called once for each of several data sets. A checkpoint may follow the last call."""
        if self._trains and state.global_step > 0:
            self._evaluated.update({name: value for name, value in metrics.items()
                                    if self._metrics is None or name in self._metrics})

    def on_save(self, args, state, control, **_):
        saved = pathlib.Path(args.output_dir) / f"checkpoint-{state.global_step}"
        _wait_for_all()  # each rank has written its part

        def save(folder):
            if attune.rank == 0:
                copy = _link if _is_ours(args) else shutil.copy2
                shutil.copytree(saved, folder, copy_function=copy, dirs_exist_ok=True)
                self._position.save(folder, state.global_step)

        keep = state.best_model_checkpoint
        try:
            self._report(state, save)
        except attune.TrialEnded as ended:
            keep = keep if ended.action == "pause" else None
            raise
        finally:
            _remove_checkpoints(args, keep)

    def _report(self, state, save):
        metrics, self._evaluated = self._evaluated, {}
        if metrics:
            self._reported_at = state.global_step
            attune.report(metrics, checkpoint=save, every_rank=save is not None)


def _is_ours(args):
    """Whether the Trainer saves where training_arguments() says, in a folder that nothing else uses."""
    folder = os.environ.get("ATTUNE_TRIAL_DIR")
    return bool(folder) and pathlib.Path(args.output_dir) == _output_folder(folder)


def _output_folder(folder):
    return pathlib.Path(folder) / "trainer"


def _remove_checkpoints(args, keep=None):
    """Removes the Trainer's copies, so that Attune decides which checkpoints stay, unless the program wants several."""
    if _is_ours(args) and args.save_total_limit == 1 and attune.local_rank == 0:
        for path in pathlib.Path(args.output_dir).glob("checkpoint-*"):
            if str(path) != keep:
                shutil.rmtree(path, ignore_errors=True)


def _wait_for_all():
    if torch.distributed.is_initialized():
        torch.distributed.barrier()


def _link(source, target):
    """Gives a file a second name. The Trainer never writes a file in _output_folder() again."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
