"""Runs a function as a trial: each rank calls the function with the configuration.

    python3 -m attune.function [--path FOLDER] [--metric NAME] MODULE:FUNCTION
    python3 -m attune.function [--path FOLDER] [--metric NAME] --pickle FILE

This is the `command` of a sweep file, which `Server.create(…, train=…)` of `attune.client` writes. Ranks start faster
with `python3 -m attune.launcher -m attune.function …`. Python looks for modules in FOLDER first; the default is the
current folder. FILE is a function that `command` has pickled. The function may report as any script does. Its result is
one more report: metrics by name, or the value of NAME.
"""

from __future__ import annotations

import attune._distribution  # first: it raises if pip mixed two packages

import argparse
import functools
import importlib
import operator
import os
import pathlib
import sys
import types
import typing

import attune
from attune import _pickled

__all__ = ["command", "main"]


def command(function: typing.Callable[..., typing.Any], metric: str | None = None,
            directory: str | os.PathLike[str] = ".") -> list[str]:
    """Returns the command of a sweep whose trials call `function`.

    Ranks import a function of a module or script by its name. Other functions, such as lambdas, closures and those of a
    notebook, are pickled into a file in `directory`, the working directory of the sweep; this needs cloudpickle.
    `metric` is the name of a number that the function returns.

    Raises ValueError if `function` is not a function, if it cannot be pickled, or if its module has the name of a
    standard module; ImportError if it must be pickled and cloudpickle is not installed; and OSError if the file cannot
    be written.
    """
    if not callable(function):
        raise ValueError(f"train is {function!r} and must be a function")
    called = _without_arguments(function)
    module = sys.modules.get(getattr(called, "__module__", None) or "")
    name = getattr(called, "__qualname__", None) or type(called).__qualname__
    options = ["--metric", metric] if metric else []
    module_name = None
    file = getattr(module, "__file__", None)
    if module and file:
        folder, module_name = _import_path_of(module, file)
        options += ["--path", os.fspath(folder)]
    if module_name and _find(name, module) == function:
        if module_name.partition(".")[0] in getattr(sys, "stdlib_module_names", ()):
            raise ValueError(f"{file} has the name of Python's module {module_name}, which ranks would import instead; "
                             "rename the file")
        target = [f"{module_name}:{name}"]
    else:
        target = ["--pickle", os.fspath(_pickled.write(function, name, directory))]
    return [sys.executable, "-m", "attune.launcher", "-m", "attune.function", *options, *target]


def sweep_of_function(sweep: typing.Any, train: typing.Callable[..., typing.Any],
                      directory: str | os.PathLike[str] | None) -> dict[str, typing.Any]:
    """Returns the sweep with a command that calls `train` in each rank. Raises ValueError if it is not a dict."""
    if not hasattr(sweep, "items"):
        raise ValueError("train= needs a sweep that is a dict; in a sweep file, set `command` instead")
    if "command" in sweep:
        raise ValueError("command and train= both define what trials run; omit one of them")
    if "code" in sweep:
        raise ValueError("code needs a command: executors import the function of train= from its file on their host")
    metric = sweep.get("metric")
    return {**sweep, "command": command(train, metric.get("name") if isinstance(metric, dict) else None,
                                        _working_directory(sweep, directory))}


def _working_directory(sweep: dict[str, typing.Any], directory: str | os.PathLike[str] | None) -> pathlib.Path:
    own = sweep.get("working_directory")
    return pathlib.Path(directory or ".", own if isinstance(own, (str, os.PathLike)) else "").absolute()


def _without_arguments(function: typing.Callable[..., typing.Any]) -> typing.Callable[..., typing.Any]:
    """Returns the function that a functools.partial calls, and others as they are."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _find(name: str, module: typing.Any) -> typing.Any:
    """Returns the member of a module that has this qualified name, or None."""
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        return None


def _import_path_of(module: types.ModuleType, path: str) -> tuple[pathlib.Path, str | None]:
    """Returns the folder from which ranks can import a module, and its name there; None if they cannot import it."""
    file = pathlib.Path(path).absolute()
    name = module.__name__
    if name == "__main__":  # ranks import it by its real name
        spec = module.__spec__
        name = spec.name if spec and spec.name != "__main__" else file.stem
        if file.suffix != ".py" or (file.stem != "__main__" and "." in file.stem) or name == "__main__":
            return file.parent, None
    return file.parents[name.count(".") + (file.name == "__init__.py")], name


def main() -> None:
    """Runs the function that the command line names, as one rank."""
    parser = argparse.ArgumentParser(prog="python3 -m attune.function", description=__doc__.partition("\n")[0])
    parser.add_argument("--path", help="where Python looks for the module first")
    parser.add_argument("--metric", help="the name of a number that the function returns")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--pickle", metavar="FILE", help="a function that attune.client has pickled")
    target.add_argument("function", metavar="MODULE:FUNCTION", nargs="?")
    options = parser.parse_args()
    if options.path:
        sys.path.insert(0, options.path)
    if options.pickle:
        name, function = _pickled.load(options.pickle)
    else:
        name = options.function
        module, _, member = name.partition(":")
        function = operator.attrgetter(member)(importlib.import_module(module))
    result = function(attune.init())
    if result is None:
        if attune.step == 0:
            raise RuntimeError(f"{name} has returned nothing and reported nothing; report the metrics, or return them, "
                               "on each rank")
        return
    if not hasattr(result, "items"):
        if options.metric is None:
            raise TypeError(f"{name} returned {result!r}; return metrics by name, or give --metric NAME")
        result = {options.metric: result}
    attune.report(result)


if __name__ == "__main__":
    main()
