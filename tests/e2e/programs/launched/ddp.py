"""A linear layer in DistributedDataParallel, as a script for torchrun."""

import torch
import torch.distributed

import attune
import rank_notes


def main(config):
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    if attune.checkpoint:
        model.load_state_dict(torch.load(attune.checkpoint / "model.pt", weights_only=True))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), config["lr"])
    pairs = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))[attune.rank::attune.world_size]

    def save(folder):
        torch.save(model.state_dict(), folder / "model.pt")

    with rank_notes.training(model):
        for _ in range(attune.step, attune.max_step or 2):
            for _ in range(4):
                optimizer.zero_grad()
                loss = (parallel(pairs) - pairs.sum(1, keepdim=True)).square().mean()
                loss.backward()
                optimizer.step()
            attune.report({"loss": loss}, checkpoint=save)
            rank_notes.after_step()


if __name__ == "__main__":
    main(attune.init({"lr": 0.1}))
