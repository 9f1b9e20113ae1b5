"""A script for torchrun with Lightning's Trainer. It does not use Attune."""

import pytorch_lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Line(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = torch.nn.Linear(1, 1)

    def training_step(self, batch, _):
        inputs, outputs = batch
        loss = torch.nn.functional.mse_loss(self.network(inputs), outputs)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


inputs = torch.linspace(-1, 1, 32).unsqueeze(1)
trainer = pytorch_lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
                                    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Line(), DataLoader(TensorDataset(inputs, 2 * inputs), batch_size=4))
print(f"rank {trainer.global_rank} of {trainer.world_size}: batches={trainer.num_training_batches} "
      f"loss={trainer.callback_metrics['loss']:.6f}", flush=True)
