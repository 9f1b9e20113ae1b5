"""Uses torch.distributed in a gang; needs torch."""

from __future__ import annotations

import attune._distribution  # first: it raises if pip mixed two packages

import atexit
import os
import typing

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import attune
from attune import _loader

__all__ = ["device", "init_process_group", "prepare_data_loader", "prepare_model"]


def device() -> torch.device:
    """Returns this rank's torch.device, the first of `attune.devices`; by hand the GPU of its local rank, if any."""
    if attune.by_hand and torch.cuda.is_available():
        return torch.device("cuda", attune.local_rank)
    return torch.device(attune.device)


def init_process_group(backend: str | None = None, **options: typing.Any) -> None:
    """Creates torch's default process group of all ranks of the gang. It ends with the program.

    The default `backend` is "nccl" for ranks with a GPU and "gloo" for others. A rank's GPU becomes the current
    device. `options` are further arguments of torch.distributed.init_process_group, such as `timeout`, a
    datetime.timedelta. Under an executor and under torchrun, the ranks connect at MASTER_ADDR and MASTER_PORT.

    Waits for all ranks. Raises ValueError if there is a default group already, and torch.distributed.DistError if the
    ranks do not connect within the timeout.
    """
    own_device = device()
    if own_device.type == "cuda":
        torch.cuda.set_device(own_device)
    if "MASTER_PORT" not in os.environ and attune.world_size == 1:
        options.setdefault("store", torch.distributed.HashStore())
    torch.distributed.init_process_group(backend or ("nccl" if own_device.type == "cuda" else "gloo"),
                                         rank=attune.rank, world_size=attune.world_size, **options)
    atexit.register(_destroy)


def prepare_model(model: torch.nn.Module, **options: typing.Any) -> torch.nn.Module:
    """Returns `model` on this rank's device; in a gang of several ranks, within DistributedDataParallel.

    The model itself is moved, not copied. `options` are further arguments of DistributedDataParallel, whose `.module`
    is the model. All ranks must call this function with the same model. Creates the process group if there is none.

    Raises the errors of `init_process_group`, and RuntimeError of torch if parameters differ in shape between ranks.
    """
    _ensure_process_group()
    own_device = device()
    model = model.to(own_device)
    if attune.world_size == 1:
        return model
    return DistributedDataParallel(model, device_ids=[own_device] if own_device.type == "cuda" else None, **options)


def prepare_data_loader(loader: DataLoader[typing.Any]) -> _loader.Prepared:
    """Returns a DataLoader for this rank's share of the samples, with batches on this rank's device.

    It is a copy of `loader` with a DistributedSampler, also in a gang of one. Samples come in the order of the sampler
    of `loader`, which may be of any kind. The order depends on attune.seed and the epoch alone, so it is the same on all
    ranks and after a resume. If the shares are unequal, `drop_last` drops the last samples. Otherwise some samples are
    used twice. `batch_size` is the batch size of a rank.

    Each pass is another epoch, beginning with epoch attune.step. `loader.set_epoch(n)` and `loader.sampler.set_epoch(n)` set the
    epoch of the next pass. With `state_dict()` and `load_state_dict()` a pass resumes within an epoch, also in a gang of
    another size.

    An IterableDataset must divide its samples among the ranks itself. So must a sampler with `num_replicas` and `rank`,
    such as a DistributedSampler. The program sets their epochs. To resume within an epoch, the loader loads the taken batches again and
    drops them, unless the data set has `state_dict()` and `load_state_dict()`.

    Creates the process group if there is none. Raises the errors of `init_process_group`, and ValueError for a
    sampler without a length in a gang of several ranks.
    """
    _ensure_process_group()
    return _loader.prepare(loader, device())


def _ensure_process_group() -> None:
    if not torch.distributed.is_initialized():
        init_process_group()


def _destroy() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
