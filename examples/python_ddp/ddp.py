"""Classifies the images of Fashion-MNIST with torch's DistributedDataParallel, tuned by Attune.

The same script runs as a rank of a gang (attune run sweep.yaml), as a worker of torchrun, or by hand.
"""

import argparse
import gzip
import os
import pathlib

import torch
import torch.distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import attune
import attune.torch

PIXEL_MEAN, PIXEL_DEVIATION = 0.2860, 0.3530  # of the pixels of the training images
DEFAULTS = {"lr": 0.05, "momentum": 0.9, "width": 16, "batch": 128, "samples_per_step": 11000}


def read(name, header):
    """The bytes of a file of the data set after its header."""
    folder = os.environ.get("ATTUNE_DATA_DIR", "/usr/share/datasets/fashion-mnist")
    path = pathlib.Path(folder) / name
    if not path.exists():
        raise FileNotFoundError(f"{path}: not found; install Debian's dataset-fashion-mnist, or set "
                                "ATTUNE_DATA_DIR to a folder with Fashion-MNIST's four files")
    with gzip.open(path) as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=header)


def load(part):
    """Images (n, 1, 28, 28), scaled, and labels (n) of `train` or `t10k`."""
    pixels = read(f"{part}-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).float().div_(255)
    labels = read(f"{part}-labels-idx1-ubyte.gz", 8).long()
    return pixels.sub_(PIXEL_MEAN).div_(PIXEL_DEVIATION), labels


def network(width):
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, width, 3, stride=2, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(2 * width * 7 * 7, 10))


def batches_of_rank(step, samples, config):
    """Yields batches of indices for this rank. All ranks together see `samples_per_step` samples in a step.

    They depend only on the trial's seed and the step. So a resumed trial continues as if it had not stopped,
    with any number of ranks.
    """
    order = torch.Generator().manual_seed(attune.seed + step)
    chosen = torch.randperm(samples, generator=order)[:config["samples_per_step"]]
    for batch in chosen.split(config["batch"]):
        if len(batch) >= attune.world_size:  # each rank gets a part
            yield batch[attune.rank::attune.world_size]


def accuracy(model, images, labels):
    """The accuracy over all ranks; each rank evaluates a part of the images."""
    share = slice(attune.rank, None, attune.world_size)
    with torch.no_grad():
        correct = sum((model(x).argmax(1) == y).sum()
                      for x, y in zip(images[share].split(1000), labels[share].split(1000)))
    counts = torch.tensor([float(correct), len(labels[share])], device=images.device)
    torch.distributed.all_reduce(counts)
    return counts[0] / counts[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10,
                        help="number of steps by hand; in a sweep, the scheduler decides")
    parser.add_argument("--test-samples", type=int, default=10000,
                        help="number of test images")
    options = parser.parse_args()

    config = attune.init(DEFAULTS)
    attune.torch.init_process_group()
    device = attune.torch.device()
    torch.manual_seed(attune.seed)
    model = DistributedDataParallel(network(config["width"]).to(device))
    sgd = torch.optim.SGD(model.parameters(), config["lr"], config["momentum"])
    if attune.checkpoint:
        state = torch.load(attune.checkpoint / "state.pt", map_location=device, weights_only=True)
        model.module.load_state_dict(state["model"])
        sgd.load_state_dict(state["sgd"])

    def save(folder):
        torch.save({"model": model.module.state_dict(), "sgd": sgd.state_dict()}, folder / "state.pt")

    images, labels = (part.to(device) for part in load("train"))
    test = [part[:options.test_samples].to(device) for part in load("t10k")]
    for step in range(attune.step + 1, (attune.max_step or options.steps) + 1):
        for batch in batches_of_rank(step, len(images), config):
            sgd.zero_grad()
            loss = functional.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()
            sgd.step()
            attune.progress()
        attune.report({"accuracy": accuracy(model.module, *test), "loss": loss}, checkpoint=save)


if __name__ == "__main__":
    main()
