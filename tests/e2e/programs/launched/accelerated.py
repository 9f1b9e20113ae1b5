"""A linear layer, prepared by Accelerate."""

import torch
from accelerate import Accelerator

import attune
import rank_notes


def main():
    config = attune.init({"lr": 0.1})
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1)
    if attune.checkpoint:
        network.load_state_dict(torch.load(attune.checkpoint / "model.pt", weights_only=True))
    pairs = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    data = torch.utils.data.DataLoader(pairs, batch_size=8)
    model, optimizer, data = accelerator.prepare(network, torch.optim.SGD(network.parameters(), config["lr"]), data)

    def save(folder):
        torch.save(accelerator.unwrap_model(model).state_dict(), folder / "model.pt")

    with rank_notes.training(network):
        for _ in range(attune.step, attune.max_step or 2):
            for batch in data:
                optimizer.zero_grad()
                loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
                accelerator.backward(loss)
                optimizer.step()
            attune.report({"loss": loss}, checkpoint=save)
            rank_notes.after_step()


if __name__ == "__main__":
    main()
