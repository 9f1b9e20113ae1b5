"""Trials that are a function: each rank imports it, and calls it with the configuration.

    python3 -m attune.function [--path FOLDER] [--metric NAME] MODULE:FUNCTION

As the `command` of a sweep file, best behind `python3 -m attune.launcher`; `Server.create(…, train=…)` of
`attune.client` writes it. Python looks for the module in FOLDER first, or in the current one. The function
may report as any script does. What it returns is one more report: metrics by name, or the value of NAME.
"""

import attune._distribution  # first: it may refuse

import argparse
import functools
import importlib
import os
import pathlib
import sys

import attune


def command(function, metric=None):
    """The command of a sweep whose trials are `function`, which ranks have to find by its name.

    Raises ValueError where they could not, or would find another one.
    """
    name = getattr(function, "__qualname__", repr(function))
    module = sys.modules.get(getattr(function, "__module__", None))
    try:
        found = functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        found = None
    if found != function:
        raise ValueError(f"ranks find a function by its name, and {name} does not lead to this one: make it a "
                         "function of a module, neither a lambda nor inside of another nor of an object")
    file = getattr(module, "__file__", None)
    if file is None:
        raise ValueError(f"ranks cannot import {name} from {module.__name__}, which is no file: write it to one, "
                         "in a notebook with %%writefile, and import it from there")
    file = pathlib.Path(file).absolute()
    known_as = module.__name__
    if known_as == "__main__":  # others import it by another name
        spec = module.__spec__
        known_as = spec.name if spec and spec.name != "__main__" else file.stem
        if file.suffix != ".py" or (file.stem != "__main__" and "." in file.stem) or known_as == "__main__":
            raise ValueError(f"ranks cannot import {name} from {file}: name it NAME.py, without another dot")
    if known_as.partition(".")[0] in getattr(sys, "stdlib_module_names", ()):
        raise ValueError(f"ranks would import Python's own {known_as} for {file}: give it another name")
    folder = file.parents[known_as.count(".") + (file.name == "__init__.py")]
    options = ["--metric", metric] if metric else []
    return [sys.executable, "-m", "attune.launcher", "-m", "attune.function", "--path", os.fspath(folder), *options,
            f"{known_as}:{name}"]


def main():
    parser = argparse.ArgumentParser(prog="python3 -m attune.function", description=__doc__.partition("\n")[0])
    parser.add_argument("--path", help="where Python looks for the module first")
    parser.add_argument("--metric", help="the name of a number that the function returns")
    parser.add_argument("function", metavar="MODULE:FUNCTION")
    options = parser.parse_args()
    module, _, name = options.function.partition(":")
    if options.path:
        sys.path.insert(0, options.path)
    function = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    result = function(attune.init())
    if result is None:
        if attune.step == 0:
            raise RuntimeError(f"{options.function} has returned nothing and reported nothing: each rank reports, or "
                               "returns the metrics")
        return
    if not hasattr(result, "items"):
        if options.metric is None:
            raise TypeError(f"{options.function} returned {result!r}: metrics by name are wanted, or --metric NAME")
        result = {options.metric: result}
    attune.report(result)


if __name__ == "__main__":
    main()
