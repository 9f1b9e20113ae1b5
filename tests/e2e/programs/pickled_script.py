"""Tunes functions that ranks cannot import by name: a lambda, a closure and a functools.partial, in this order.

    pickled_script.py ATTUNE DATA_DIR
"""

import functools
import json
import sys

import attune
from attune.client import LocalServer

SWEEP = {"name": "pickled", "metric": {"name": "loss", "mode": "min"}, "parameters": {"x": {"value": 0.5}},
         "scheduler": {"name": "fifo", "max": 2}, "resources": {"workers": 2, "cpus_per_worker": 1},
         "stop": {"max_trials": 1}, "failure": {"max_restarts": 0}}


class Model:  # ranks do not import this script
    def __init__(self, scale):
        self.scale = scale


def closure(model):
    def train(config):
        for step in range(attune.step + 1, attune.max_step + 1):
            attune.report({"loss": model.scale * config["x"] / step})
    return train


def scaled(config, scale):
    return {"loss": config["x"] * scale}


def main():
    functions = [lambda config: config["x"], closure(Model(4)), functools.partial(scaled, scale=10)]
    with LocalServer(sys.argv[2], attune=sys.argv[1], options=["--port", "0", "--rpc-port", "0"]) as server:
        sweeps = [server.create({**SWEEP, "name": f"pickled-{number}"}, train=function)
                  for number, function in enumerate(functions)]
        print(json.dumps([sweep.wait()["best"]["value"] for sweep in sweeps]))


if __name__ == "__main__":
    main()
