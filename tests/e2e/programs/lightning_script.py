"""One rank of a gang that trains a LightningModule: `lightning_script.py [train_epoch_end|validation_end]`."""

import sys

import pytorch_lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

import attune
from attune.lightning import ReportCallback, checkpoint, trainer_options


class Product(pytorch_lightning.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        self.network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))

    def loss(self, batch):
        pairs, products = batch
        return torch.nn.functional.mse_loss(self.network(pairs), products)

    def training_step(self, batch, _):
        loss = self.loss(batch)
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", self.loss(batch), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.lr)


def main():
    config = attune.init({"lr": 0.01})
    pytorch_lightning.seed_everything(attune.seed)
    pairs = torch.randn(256, 2, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(pairs, pairs.prod(1, keepdim=True))
    on = sys.argv[1] if len(sys.argv) > 1 else "train_epoch_end"
    trainer = pytorch_lightning.Trainer(
        max_epochs=attune.max_step or 2, log_every_n_steps=2,
        callbacks=[ReportCallback(["loss", "val_loss"], log=["loss"], on=on)], **trainer_options())
    trainer.fit(Product(config["lr"]), DataLoader(data, batch_size=32, shuffle=True), DataLoader(data, batch_size=64),
                ckpt_path=checkpoint())
    print("fitted", trainer.current_epoch, trainer.global_step, flush=True)


if __name__ == "__main__":
    main()
