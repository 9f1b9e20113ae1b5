"""torch.distributed in a gang of Attune's; needs torch."""

import attune._distribution  # first: it may refuse

import atexit
import os

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import (DataLoader, DistributedSampler, IterableDataset, RandomSampler,
                              SequentialSampler)

import attune

_KEPT = ("batch_size", "collate_fn", "drop_last", "generator", "in_order", "multiprocessing_context",
         "num_workers", "persistent_workers", "pin_memory", "pin_memory_device", "prefetch_factor", "timeout",
         "worker_init_fn")  # of a DataLoader that is made anew; what this torch has of them


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
    """Another DataLoader, for this rank's share of the samples, with batches on this rank's device.

    In a gang of several it has a DistributedSampler that shuffles if `loader` does, and drops the last
    samples if `loader` does, where otherwise some come twice to make the shares equal. `batch_size` is a
    rank's, as it stands; an IterableDataset shares itself out. Each pass is another epoch, from attune.step
    on: with a pass a step, a trial that is resumed goes on as if it had not been interrupted. `set_epoch(n)`
    says another one. Makes the process group where there is none yet.

    Raises ValueError for samplers of other kinds, which know nothing of ranks.
    """
    _join()
    if attune.world_size > 1 and not isinstance(loader.dataset, IterableDataset):
        loader = _shared(loader)
    return _Loader(loader)


class _Loader:
    """A DataLoader, whose attributes it has, with its batches moved to the device."""

    def __init__(self, loader):
        self._loader, self._device, self._epoch = loader, device(), attune.step

    def set_epoch(self, epoch):
        """The epoch of the next pass; from there on they count."""
        self._epoch = epoch

    def __iter__(self):
        if hasattr(self._loader.sampler, "set_epoch"):
            self._loader.sampler.set_epoch(self._epoch)
        self._epoch += 1
        return map(self._moved, self._loader)

    def __len__(self):
        return len(self._loader)

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def _moved(self, batch):
        if isinstance(batch, torch.Tensor):
            return batch.to(self._device, non_blocking=self._loader.pin_memory)
        if hasattr(batch, "to"):
            return batch.to(self._device)
        if hasattr(batch, "items"):
            return {name: self._moved(part) for name, part in batch.items()}
        if isinstance(batch, (list, tuple)):
            parts = [self._moved(part) for part in batch]
            return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
        return batch


def _shared(loader):
    """`loader` with a sampler of this rank's share."""
    sampler = loader.sampler
    if isinstance(sampler, DistributedSampler):
        return loader
    shuffles = (type(sampler) is RandomSampler and not sampler.replacement
                and len(sampler) == len(loader.dataset))
    if loader.batch_sampler is not None and loader.batch_size is None:
        sampler = loader.batch_sampler
    elif shuffles or type(sampler) is SequentialSampler:
        share = DistributedSampler(loader.dataset, attune.world_size, attune.rank, shuffle=shuffles,
                                   seed=attune.seed, drop_last=loader.drop_last)
        return DataLoader(loader.dataset, sampler=share,
                          **{name: getattr(loader, name) for name in _KEPT if hasattr(loader, name)})
    raise ValueError(f"the loader has a {type(sampler).__name__}, which does not share samples out among "
                     "ranks; give it `shuffle`, or a DistributedSampler")


def _join():
    if not torch.distributed.is_initialized():
        init_process_group()


def _destroy():
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
