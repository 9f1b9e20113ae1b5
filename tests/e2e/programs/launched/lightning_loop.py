"""A linear layer, trained by Lightning."""

import pytorch_lightning
import torch

import attune
import rank_notes
from attune.lightning import ReportCallback, checkpoint, trainer_options


class Sum(pytorch_lightning.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        self.network = torch.nn.Linear(2, 1)

    def training_step(self, pairs, _):
        loss = (self.network(pairs) - pairs.sum(1, keepdim=True)).square().mean()
        self.log("loss", loss, on_epoch=True)
        return loss

    def on_train_epoch_start(self):
        rank_notes.after_step()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)


def main():
    config = attune.init({"lr": 0.1})
    pytorch_lightning.seed_everything(0)
    module = Sum(config["lr"])
    trainer = pytorch_lightning.Trainer(max_epochs=attune.max_step or 2, callbacks=[ReportCallback(["loss"])],
                                        enable_model_summary=False, **trainer_options())
    pairs = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    with rank_notes.training(module):
        trainer.fit(module, torch.utils.data.DataLoader(pairs, batch_size=8), ckpt_path=checkpoint())


if __name__ == "__main__":
    main()
