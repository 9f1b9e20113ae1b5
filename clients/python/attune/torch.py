"""torch.distributed in a gang of Attune's; needs torch."""

import attune._distribution  # first: it may refuse

import atexit
import os

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import attune
from attune import _loader


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


def prepare_model(model, **options):
    """`model`, moved to this rank's device; in a gang of several, in DistributedDataParallel.

    `options` go on to DistributedDataParallel, in which the model itself is `.module`. Makes the process
    group where there is none yet.
    """
    _join()
    here = device()
    model = model.to(here)
    if attune.world_size == 1:
        return model
    return DistributedDataParallel(model, device_ids=[here] if here.type == "cuda" else None, **options)


def prepare_data_loader(loader):
    """A DataLoader for this rank's share of the samples, with batches on this rank's device.

    It is a copy of `loader` with a DistributedSampler, also in a gang of one. Samples come in the order of the sampler
    of `loader`, which may be of any kind. The order depends on attune.seed and the epoch alone, so it is the same on all
    ranks and after a resume. `drop_last` drops the last samples if the shares are unequal. Otherwise some samples come
    twice. `batch_size` is that of a rank.

    Each pass is another epoch, from attune.step on. `loader.set_epoch(n)` and `loader.sampler.set_epoch(n)` set the
    epoch of the next pass. With `state_dict()` and `load_state_dict()` a pass resumes within an epoch, also in a gang of
    another size.

    An IterableDataset shares samples out itself, and so does a sampler with `num_replicas` and `rank`, such as your
    DistributedSampler. You set their epochs. To resume within an epoch, the loader loads the taken batches again and
    drops them, unless the data set has `state_dict()` and `load_state_dict()`.

    Makes the process group if there is none yet. Raises ValueError for a sampler without a length in a gang of several.
    """
    _join()
    return _loader.prepared(loader, device())


def _join():
    if not torch.distributed.is_initialized():
        init_process_group()


def _destroy():
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
