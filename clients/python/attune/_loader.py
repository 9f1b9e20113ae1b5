"""Data loaders that share samples among the ranks of a gang and can resume within an epoch; needs torch."""

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
    """Returns a copy of `loader` that yields this rank's share, on `device`. Its class is a subclass of the loader's."""
    if isinstance(loader, Prepared):
        return loader
    loader_class, clone = type(loader), copy.copy(loader)
    clone.__class__ = type(loader_class.__name__, (Prepared, loader_class), {})
    prepared_loader = typing.cast(Prepared, clone)
    prepared_loader._prepare(device)
    return prepared_loader


class _Epochs:
    """The position of a loader: its epoch, and how many items of this epoch the gang has taken.

    A pass is one iteration over the loader. Items are what its sampler yields: samples, or batches for a batch sampler.
    """

    epoch: int
    taken: int
    _under_way: object = None  # identifies the current pass; None between passes

    def begin_at(self, epoch: int, taken: int = 0) -> None:
        """Lets the next pass be of this epoch, and begin after `taken` items."""
        self.epoch, self.taken, self._under_way = epoch, taken, None

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass. Each later pass has the next epoch."""
        if self._under_way or epoch != self.epoch:  # otherwise the next pass may resume within this epoch
            self.begin_at(epoch)

    def begin(self) -> object:
        """Begins a pass, and returns an object that identifies it."""
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
    """This rank's share of the items that a sampler yields.

    Each rank computes the order of all items of an epoch, from the seed and the epoch alone. It takes its part of the
    items that the gang has not taken yet. So an epoch has each item once, even if the size of the gang changes within it.
    """

    def __init__(self, sampler: typing.Any, drop_last: bool) -> None:
        if not _has_length(sampler):
            raise ValueError(
                f"the loader has a {type(sampler).__name__}, which has no length, so its samples cannot be divided among "
                f"{attune.world_size} ranks; give it __len__(), or num_replicas and rank if it divides samples itself")
        super().__init__(sampler, attune.world_size, attune.rank, seed=attune.seed, drop_last=drop_last)
        self._sampler = sampler
        self.begin_at(attune.step)

    def __iter__(self) -> typing.Iterator[typing.Any]:
        order = self._order()[self.taken:]
        for index in range(self.rank, self._share_of(len(order)) * self.num_replicas, self.num_replicas):
            yield order[index % len(order)]  # the first items are used twice if the shares would differ

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
    """The passes over a data set, or over a sampler that divides the samples among ranks itself."""

    def __init__(self, data: typing.Any) -> None:
        self._data: typing.Any = data if hasattr(data, "set_epoch") else getattr(data, "sampler", None)
        self.begin_at(attune.step)

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        if hasattr(self._data, "set_epoch"):
            self._data.set_epoch(epoch)

    def __iter__(self) -> typing.Iterator[typing.Any]:
        return itertools.repeat(None)  # the same as torch's sampler for an IterableDataset


class Prepared(DataLoader):
    """The members that prepare_data_loader adds to the class of a loader."""

    def _prepare(self, device: torch.device) -> None:
        self._device = device
        self._items_per_batch = 1
        self._is_restored = self._has_warned = False
        parts: dict[str, typing.Any] = {"_iterator": None}  # torch does not allow samplers to be set as attributes
        has_batch_sampler = self.batch_sampler is not None and self.batch_size is None
        sampler = self.batch_sampler if has_batch_sampler else self.sampler
        if isinstance(self.dataset, IterableDataset):
            self._passes = parts["sampler"] = _WholeSampler(self.dataset)
        elif _is_distributed(sampler) or (attune.world_size == 1 and not _has_length(sampler)):
            self._passes = _WholeSampler(sampler)
            if has_batch_sampler:
                parts["sampler"] = self._passes  # replaces torch's sampler, which is not used
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
        """Returns the epoch, how many of its items the gang has taken, and the state of an IterableDataset on this rank."""
        state: dict[str, typing.Any] = {"epoch": self._passes.epoch, "taken": self._passes.taken}
        source = self._stateful_source()
        if source and self._passes.taken:  # a new epoch begins without a state
            state["data"] = source.state_dict()
        return state

    def load_state_dict(self, state: typing.Mapping[str, typing.Any]) -> None:
        """Lets the next pass resume where the gang was, also if it had another size."""
        try:
            epoch, taken = int(state["epoch"]), int(state["taken"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"state is {state!r} and must be the result of state_dict() of a prepared loader") from error
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
            print(f"attune: to resume within an epoch, the loader loads {dropped} batches again and drops them. Avoid this "
                  "with an IterableDataset that has state_dict() and load_state_dict(), in a loader without workers",
                  file=sys.stderr, flush=True)
        try:
            for batch in itertools.islice(batches, dropped, None):
                self._passes.take(name, self._items_per_batch * attune.world_size)
                yield _to_device(batch, self._device, self.pin_memory)
        finally:
            self._passes.end(name)

    def _stateful_source(self) -> typing.Any:
        """Returns the object with the state of an IterableDataset: the loader or the data set; None if neither has it."""
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
    """Returns whether a sampler divides samples among ranks, like DistributedSampler, or uses such a sampler."""
    if hasattr(sampler, "num_replicas") and hasattr(sampler, "rank"):
        return True
    return hasattr(sampler, "sampler") and _is_distributed(sampler.sampler)


@contextlib.contextmanager
def _seed_generators(sampler: typing.Any, seed: int) -> typing.Iterator[None]:
    """Seeds all random generators that a sampler may use, and restores their states at the end."""
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
    """Yields (object, attribute name) for each generator of a sampler and of the samplers inside it."""
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
    """Returns a container of the batch's type with these parts, as torch makes it; a plain one if this fails."""
    try:
        if isinstance(batch, tuple):
            return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
        clone = copy.copy(batch)  # because its constructor may need arguments, and it may have attributes
        for index, part in parts.items() if isinstance(parts, dict) else enumerate(parts):
            clone[index] = part
        return clone
    except TypeError:
        return tuple(parts) if isinstance(batch, tuple) else parts
