"""Compares the steps per second of the SDK's PrepareModel and of Python's DistributedDataParallel.

Both use the same model, weights, batch, optimizer and libtorch_cpu.so, over Gloo, with one thread per rank. Gangs
with one and with two ranks of both run at the same time and take turns, so that other load on the machine affects
both equally. A round has one turn of each gang. Ratios are computed within a round, and the printed figure is the
median over the rounds. The losses of both must agree after each turn.
"""

import os
import pathlib
import select
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import driver  # noqa: E402
import python_torch  # noqa: E402

MODELS = {"convnet": 30, "resnet18": 1, "mlp": 15}  # steps per turn
WARM_UP = 11  # steps; LibTorch has measured the first ten steps before the last of them
TOLERANCE = 1e-3  # relative difference of losses


class Gang:
    """Ranks that train the requested numbers of steps."""

    def __init__(self, folder, world_size, start):
        self.ranks = []
        folder.mkdir()
        for rank in range(world_size):
            for end in ("in", "out"):
                os.mkfifo(folder / f"{rank}.{end}")
            # Opened for reading and writing, so that open() does not wait for a rank that may never start.
            self.ranks.append([os.open(folder / f"{rank}.{end}", os.O_RDWR)
                               for end in ("in", "out")])
        self.processes = start(folder)

    def tell(self, steps):
        for orders, _ in self.ranks:
            os.write(orders, f"{steps}\n".encode())

    def answer(self, pipe):
        line = b""
        while not line.endswith(b"\n"):
            if select.select([pipe], [], [], 1)[0]:
                line += os.read(pipe, 4096)
            elif any(process.poll() is not None for process in self.processes):
                sys.exit("ddp_rate: a rank has ended; see its error above")
        return [float(word) for word in line.split()]

    def train(self, steps):
        """Means over ranks: seconds per step, processor seconds per step, and the loss; then, as fractions of the
        first steps, the communication and the part of it that does not overlap with backward."""
        self.tell(steps)
        answers = [self.answer(pipe) for _, pipe in self.ranks]
        seconds, processor, *rest = [statistics.mean(values) for values in zip(*answers)]
        return [seconds / steps, processor / steps, *rest]

    def end(self):
        self.tell(0)
        for process in self.processes:
            if process.wait() != 0:
                sys.exit(f"ddp_rate: a rank ended with {process.returncode}")


def start_sdk(build, model, world_size):
    return lambda folder: [subprocess.Popen(
        [build / "benchmarks/ddp/ddp_steps", "--workers", str(world_size), "--cpus", "1",
         "--max-step", "0", "--config", f"model={model}", "--", folder],
        stdout=subprocess.DEVNULL)]


def start_python(environment, model, world_size):
    return lambda folder: [subprocess.Popen(
        [sys.executable, HERE / "ddp_steps.py", model, str(rank), str(world_size), folder],
        env=environment) for rank in range(world_size)]


def compare(model, count, build, environment, folder):
    steps = MODELS[model]
    gangs = {}
    for world_size in (1, 2):
        gangs["sdk", world_size] = Gang(folder / f"{model}-sdk-{world_size}", world_size,
                                        start_sdk(build, model, world_size))
        gangs["python", world_size] = Gang(folder / f"{model}-python-{world_size}", world_size,
                                           start_python(environment, model, world_size))
    first = {name: gang.train(WARM_UP) for name, gang in gangs.items()}
    order = list(gangs)
    rounds = []
    for number in range(count):
        turns = {name: gangs[name].train(steps)
                 for name in (order if number % 2 == 0 else reversed(order))}
        for world_size in (1, 2):
            sdk, python = turns["sdk", world_size][2], turns["python", world_size][2]
            if abs(sdk - python) > TOLERANCE * abs(python):
                sys.exit(f"ddp_rate: {model}: the losses differ, {sdk} and {python}: the gangs of "
                         f"{world_size} do not do the same work")
        rounds.append({name: turn[:2] for name, turn in turns.items()})
    for gang in gangs.values():
        gang.end()

    def ratios(numerator, denominator, column=0):
        return sorted(turn[numerator][column] / turn[denominator][column] for turn in rounds)

    def row(library):
        step = statistics.median(turn[library, 2][0] for turn in rounds)
        communication, exposed = first[library, 2][3:]
        scaling = 2 * statistics.median(ratios((library, 1), (library, 2)))
        return (f"{1 / step:8.2f} steps/s, communication {communication:4.0%} of a step, "
                f"{exposed:4.0%} not hidden; 1 -> 2 ranks: {scaling:.2f}x")

    faster = ratios(("python", 2), ("sdk", 2))
    processor_ratio = statistics.median(ratios(("python", 2), ("sdk", 2), column=1))
    single_rank = statistics.median(ratios(("python", 1), ("sdk", 1)))
    print(f"{model}: {statistics.median(faster):.2f}x the steps a second of Python's (quartiles "
          f"{faster[count // 4]:.2f} to {faster[-1 - count // 4]:.2f}), {1 / processor_ratio:.2f}x its "
          f"processor time; one rank {single_rank:.2f}x; the same loss, {turns['sdk', 2][2]:.6g}")
    print(f"  SDK    {row('sdk')}")
    print(f"  Python {row('python')}", flush=True)


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "rounds", 11, "rounds")
    parser.add_argument("models", metavar="MODEL", nargs="*", default=list(MODELS),
                        help=f"of {', '.join(MODELS)} (default: all)")
    arguments = parser.parse_args()
    for model in arguments.models:
        if model not in MODELS:
            parser.error(f"{model}: no such model; take one of {', '.join(MODELS)}")
    environment = python_torch.environment_of(arguments.build)
    if environment is None:
        return
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            compare(model, arguments.rounds, arguments.build, environment, pathlib.Path(folder))


if __name__ == "__main__":
    main()
