#!/usr/bin/env python3
"""Runs a command whose Python finds the torch of setup by `import torch`.

    scripts/python_torch.py COMMAND [ARGUMENT...]

The wheel in .deps/python lacks the Python packages that it depends on, and NVIDIA's libraries: 3 GB that
only a GPU needs. `setup` puts the packages into .deps/python-torch, and stubs of the libraries, which
`--stand-ins TORCH FOLDER` makes. A function of a stub ends the process. The SDK links the same library of
tensors, libtorch_cpu.so.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

DEPS = pathlib.Path(__file__).resolve().parent.parent / ".deps"


def stand_in(name, symbols, folder):
    """A shared library `name` with these (symbol, version) pairs, "" for no version."""
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


def stand_ins(torch, folder):
    """Stand-ins in `folder` for every library that the wheel's Python part asks for in vain."""
    folder.mkdir(parents=True, exist_ok=True)
    found = subprocess.run(["ldd", "-r", torch / "lib/libtorch_python.so"], capture_output=True,
                           text=True)
    missing = sorted(set(re.findall(r"(\S+) => not found", found.stdout)))
    symbols = collections.defaultdict(set)
    for symbol, version in re.findall(r"undefined symbol: ([^,\s]+)(?:, version (\S+))?",
                                      found.stdout + found.stderr):
        # A version is named after its library, by all but one. What has none goes into a library
        # without versions, where the loader finds it whatever it looks for.
        library = {"": "libnccl.so.2", "NVSHMEM": "libnvshmem_host.so.3"}.get(version, version)
        symbols[library].add((symbol, version))
    for name in missing:
        stand_in(name, sorted(symbols[name]), folder)


def environment():
    """This process's, in which Python imports the torch of setup; as it is, where setup made none."""
    packages = DEPS / "python-torch"
    if not packages.exists():
        return dict(os.environ)
    paths = [str(packages), str((DEPS / "python").resolve()), os.environ.get("PYTHONPATH")]
    return {**os.environ, "PYTHONPATH": ":".join(filter(None, paths)),
            "LD_LIBRARY_PATH": str(packages / "stand-ins"), "PYTHONWARNINGS": "ignore",
            "GLOO_SOCKET_IFNAME": "lo"}  # as the SDK on one host


def environment_of(build):
    """The same if `build` links that torch; otherwise None, and prints the reason."""
    cache = (build / "CMakeCache.txt").read_text()
    torch = re.search(r"^ATTUNE_TORCH_FOUND_DIR:INTERNAL=(.*)$", cache, re.M).group(1)
    if not (DEPS / "python-torch").exists() or pathlib.Path(torch).resolve() != (DEPS / "python/torch").resolve():
        print(f"{sys.argv[0]}: left out: {torch} is not the LibTorch of scripts/setup, or has no Python part")
        return None
    return environment()


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    if sys.argv[1] == "--stand-ins":
        stand_ins(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]))
    else:
        os.execvpe(sys.argv[1], sys.argv[1:], environment())


if __name__ == "__main__":
    main()
