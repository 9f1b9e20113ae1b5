#!/usr/bin/env python3
"""Compares the accuracy of examples/cifar10 with the same loop in Python, over several seeds.

Both train a ResNet-18 of width 16 with two workers and batches of 128 on Fashion-MNIST from $ATTUNE_DATA_DIR.
Model, data, crops, optimizer and schedule are the same as in cifar10.cc. The random draws differ. Prints the
accuracy of the last epoch by seed, both means, and their difference with its standard error.
"""

import gzip
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import driver
import python_torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "ddp"))  # ddp_steps

LR, MOMENTUM, DECAY, WIDTH, BATCH, WORLD = 0.05, 0.9, 5e-4, 16, 128, 2
DATA = pathlib.Path(os.environ.get("ATTUNE_DATA_DIR", "/usr/share/datasets/fashion-mnist"))


def accuracy_of_sdk(build, seed, samples, epochs):
    run = subprocess.run(
        [build / "examples/cifar10/cifar10", "--workers", str(WORLD), "--seed", str(seed),
         "--max-step", str(epochs), "--config", f"lr={LR},width={WIDTH},samples={samples}"],
        capture_output=True, text=True, check=True)
    return float(re.findall(r"val_accuracy (\S+)", run.stdout)[-1])


def accuracy_of_python(environment, seed, samples, epochs):
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(
            [sys.executable, __file__, "rank", str(rank), folder, str(seed), str(samples), str(epochs)],
            env=environment, stdout=subprocess.PIPE, text=True) for rank in range(WORLD)]
        outputs = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            sys.exit("cifar10_accuracy: a rank of the loop in Python has failed")
        return float(outputs[0])


def train(rank, folder, seed, samples, epochs):
    """One rank of the loop in Python; rank 0 prints the accuracy."""
    import torch
    import torch.distributed
    from torch import nn
    from torch.utils.data.distributed import DistributedSampler

    from ddp_steps import Block, convolution

    def resnet18():
        layers, inputs = [convolution(1, WIDTH, 1, 3), nn.BatchNorm2d(WIDTH), nn.ReLU()], WIDTH
        for outputs in (WIDTH, 2 * WIDTH, 4 * WIDTH, 8 * WIDTH):
            layers += [Block(inputs, outputs, 1 if inputs == outputs else 2), Block(outputs, outputs, 1)]
            inputs = outputs
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))

    def read(name, header):
        with gzip.open(DATA / name) as file:
            return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)

    def crop_and_flip(pictures):
        bordered = nn.functional.pad(pictures, (4, 4, 4, 4))
        cut = []
        for picture in bordered:
            down, right = torch.randint(9, (2,)).tolist()
            picture = picture[:, down:down + 28, right:right + 28]
            cut.append(picture.flip(2) if torch.rand(()) < 0.5 else picture)
        return torch.stack(cut)

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                         world_size=WORLD)
    pixels = read("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28)
    labels = read("train-labels-idx1-ubyte.gz", 8).long()
    mean, deviation = (pixels.float() / 255).mean(), (pixels.float() / 255).std()
    tenth = len(labels) // 10
    samples = min(samples, len(labels) - tenth)
    tested = range(len(labels) - min(samples // 5, tenth), len(labels))

    torch.manual_seed(seed)
    model = nn.parallel.DistributedDataParallel(resnet18())
    sgd = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.StepLR(sgd, 10, 0.2)
    sampler = DistributedSampler(range(samples), WORLD, rank, seed=seed)
    torch.manual_seed(1000 * seed + rank)
    for epoch in range(epochs):
        model.train()
        sampler.set_epoch(epoch)
        for places in torch.tensor(list(sampler)).split(BATCH // WORLD):
            output = model((crop_and_flip(pixels[places]).float() / 255 - mean) / deviation)
            loss = nn.functional.cross_entropy(output, labels[places])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        places = torch.tensor(tested)[rank::WORLD]
        output = model.module((pixels[places].float() / 255 - mean) / deviation)
        right = torch.tensor([(output.argmax(1) == labels[places]).sum(), len(places)])
    torch.distributed.all_reduce(right)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    if rank == 0:
        print(float(right[0] / right[1]))


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "seeds", 5, "seeds")
    driver.add_count(parser, "samples", 6000, "images of an epoch")
    driver.add_count(parser, "epochs", 3, "epochs")
    arguments = parser.parse_args()
    build, seeds, samples, epochs = arguments.build, arguments.seeds, arguments.samples, arguments.epochs
    if not (DATA / "train-images-idx3-ubyte.gz").exists():
        sys.exit(f"cifar10_accuracy: no Fashion-MNIST in {DATA}; install Debian's dataset-fashion-mnist, or "
                 "name the folder of its .gz files in ATTUNE_DATA_DIR")
    environment = python_torch.environment_of(build)
    if environment is None:
        return
    sdk, python = [], []
    for seed in range(1, seeds + 1):  # they take turns
        sdk.append(accuracy_of_sdk(build, seed, samples, epochs))
        python.append(accuracy_of_python(environment, seed, samples, epochs))
        print(f"seed {seed}: SDK {sdk[-1]:.4f}, Python {python[-1]:.4f}", flush=True)
    print(f"SDK {statistics.mean(sdk):.4f}, Python {statistics.mean(python):.4f}, difference "
          f"{statistics.mean(sdk) - statistics.mean(python):+.4f}", end="")
    if seeds > 1:
        error = ((statistics.variance(sdk) + statistics.variance(python)) / seeds) ** 0.5
        print(f" ± {error:.4f} (standard error)", end="")
    print()


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        rank, folder, *numbers = sys.argv[2:]
        train(int(rank), folder, *map(int, numbers))
    else:
        main()
