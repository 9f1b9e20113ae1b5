"""The same program as ddp_steps.cc, with Python's DistributedDataParallel.

    ddp_steps.py MODEL RANK WORLD_SIZE FOLDER

The ranks find each other through a file in FOLDER.
"""

import statistics
import sys
import time

import torch
from torch import nn

CLASSES = 10
TIMED_STEPS = 10


def convolution(inputs, outputs, stride, size):
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)


def small_convnet():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, CLASSES))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = convolution(inputs, outputs, stride, 3)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = convolution(outputs, outputs, 1, 3)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if inputs != outputs:
            self.shortcut = nn.Sequential(convolution(inputs, outputs, stride, 1),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.shortcut is None else self.shortcut(x)))


def resnet18():
    layers = [convolution(3, 64, 1, 3), nn.BatchNorm2d(64), nn.ReLU()]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        layers += [Block(inputs, outputs, 1 if inputs == outputs else 2), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.linear(x)) * 0.1


def mlp():
    return nn.Sequential(*[Residual(32) for _ in range(99)], nn.Linear(32, CLASSES))


TASKS = {
    "convnet": (small_convnet, (32, 1, 28, 28)),
    "resnet18": (resnet18, (8, 3, 32, 32)),
    "mlp": (mlp, (16, 32)),
}


def main():
    name, rank, world_size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    make, shape = TASKS[name]
    torch.manual_seed(1)
    model = make()
    if world_size > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store",
                                             rank=rank, world_size=world_size)
        model = nn.parallel.DistributedDataParallel(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    torch.manual_seed(100 + rank)
    x = torch.randn(shape)
    y = torch.randint(CLASSES, (shape[0],))

    timed = []
    communication = []
    exposed = []
    with open(f"{folder}/{rank}.in") as lines, open(f"{folder}/{rank}.out", "w") as out:
        for line in lines:
            if int(line) == 0:
                break
            began, used = time.monotonic(), time.process_time()
            for _ in range(int(line)):
                step_began = time.monotonic()
                sgd.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x), y)
                loss.backward()
                sgd.step()
                if len(timed) < TIMED_STEPS:
                    timed.append(time.monotonic() - step_began)
                    times = model._get_ddp_logging_data() if world_size > 1 else {}
                    both = times.get("backward_comm_time", 0) * 1e-9
                    communication.append(both)
                    exposed.append(both - times.get("backward_compute_comm_overlap_time", 0) * 1e-9)
            seconds, processor = time.monotonic() - began, time.process_time() - used
            step = statistics.median(timed)
            print(seconds, processor, loss.item(), statistics.median(communication) / step,
                  statistics.median(exposed) / step, file=out, flush=True)
    if world_size > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
