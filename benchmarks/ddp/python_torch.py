"""Makes the wheel of LibTorch, which setup installs without what it depends on, importable in Python.

- Packages of pure Python go into a folder of their own, by pip.
- NVIDIA's libraries, 3 GB that only a GPU needs, are stood in for by empty ones of their names, whose
  functions end the process. The tensors' library, libtorch_cpu.so, is the one that the SDK links.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

PACKAGES = ["filelock==3.20.0", "fsspec==2025.10.0", "jinja2==3.1.6", "markupsafe==3.0.3",
            "mpmath==1.3.0", "networkx==3.5", "sympy==1.14.0", "typing-extensions==4.15.0"]


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


def prepare(torch, folder):
    """The environment in which `sys.executable` imports the torch in the folder `torch`."""
    packages, libraries = folder / "packages", folder / "libraries"
    ready = folder / "ready"
    recipe = "\n".join([*PACKAGES, str(torch), sys.version])
    if not ready.exists() or ready.read_text() != recipe:
        print(f"python_torch: making {torch} importable in Python …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade",
                        "--disable-pip-version-check", "--root-user-action", "ignore",
                        "--target", packages, *PACKAGES], check=True)
        stand_ins(torch, libraries)
        ready.write_text(recipe)
    return {**os.environ, "PYTHONPATH": f"{packages}:{torch.parent}",
            "LD_LIBRARY_PATH": str(libraries), "PYTHONWARNINGS": "ignore"}


def environment(build):
    """The environment in which `sys.executable` imports the torch that `build` links; None, which is
    said, where that is a LibTorch without its Python part."""
    cache = (build / "CMakeCache.txt").read_text()
    torch = pathlib.Path(re.search(r"^ATTUNE_TORCH_FOUND_DIR:INTERNAL=(.*)$", cache, re.M).group(1))
    if not (torch / "lib/libtorch_python.so").exists():
        print(f"{sys.argv[0]}: {torch} is a LibTorch without its Python part; left out")
        return None
    made = prepare(torch.resolve(), build / "benchmarks/ddp/python")
    return {**made, "GLOO_SOCKET_IFNAME": "lo"}  # as the SDK on one host
