"""Functions that ranks cannot import by name, as files that cloudpickle writes.

A file has a line of JSON, with the function's name and the versions of packages, followed by the pickle. Its name is
the SHA-256 of its content. So the command of a sweep identifies the function, and equal functions share a file.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import os
import pathlib
import pickle
import sys
import tempfile
import typing
import warnings

FOLDER = "attune-functions"  # in the working directory of a sweep

_FORMAT = "attune-function/1"
_PACKAGES = ("attune-hpo", "cloudpickle", "numpy", "torch")


def write(function: typing.Callable[..., typing.Any], name: str, directory: str | os.PathLike[str]) -> pathlib.Path:
    """Writes a function into FOLDER of a directory. Returns the path of the file.

    Raises ImportError without cloudpickle, ValueError if the function cannot be pickled, and OSError if the file cannot
    be written.
    """
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        raise ImportError(f"ranks cannot import {name} by its name: define it as a function of a module, or run `pip "
                          "install cloudpickle`, which can also write lambdas and closures") from None
    try:
        pickled = cloudpickle.dumps(function)
    except Exception as error:
        raise ValueError(f"cannot pickle {name}: {type(error).__name__}: {error}; let the function create such objects "
                         "when it is called, instead of using those of the program") from error
    head = {"format": _FORMAT, "name": name, "versions": _versions()}
    content = json.dumps(head).encode() + b"\n" + pickled
    folder = pathlib.Path(directory, FOLDER)
    folder.mkdir(exist_ok=True)
    path = folder / f"{hashlib.sha256(content).hexdigest()}.function"
    _replace(path, content)
    return path


def load(path: str | os.PathLike[str]) -> tuple[str, typing.Callable[..., typing.Any]]:
    """Returns the name and the function from a file of write().

    Warns if a package has another version here. Raises RuntimeError if the content does not match the file's name, if
    Python has another version, or if the function cannot be loaded.
    """
    path = pathlib.Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RuntimeError(f"{path}: cannot read the function of the sweep: {error.strerror}; copy the folder {FOLDER} "
                           "of the sweep's working directory to this host") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != path.stem:
        raise RuntimeError(f"{path}: has changed since the sweep was created: its SHA-256 is {digest}; copy the file again, or "
                           "create the sweep again")
    line, _, pickled = content.partition(b"\n")
    head = json.loads(line)
    if head["format"] != _FORMAT:
        raise RuntimeError(f"{path}: has the format {head['format']}, and this package reads {_FORMAT}; install the "
                           "release of attune-hpo that created the sweep")
    pickled_with, installed = head["versions"], _versions()
    name, differences = head["name"], _differences(pickled_with, installed)
    if pickled_with["python"] != installed["python"]:
        raise RuntimeError(f"{path}: cannot load {name} with another version of Python ({differences}); use the same "
                           "version on every host")
    try:
        function = pickle.loads(pickled)
    except Exception as error:
        raise RuntimeError(f"{path}: cannot load {name}: {type(error).__name__}: {error}"
                           + (f"; versions differ: {differences}" if differences else "")) from error
    if differences:
        warnings.warn(f"versions differ from those with which {name} was pickled: {differences}", stacklevel=2)
    return name, function


def _versions() -> dict[str, str]:
    """Returns the versions of Python and of the installed packages among _PACKAGES."""
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return versions


def _differences(pickled_with: dict[str, str], installed: dict[str, str]) -> str:
    """Returns the differences as text, such as `numpy 2.3 when it was pickled, 1.26 here`."""
    return ", ".join(f"{name} {version} when it was pickled, {installed.get(name, 'none')} here"
                     for name, version in pickled_with.items() if installed.get(name) != version)


def _replace(path: pathlib.Path, content: bytes) -> None:
    """Writes a file atomically: other processes see the whole file or none."""
    with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as folder:
        part = pathlib.Path(folder, path.name)
        with open(part, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
