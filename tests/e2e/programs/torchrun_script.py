"""A training script for torchrun that does not use Attune."""

import sys

import torch
import torch.distributed

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
for epoch in range(1, 4):
    if sys.argv[1] == "--mode=raise" and rank == 1 and epoch == 2:
        raise ValueError("too green")
    total = torch.tensor([float(rank + 1)])
    torch.distributed.all_reduce(total)
    print(f"epoch {epoch} score={total.item()}")
torch.distributed.destroy_process_group()
