"""A script that both starts a sweep and contains the tuned function.

    [UNGUARDED=1] tuned_script.py ATTUNE DATA_DIR
"""

import os
import sys

import attune
from attune.client import LocalServer

TARGET = 0.3
SWEEP = {"name": "tuned", "metric": {"name": "loss", "mode": "min"}, "parameters": {"x": {"min": 0.0, "max": 1.0}},
         "searcher": {"name": "random", "seed": 1}, "scheduler": {"name": "asha", "min": 1, "max": 4},
         "resources": {"workers": 2, "cpus_per_worker": 1}, "stop": {"max_trials": 4},
         "failure": {"max_restarts": 0}}


def train(config):
    for step in range(attune.step + 1, attune.max_step + 1):
        attune.report({"loss": (config["x"] - TARGET)**2 + 1 / step})


def value(config):
    return (config["x"] - TARGET)**2


def metrics(config):
    return {"loss": value(config), "parent": os.getppid()}


def word(config):
    return "good"


def nothing(config):
    pass


def replaced(config):
    return 1


replaced.__qualname__ = "metrics"  # like a function whose name was assigned again


class Base:
    @classmethod
    def inherited(cls, config):
        return 1


class Kinds(Base):
    def method(self, config):
        return 1

    @staticmethod
    def static(config):
        return 2


def main():
    with LocalServer(sys.argv[2], attune=sys.argv[1], options=["--port", "0", "--rpc-port", "0"]) as server:
        print(server.create(SWEEP, train=train).wait()["best"]["value"])


if __name__ == "__main__" or "UNGUARDED" in os.environ:
    main()
