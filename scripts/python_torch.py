#!/usr/bin/env python3
"""Runs a command in an environment where Python can import the torch of scripts/setup.

    scripts/python_torch.py COMMAND [ARGUMENT...]

The wheel in .deps/python has neither the Python packages that it depends on nor NVIDIA's libraries (3 GB, only for
GPUs). `setup` puts the packages into .deps/python-torch, together with stubs of the libraries. The option
`--stubs` with TORCH and FOLDER makes these stubs. A call of a stub ends the process. The SDK links the same
library of tensors, libtorch_cpu.so.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

DEPS = pathlib.Path(__file__).resolve().parent.parent / ".deps"


def make_stub(name, symbols, folder):
    """Makes a stub library `name` with these (symbol, version) pairs; "" is no version."""
    source = folder / f"{name}.s"
    source.write_text(".text\n" + "".join(
        f".globl {symbol}\n.type {symbol}, @function\n{symbol}: ud2\n" for symbol, _ in symbols)
        + '.section .note.GNU-stack,"",@progbits\n')
    command = ["cc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-o", folder / name, source]
    versions = sorted({version for _, version in symbols} - {""})
    if versions:
        script = folder / f"{name}.map"
        script.write_text("".join(f"{version} {{ global: *; }};\n" for version in versions))
        command.append(f"-Wl,--version-script={script}")
    subprocess.run(command, check=True)


def make_stubs(torch, folder):
    """Makes stubs in `folder` for all libraries that the wheel's Python part needs and that are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    found = subprocess.run(["ldd", "-r", torch / "lib/libtorch_python.so"], capture_output=True,
                           text=True)
    missing = sorted(set(re.findall(r"(\S+) => not found", found.stdout)))
    symbols = collections.defaultdict(set)
    for symbol, version in re.findall(r"undefined symbol: ([^,\s]+)(?:, version (\S+))?",
                                      found.stdout + found.stderr):
        # A version has the name of its library, except NVSHMEM. A symbol without a version goes into a library
        # without versions; the loader accepts it there for any version.
        library = {"": "libnccl.so.2", "NVSHMEM": "libnvshmem_host.so.3"}.get(version, version)
        symbols[library].add((symbol, version))
    for name in missing:
        make_stub(name, sorted(symbols[name]), folder)


def environment():
    """The environment of this process, extended so that Python imports the torch of setup, if it is installed."""
    packages = DEPS / "python-torch"
    if not packages.exists():
        return dict(os.environ)
    paths = [str(packages), str((DEPS / "python").resolve()), os.environ.get("PYTHONPATH")]
    return {**os.environ, "PYTHONPATH": ":".join(filter(None, paths)),
            "LD_LIBRARY_PATH": str(packages / "stubs"), "PYTHONWARNINGS": "ignore",
            "GLOO_SOCKET_IFNAME": "lo"}  # as the SDK sets it on one host


def environment_of(build):
    """environment(), if `build` links that torch. Otherwise prints the reason and returns None."""
    cache = (build / "CMakeCache.txt").read_text()
    torch = re.search(r"^ATTUNE_TORCH_FOUND_DIR:INTERNAL=(.*)$", cache, re.M).group(1)
    if not (DEPS / "python-torch").exists() or pathlib.Path(torch).resolve() != (DEPS / "python/torch").resolve():
        print(f"{sys.argv[0]}: left out: {torch} is not the LibTorch of scripts/setup, or has no Python part")
        return None
    return environment()


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    if sys.argv[1] == "--stubs":
        make_stubs(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]))
    else:
        os.execvpe(sys.argv[1], sys.argv[1:], environment())


if __name__ == "__main__":
    main()
