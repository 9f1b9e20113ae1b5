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
from transformers import TrainerCallback

import attune
from attune.torch import device


def training_arguments(every="epoch"):
    """Options of TrainingArguments: an evaluation, which is a step of the trial, and a checkpoint after each epoch, in a
    folder of the attempt's in `$ATTUNE_TRIAL_DIR`; bars and other reporters are off.

    With `every=500` they come after as many of the Trainer's own steps instead, for as long as the trial may go on.
    """
    folder = os.environ.get("ATTUNE_TRIAL_DIR")
    options = {"output_dir": f"{folder}/attempt-{attune.attempt}" if folder else "trainer_output", "seed": attune.seed,
               "save_total_limit": 1, "report_to": "none", "disable_tqdm": True,
               "use_cpu": device().type == "cpu"}  # without, and without a GPU, it would train each rank alone
    if every == "epoch":
        options.update(eval_strategy="epoch", save_strategy="epoch")
    else:
        options.update(eval_strategy="steps", save_strategy="steps", eval_steps=every, save_steps=every)
    if attune.max_step:
        options.update({"num_train_epochs": attune.max_step} if every == "epoch" else
                       {"max_steps": attune.max_step * every})
    return options


def checkpoint():
    """For `resume_from_checkpoint` of `Trainer.train`: the folder to go on from, or None."""
    return str(attune.checkpoint) if attune.checkpoint else None


class ReportCallback(TrainerCallback):
    """Reports each evaluation, with the checkpoint that the Trainer saves after it where one is due.

    `metrics` are the names that count, as in `["eval_loss"]`; all, if left out. Those in `log`, such as `loss`, are
    logged besides, as often as the Trainer logs them. Each of its steps is a sign of life. When the trial is to end,
    `train` raises what `attune.report` does.
    """

    def __init__(self, metrics=None, log=()):
        self._metrics, self._log = metrics, tuple(log)
        self._evaluated = {}  # and not reported yet
        self._trains = False

    def on_train_begin(self, args, state, control, **_):
        self._trains = True

    def on_train_end(self, args, state, control, **_):
        self._report(None)
        self._trains = False

    def on_step_begin(self, args, state, control, **_):
        self._report(None)

    def on_step_end(self, args, state, control, **_):
        attune.progress()

    def on_prediction_step(self, args, state, control, **_):
        attune.progress()

    def on_log(self, args, state, control, logs=None, **_):
        values = {name: logs[name] for name in self._log if name in (logs or {})}
        if values:
            in_steps = args.eval_strategy == "steps"
            attune.log(values, state.global_step / args.eval_steps if in_steps else state.epoch)

    def on_evaluate(self, args, state, control, metrics=None, **_):
        """Of several data sets once for each; a checkpoint may follow the last."""
        if self._trains and state.global_step > 0:
            self._evaluated.update({name: value for name, value in metrics.items()
                                    if self._metrics is None or name in self._metrics})

    def on_save(self, args, state, control, **_):
        saved = pathlib.Path(args.output_dir) / f"checkpoint-{state.global_step}"

        def save(folder):
            if torch.distributed.is_initialized():
                torch.distributed.barrier()  # each rank has written what is its own
            if attune.rank == 0:
                shutil.copytree(saved, folder, copy_function=_link, dirs_exist_ok=True)

        self._report(save)

    def _report(self, save):
        metrics, self._evaluated = self._evaluated, {}
        if metrics:
            attune.report(metrics, checkpoint=save, every_rank=save is not None)


def _link(source, target):
    """An attempt writes none of its files twice, so that one file may have both names."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
