"""A tiny transformer, trained by the Trainer of Transformers."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

import attune
import rank_notes
from attune.transformers import ReportCallback, checkpoint, training_arguments


class Notes(TrainerCallback):
    def on_step_begin(self, *_, **__):
        rank_notes.after_step()


def samples(count):
    tokens = torch.randint(5, 50, (count, 4), generator=torch.Generator().manual_seed(count))
    return [{"input_ids": row, "labels": (row[0] > 27).long()} for row in tokens]


def main():
    config = attune.init({"lr": 0.1})
    model = BertForSequenceClassification(BertConfig(
        vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8))
    options = {"num_train_epochs": 2, **training_arguments()}
    trainer = Trainer(model, TrainingArguments(learning_rate=config["lr"], per_device_train_batch_size=8, **options),
                      train_dataset=samples(32), eval_dataset=samples(16),
                      callbacks=[ReportCallback(["eval_loss"]), Notes()])
    with rank_notes.training(model):
        trainer.train(resume_from_checkpoint=checkpoint())


if __name__ == "__main__":
    main()
