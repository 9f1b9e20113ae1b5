"""The Trainer of Transformers in gangs that change their size: samples, steps, schedules and checkpoints.

    scripts/python_torch.py python3 python_trainer_test.py

Skipped where this Python has no torch.
"""

import contextlib
import functools
import os
import pathlib
import sys
import tempfile
import unittest

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients/python"))
import torch._dynamo  # noqa: E402, F401: what the Trainer would import in each rank
import transformers.trainer  # noqa: E402

import attune.transformers  # noqa: E402
from forked_gang import Gang  # noqa: E402

SAMPLES = 24
transformers.logging.set_verbosity_error()


class Model(torch.nn.Module):
    """Records the samples that it is trained with."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.trained = []

    def forward(self, sample, labels):
        if self.training:
            self.trained.append(sample.tolist())
        return {"loss": ((self.weight - labels) ** 2).mean(), "logits": self.weight.expand(len(sample))}


class Worse(Model):
    """A model that is best after its first epoch."""

    def __init__(self):
        super().__init__()
        self.register_buffer("evaluations", torch.zeros(()))

    def forward(self, sample, labels):
        found = super().forward(sample, labels)
        if not self.training:
            self.evaluations += 1
            found["loss"] = self.evaluations + 0 * found["loss"]
        return found


class Rates(transformers.TrainerCallback):
    """Records each step and its learning rate."""

    def __init__(self):
        self.rates = {}

    def on_pre_optimizer_step(self, args, state, control, optimizer, **_):
        self.rates[state.global_step] = optimizer.param_groups[0]["lr"]


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(samples())


def samples():
    return [{"sample": number, "labels": float(number)} for number in range(SAMPLES)]


def train(every="epoch", data=samples, model=Model, kind=transformers.Trainer, evaluates=("eval_loss",), **options):
    """Trains like a script, and returns the record of the training."""
    model, rates = model(), Rates()
    arguments = transformers.TrainingArguments(
        learning_rate=1.0, per_device_train_batch_size=2, logging_steps=1, dataloader_pin_memory=False,
        **{**attune.transformers.training_arguments(every), **options})
    trainer = kind(
        model, arguments, train_dataset=data(), eval_dataset=samples()[:4],
        callbacks=[attune.transformers.ReportCallback(evaluates, log=["learning_rate"]), rates])
    with contextlib.suppress(attune.TrialEnded):
        trainer.train(resume_from_checkpoint=attune.transformers.checkpoint())
    return {"trained": model.trained, "rates": rates.rates, "step": trainer.state.global_step,
            "max_steps": trainer.state.max_steps, "best": trainer.state.best_global_step}


class Trainer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.attempts, self.checkpoint = [], None

    def attempt(self, size, milestone, max_step, script=train, action="pause", **start):
        """Resumes the last attempt and trains up to a milestone."""
        if self.checkpoint:
            start["resume"] = {name: self.checkpoint[name] for name in ("step", "path", "digest")}
        gang = Gang([(rank, size) for rank in range(size)], script, self.folder, action, attempt=len(self.attempts) + 1,
                    milestone=milestone, max_step=max_step, checkpoint_dir=str(self.folder), **start)
        self.assertNotIn(None, gang.found, gang.log)
        self.attempts.append(gang)
        saved = gang.of_type("checkpoint")
        if saved:
            self.checkpoint = saved[-1]
        return gang

    def steps(self):
        """Returns the steps of all reports."""
        return [message["step"] for gang in self.attempts for message in gang.of_type("report")]

    def trained(self):
        """Returns the samples of all attempts, in the order in which the gangs took them."""
        return [number for gang in self.attempts for batches in zip(*(rank["trained"] for rank in gang.found))
                for batch in batches for number in batch]

    def left(self):
        """Returns the names of the files in the Trainer's folder."""
        return sorted(path.name for path in (self.folder / "files/trainer").iterdir())

    def test_an_evaluation_is_reported_with_the_checkpoint_that_follows_it(self):
        class Evaluates(transformers.Trainer):
            def train(self, **options):
                self.evaluate()  # is not a step of the trial, and neither is the evaluation after training
                self.eval_dataset = {"one": samples()[:2], "two": samples()[2:4]}
                super().train(**options)
                self.evaluate()

        gang = self.attempt(1, 0, max_step=4, checkpoint_every=1, script=functools.partial(
            train, every=2, save_steps=4, kind=Evaluates, evaluates=["eval_one_loss", "eval_two_loss"]))
        self.assertEqual([(message["type"], message["step"]) for message in gang.messages
                          if message["type"] in ("report", "checkpoint")],
                         [("report", 1), ("checkpoint", 2), ("report", 2), ("report", 3), ("checkpoint", 4), ("report", 4)])
        for report in gang.of_type("report"):
            self.assertEqual(set(report["metrics"]), {"eval_one_loss", "eval_two_loss"})
        self.assertIn("trainer_state.json", os.listdir(self.checkpoint["path"]))

    def test_epochs_and_schedule_continue_in_gangs_of_other_sizes(self):
        for size, until in ((1, 1), (2, 2), (1, 4)):
            self.attempt(size, until, max_step=4)
        self.assertEqual(self.steps(), [1, 2, 3, 4])
        self.assertEqual([gang.found[0]["step"] for gang in self.attempts], [12, 12, 48])
        self.assertEqual([gang.found[0]["max_steps"] for gang in self.attempts], [48, 24, 48])
        self.check_epochs(self.trained(), 4)
        for gang in self.attempts:
            for step, rate in gang.found[0]["rates"].items():
                self.assertAlmostEqual(rate, 1 - int(step) / gang.found[0]["max_steps"])
        self.assertEqual([round(log["step"] * 12) for gang in self.attempts for log in gang.of_type("log")],
                         [*range(1, 13), *range(14, 25, 2), *range(25, 49)])
        self.assertEqual(self.left(), [])

    def test_steps_continue_within_an_epoch_if_they_end_the_training(self):
        for size, until in ((2, 2), (1, 4), (2, 6)):
            self.attempt(size, until, max_step=6, script=lambda: train(every=4))
        self.assertEqual(self.steps(), [1, 2, 3, 4, 5, 6])
        self.assertEqual([gang.found[0]["step"] for gang in self.attempts], [8, 16, 24])
        trained = self.trained()  # 32 samples, then 16, then 32
        self.check_epochs(trained[:72], 3)
        self.assertEqual(len(set(trained[72:])), 8)
        for gang in self.attempts:
            self.assertEqual(gang.found[0]["rates"].keys(), gang.found[-1]["rates"].keys())
            for step, rate in gang.found[0]["rates"].items():
                self.assertAlmostEqual(rate, 1 - int(step) / 24)
        self.assertEqual([log["step"] for gang in self.attempts for log in gang.of_type("log")],
                         [step / 4 for step in range(1, 25)])

    def test_epochs_continue_if_steps_are_reported(self):
        script = functools.partial(train, every=5, num_train_epochs=2)
        self.attempt(1, 3, max_step=0, script=script)  # 15 of 24 steps, 30 of 48 samples
        gang = self.attempt(2, 0, max_step=0, script=script)
        self.assertEqual(self.attempts[0].found[0]["step"], 15)
        self.assertEqual((gang.found[0]["step"], gang.found[0]["max_steps"]), (12, 12))
        self.check_epochs(self.trained()[:48], 2)
        self.assertEqual(len(self.trained()), 50)  # the step from the 28th sample on begins at the 30th
        self.assertEqual(self.steps(), [1, 2, 3, 4, 5])  # the Trainer also evaluates at its end
        rates = gang.found[0]["rates"]
        self.assertEqual(min(map(int, rates)), 7)
        self.assertAlmostEqual(rates["7"], 1 - 7 / 12)

    def test_a_stream_continues_after_the_samples_that_were_taken(self):
        script = functools.partial(train, every=2, data=Stream)
        for size, until in ((2, 1), (1, 2), (2, 3)):
            self.attempt(size, until, max_step=3, script=script)
        self.assertEqual(sorted(self.trained()), list(range(20)))

    def test_a_gang_of_the_same_size_continues_within_an_epoch(self):
        for until in (4, 6):
            self.attempt(2, until, max_step=6, script=lambda: train(every=2))
        self.check_epochs(self.trained(), 2)

    def test_the_best_of_the_trainers_checkpoints_stays_until_the_trial_stops(self):
        script = functools.partial(train, load_best_model_at_end=True, metric_for_best_model="eval_loss", model=Worse)
        self.attempt(1, 2, max_step=4, script=script)
        self.assertEqual(self.left(), ["checkpoint-12"])
        gang = self.attempt(2, 3, max_step=4, script=script)
        self.assertEqual((self.left(), gang.found[0]["best"]), (["checkpoint-6"], 6))
        self.attempt(2, 4, max_step=4, script=script, action="stop")
        self.assertEqual(self.left(), [])

    def test_keeps_as_many_of_the_trainers_checkpoints_as_the_program_wants(self):
        script = functools.partial(train, save_total_limit=2)
        self.attempt(1, 3, max_step=5, script=script)
        self.assertEqual(self.left(), ["checkpoint-24", "checkpoint-36"])
        lost = self.folder / "files/trainer/checkpoint-48"
        lost.mkdir()  # left by a failed attempt that had reached a later step
        (lost / "training_args.bin").write_text("lost")
        before = self.contents(self.checkpoint)
        checkpoint = self.checkpoint
        self.attempt(1, 4, max_step=5, script=script)
        self.assertEqual(self.left(), ["checkpoint-36", "checkpoint-48"])
        self.assertEqual(self.contents(checkpoint), before)
        self.assertNotEqual((lost / "training_args.bin").read_text("latin-1"), "lost")

    def test_a_loader_of_the_program_gets_a_warning_in_a_gang_of_another_size(self):
        class Loads(transformers.Trainer):
            def get_train_dataloader(self):
                return torch.utils.data.DataLoader(self.train_dataset, batch_size=2)

        script = functools.partial(train, kind=Loads)
        warning = "gang of 1,"
        self.assertNotIn(warning, self.attempt(1, 1, max_step=2, script=script).log)
        self.assertIn(warning, self.attempt(2, 2, max_step=2, script=script).log)

    def check_epochs(self, trained, epochs):
        """Checks that each sample is used once in each epoch, and that the order differs."""
        self.assertEqual(len(trained), epochs * SAMPLES)
        orders = {tuple(trained[begin:begin + SAMPLES]) for begin in range(0, len(trained), SAMPLES)}
        self.assertEqual(len(orders), epochs)
        for order in orders:
            self.assertEqual(sorted(order), list(range(SAMPLES)))

    @staticmethod
    def contents(checkpoint):
        return {path.name: path.read_bytes() for path in pathlib.Path(checkpoint["path"]).iterdir()}


if __name__ == "__main__":
    unittest.main()
