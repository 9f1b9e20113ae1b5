"""Prints the results of attune.torch.prepare_model and prepare_data_loader as one line of JSON on each rank.

The test starts it like torchrun, with one rank or several. The data set is the numbers 0 to 9; `seen` returns the
numbers that this rank gets.
"""

import collections
import json
import sys

import torch
import torch.distributed
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, WeightedRandomSampler

import attune
import attune.torch

NUMBERS = list(range(10))
Pair = collections.namedtuple("Pair", "number half")
facts = {}


class Stream(IterableDataset):
    def __iter__(self):
        return iter(NUMBERS)


def prepared(data=NUMBERS, **options):
    return attune.torch.prepare_data_loader(DataLoader(data, **options))


def seen(loader):
    return [batch.tolist() for batch in loader]


torch.manual_seed(attune.rank)
network = torch.nn.Linear(1, 1)
facts["own_weight"] = network.weight.item()
model = attune.torch.prepare_model(network)
facts["world_size"] = torch.distributed.get_world_size()
facts["model"], facts["is_bare"] = type(model).__name__, model is network
facts["weight"] = network.weight.item()
torch.optim.SGD(model.parameters(), 0.1).zero_grad()
model(torch.tensor([[1.0 + attune.rank]])).sum().backward()
facts["gradient"] = network.weight.grad.item()

shuffled = prepared(batch_size=2, shuffle=True)
facts["shuffled"] = [seen(shuffled), seen(shuffled)]
facts["epoch_3"] = (shuffled.set_epoch(3), seen(shuffled), seen(shuffled))[1:]
facts["length"], facts["batch_size"] = len(shuffled), shuffled.batch_size
facts["in_order"] = seen(prepared(batch_size=2))
facts["odd"] = seen(prepared(NUMBERS[:9], batch_size=2))
facts["odd_dropped"] = seen(prepared([*NUMBERS, 10], batch_size=2, drop_last=True))
facts["singly"] = seen(prepared(torch.arange(10), batch_size=None))
facts["stream"] = seen(prepared(Stream(), batch_size=5))
share = DistributedSampler(NUMBERS, 10, attune.rank)
facts["own_share"] = prepared(sampler=share).sampler is share
facts["by_workers"] = seen(prepared(batch_size=5, num_workers=1))
facts["drawn"] = seen(prepared(sampler=WeightedRandomSampler([1] * 10, 10, replacement=False)))

fields = [{"a": Pair(torch.tensor(number), number / 2), "b": "text"} for number in NUMBERS]
[batch] = prepared(fields, batch_size=10)
facts["kinds"] = [type(batch).__name__, type(batch["a"]).__name__, str(batch["a"].half.device), batch["b"][0]]
attune.torch.device = lambda: torch.device("meta")  # a device that differs from the tensors' device
[batch] = prepared(fields, batch_size=10)
facts["moved"] = [str(batch["a"].number.device), str(batch["a"].half.device), batch["b"][0]]

attune.report({"loss": 1.0}, step=3)
attune.torch.device = lambda: torch.device("cpu")
facts["after_step_3"] = seen(prepared(batch_size=2, shuffle=True))
print(json.dumps(facts), file=sys.stderr)
