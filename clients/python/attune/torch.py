"""torch.distributed in a gang of Attune's; needs torch."""

import atexit
import os

import torch
import torch.distributed

import attune


def device():
    """This rank's torch.device; by hand the GPU of its local rank, where there is one."""
    if attune.by_hand and torch.cuda.is_available():
        return torch.device("cuda", attune.local_rank)
    return torch.device(attune.device)


def init_process_group(backend=None, **options):
    """Makes the default process group of the gang's ranks, which ends with the program.

    `backend` is NCCL for ranks with a GPU, which becomes the current device, and Gloo for others.
    `options` go on to torch.distributed.init_process_group. Under an executor and under torchrun
    the ranks meet at MASTER_ADDR and MASTER_PORT; by hand there is one, and it meets nobody.
    """
    here = device()
    if here.type == "cuda":
        torch.cuda.set_device(here)
    if "MASTER_PORT" not in os.environ and attune.world_size == 1:
        options.setdefault("store", torch.distributed.HashStore())
    torch.distributed.init_process_group(backend or ("nccl" if here.type == "cuda" else "gloo"),
                                         rank=attune.rank, world_size=attune.world_size, **options)
    atexit.register(_destroy)


def _destroy():
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
