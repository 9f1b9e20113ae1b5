"""Starts the ranks of ddp.py by torch.multiprocessing."""

import os

import torch
import torch.distributed

import attune
import ddp


def work(rank, world_size, config):
    address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)
    ddp.main(config)


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (2, attune.init({"lr": 0.1})), nprocs=2)
