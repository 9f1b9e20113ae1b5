"""One rank of a gang that trains a tiny transformer: it learns whether the first token is high."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import attune
from attune.transformers import ReportCallback, checkpoint, training_arguments


def samples(count):
    tokens = torch.randint(5, 50, (count, 8), generator=torch.Generator().manual_seed(count))
    return [{"input_ids": row, "labels": (row[0] > 27).long()} for row in tokens]


def network():
    return BertForSequenceClassification(BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16))


def main():
    config = attune.init({"lr": 0.003})
    model = network()
    options = {"num_train_epochs": 2, **training_arguments()}
    arguments = TrainingArguments(learning_rate=config["lr"], per_device_train_batch_size=16, logging_steps=2, **options)
    trainer = Trainer(model, arguments, train_dataset=samples(128), eval_dataset=samples(32),
                      callbacks=[ReportCallback(["eval_loss"], log=["loss"])])
    trainer.train(resume_from_checkpoint=checkpoint())
    print("trained", trainer.state.global_step, flush=True)


if __name__ == "__main__":
    main()
