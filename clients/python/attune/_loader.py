"""Data loaders of a gang: shares of the samples, their order in each epoch, resuming within an epoch; needs torch."""

from __future__ import annotations

import contextlib
import copy
import itertools
import random
import sys
import typing

import torch
from torch.utils.data import (BatchSampler, DataLoader, DistributedSampler, IterableDataset, Sampler,
                              SequentialSampler)

import attune


def prepare(loader: DataLoader[typing.Any], device: torch.device) -> Prepared:
    """A copy of `loader` that yields this rank's share, on `device`. Its class is derived from that of `loader`."""
    if isinstance(loader, Prepared):
        return loader
    loader_class, clone = type(loader), copy.copy(loader)
    clone.__class__ = type(loader_class.__name__, (Prepared, loader_class), {})
    prepared_loader = typing.cast(Prepared, clone)
    prepared_loader._prepare(device)
    return prepared_loader


class _Epochs:
    """The epoch of the next pass, or of the one under way, and how many items of it the gang has taken.

    A sampler yields items: samples, or batches if it is a batch sampler.
    """

    epoch: int
    taken: int
    _under_way: object = None  # the name of the pass under way

    def begin_at(self, epoch: int, taken: int = 0) -> None:
        """Makes the next pass one of this epoch, after the items that are taken."""
        self.epoch, self.taken, self._under_way = epoch, taken, None

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass. Each later pass has the next epoch."""
        if self._under_way or epoch != self.epoch:  # otherwise the next pass may resume within this epoch
            self.begin_at(epoch)

    def begin(self) -> object:
        """Begins a pass, and returns a name for it."""
        if self._under_way:
            self.begin_at(self.epoch + 1)
        self._under_way = object()
        return self._under_way

    def take(self, name: object, items: int) -> None:
        if self._under_way is name:
            self.taken += items

    def end(self, name: object) -> None:
        if self._under_way is name:
            self.begin_at(self.epoch + 1)


class _ShareSampler(_Epochs, DistributedSampler):
    """This rank's share of what a sampler yields.

    Each rank draws the whole order of an epoch, from the seed and the epoch alone, and takes its part of the items that
    the gang has not taken yet. So an epoch has each item once, even if the gang changes its size within the epoch.
    """

    def __init__(self, sampler: typing.Any, drop_last: bool) -> None:
        if not _has_length(sampler):
            raise ValueError(
                f"the loader has a {type(sampler).__name__}, which has no length, so {attune.world_size} ranks cannot "
                "have equal shares; give it __len__(), or num_replicas and rank if it shares samples out itself")
        super().__init__(sampler, attune.world_size, attune.rank, seed=attune.seed, drop_last=drop_last)
        self._sampler = sampler
        self.begin_at(attune.step)

    def __iter__(self) -> typing.Iterator[typing.Any]:
        order = self._order()[self.taken:]
        for index in range(self.rank, self._share_of(len(order)) * self.num_replicas, self.num_replicas):
            yield order[index % len(order)]  # the first items come twice if the shares would differ

    def __len__(self) -> int:
        return self._share_of(len(self._sampler))

    def _share_of(self, count: int) -> int:
        ranks: int = self.num_replicas
        return (count if self.drop_last else count + ranks - 1) // ranks

    def _order(self) -> typing.Sequence[typing.Any]:
        if type(self._sampler) is SequentialSampler:
            return range(len(self._sampler))
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(self.epoch)
        with _seed_generators(self._sampler, self.seed + self.epoch):
            return list(self._sampler)


class _WholeSampler(_Epochs, Sampler):
    """The passes over a data set or a sampler that shares samples out itself, in its own order."""

    def __init__(self, data: typing.Any) -> None:
        self._data: typing.Any = data if hasattr(data, "set_epoch") else getattr(data, "sampler", None)
        self.begin_at(attune.step)

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        if hasattr(self._data, "set_epoch"):
            self._data.set_epoch(epoch)

    def __iter__(self) -> typing.Iterator[typing.Any]:
        return itertools.repeat(None)  # as the sampler that torch gives an IterableDataset


class Prepared(DataLoader):
    """What prepare_data_loader adds to the class of a loader."""

    def _prepare(self, device: torch.device) -> None:
        self._device = device
        self._items_per_batch = 1
        self._is_restored = self._has_warned = False
        parts: dict[str, typing.Any] = {"_iterator": None}  # torch forbids to set samplers as attributes
        has_batch_sampler = self.batch_sampler is not None and self.batch_size is None
        sampler = self.batch_sampler if has_batch_sampler else self.sampler
        if isinstance(self.dataset, IterableDataset):
            self._passes = parts["sampler"] = _WholeSampler(self.dataset)
        elif _is_distributed(sampler) or (attune.world_size == 1 and not _has_length(sampler)):
            self._passes = _WholeSampler(sampler)
            if has_batch_sampler:
                parts["sampler"] = self._passes  # instead of torch's own, which is not used
        elif has_batch_sampler:
            self._passes = parts["sampler"] = parts["batch_sampler"] = _ShareSampler(
                sampler, getattr(sampler, "drop_last", False))
        else:
            self._passes = parts["sampler"] = _ShareSampler(sampler, self.drop_last)
            if self.batch_size is not None:
                self._items_per_batch = self.batch_size
                parts["batch_sampler"] = BatchSampler(self._passes, self.batch_size, self.drop_last)
        self.__dict__.update(parts)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass. Each later pass has the next epoch."""
        self._passes.set_epoch(epoch)

    def state_dict(self) -> dict[str, typing.Any]:
        """The epoch, and how many of its items the gang has taken. An IterableDataset adds its state on this rank."""
        state: dict[str, typing.Any] = {"epoch": self._passes.epoch, "taken": self._passes.taken}
        source = self._stateful_source()
        if source and self._passes.taken:  # a new epoch begins without a state
            state["data"] = source.state_dict()
        return state

    def load_state_dict(self, state: typing.Mapping[str, typing.Any]) -> None:
        """Lets the next pass resume where the gang was, whatever its size was."""
        try:
            epoch, taken = int(state["epoch"]), int(state["taken"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"state is {state!r}; give what state_dict() of a prepared loader returned") from error
        self._passes.set_epoch(epoch)
        self._passes.begin_at(epoch, taken)
        source = self._stateful_source()
        self._is_restored = source is not None and "data" in state
        if self._is_restored:
            source.load_state_dict(state["data"])

    def __iter__(self) -> typing.Iterator[typing.Any]:
        name = self._passes.begin()
        loads_again = isinstance(self._passes, _WholeSampler) and not self._is_restored
        self._is_restored = False
        return self._batches(name, super().__iter__(), self._passes.taken // attune.world_size if loads_again else 0)

    def _batches(self, name: object, batches: typing.Iterator[typing.Any], dropped: int) -> typing.Iterator[typing.Any]:
        if dropped and not self._has_warned and attune.rank == 0:
            self._has_warned = True
            print(f"attune: the loader resumes within an epoch: it loads {dropped} batches again and drops them. An "
                  "IterableDataset with state_dict() and load_state_dict(), in a loader without workers, resumes "
                  "without that", file=sys.stderr, flush=True)
        try:
            for batch in itertools.islice(batches, dropped, None):
                self._passes.take(name, self._items_per_batch * attune.world_size)
                yield _to_device(batch, self._device, self.pin_memory)
        finally:
            self._passes.end(name)

    def _stateful_source(self) -> typing.Any:
        """The object that has the state of an IterableDataset: the loader, or the data set in this process; or None."""
        if isinstance(self.dataset, IterableDataset):
            for each in [super()] if self.num_workers else [super(), self.dataset]:
                if hasattr(each, "state_dict") and hasattr(each, "load_state_dict"):
                    return each
        return None


def _has_length(sampler: typing.Any) -> bool:
    try:
        len(sampler)
    except (TypeError, NotImplementedError):
        return False
    return True


def _is_distributed(sampler: typing.Any) -> bool:
    """Whether it knows ranks, as a DistributedSampler does, or draws from such a sampler."""
    if hasattr(sampler, "num_replicas") and hasattr(sampler, "rank"):
        return True
    return hasattr(sampler, "sampler") and _is_distributed(sampler.sampler)


@contextlib.contextmanager
def _seed_generators(sampler: typing.Any, seed: int) -> typing.Iterator[None]:
    """Seeds all generators that a sampler may use. At the end they have their old states again."""
    generator = torch.Generator().manual_seed(seed)
    numpy = sys.modules.get("numpy")
    with contextlib.ExitStack() as stack:
        stack.callback(torch.set_rng_state, torch.get_rng_state())
        torch.default_generator.manual_seed(seed)
        stack.callback(random.setstate, random.getstate())
        random.seed(seed)
        if numpy:
            stack.callback(numpy.random.set_state, numpy.random.get_state())
            numpy.random.seed(seed)
        for owner, name in _generators(sampler):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, generator)
        yield


def _generators(sampler: typing.Any) -> typing.Iterator[tuple[typing.Any, str]]:
    """Yields (object, name) for each attribute of a sampler, and of the samplers within it, that is a generator."""
    for name, value in list(getattr(sampler, "__dict__", {}).items()):
        if isinstance(value, torch.Generator) or (name == "generator" and value is None):
            yield sampler, name
        elif isinstance(value, Sampler):
            yield from _generators(value)


def _to_device(batch: typing.Any, device: torch.device, is_pinned: bool) -> typing.Any:
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=is_pinned)
    if hasattr(batch, "to"):
        return batch.to(device)
    if hasattr(batch, "items"):
        return _with_parts(batch, {name: _to_device(part, device, is_pinned) for name, part in batch.items()})
    if isinstance(batch, (list, tuple)):
        return _with_parts(batch, [_to_device(part, device, is_pinned) for part in batch])
    return batch


def _with_parts(batch: typing.Any, parts: dict[typing.Any, typing.Any] | list[typing.Any]) -> typing.Any:
    """A container of the batch's type with these parts, as torch makes it; or a plain one if the type refuses."""
    try:
        if isinstance(batch, tuple):
            return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
        clone = copy.copy(batch)  # its constructor may have other arguments, and it may have attributes
        for index, part in parts.items() if isinstance(parts, dict) else enumerate(parts):
            clone[index] = part
        return clone
    except TypeError:
        return tuple(parts) if isinstance(batch, tuple) else parts
