#!/usr/bin/env python3
"""Reads every #include of the repository and fails on an arrow that the plan of the house forbids.

    arrows.py [ROOT]      prints one line a fault, FILE:LINE: what and why; exit 1 if there is any

The tables below are the plan of docs/architecture.md, "Rooms", in a form that a machine can hold
the code to. A new room or library is one line here, in the same commit that brings it.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple


class Room(NamedTuple):
    rooms: tuple = ()  # rooms whose headers it may include, besides its own; "x/*" is all inside x
    libraries: tuple = ()  # names of LIBRARIES
    pure: bool = False  # standard library only, and nothing of IMPURE


# Below every room but these, whose headers stand alone: users install them, or every source reads them.
BELOW_ALL = "base"
WITHOUT_BASE = ("trainable/include", "examples", "json", "logging", "proto", "web", "clients/python")

# What a searcher or a scheduler may know: all of core but the brain.
ALGORITHMS_SEE = ("core/base", "core/space", "core/log", "core/algorithms")

# What a folder of handlers may know. It knows no other one.
HANDLERS = Room(
    ("core/*", "rest", "simulator", "sweepfile", "server/store", "server/http/transport", "server/http/backend",
     "server/http/answers", "server/http/routes/request", "json")
)

ROOMS = {
    # Layers over a library, so that only one source compiles its templates.
    "json": Room((), ("nlohmann",)),
    "logging": Room((), ("spdlog",)),
    # Below the rest. `system` is what we ask of Linux.
    "base": Room(pure=True),
    "system": Room((), ("openssl",)),
    # The brain: a function of its arguments.
    "core/base": Room(pure=True),
    "core/space": Room(("core/base",), pure=True),
    "core/analysis": Room(("core/base", "core/space"), pure=True),
    "core/log": Room(("core/base", "core/space"), pure=True),
    "core/algorithms": Room(("core/base", "core/space", "core/log"), pure=True),
    "core/state": Room(("core/base", "core/space", "core/log", "core/algorithms"), pure=True),
    "core/brain": Room(("core/*",), pure=True),
    "core": Room(pure=True),
    # The REST contract: generated structs, and how JSON becomes one of them.
    "rest": Room((), ("nlohmann",)),
    "searchers/model": Room(ALGORITHMS_SEE, pure=True),
    "searchers/gaussian": Room(
        ALGORITHMS_SEE + ("searchers/model",), ("eigen", "lbfgspp"), pure=True
    ),
    "searchers": Room(ALGORITHMS_SEE + ("searchers/model", "searchers/gaussian"), pure=True),
    "schedulers": Room(ALGORITHMS_SEE, pure=True),
    # Sweeps in virtual time.
    "simulator": Room(("core/*",), pure=True),
    # The service.
    "sweepfile": Room(ALGORITHMS_SEE + ("json",), ("yaml-cpp", "re2")),
    "proto": Room((), ("grpc", "protobuf")),
    "tls": Room(("system",), ("openssl",)),
    "checkpoints": Room(("system", "json")),
    "server/store": Room(
        ("core/*", "sweepfile", "system", "json", "logging"), ("sqlite", "openssl", "zlib")
    ),
    "server/folder": Room(("system", "tls", "json", "logging")),
    "server/network": Room(("system",)),
    "server/conductor": Room(("core/*", "server/store", "logging")),
    "server/rpc": Room(
        ("core/*", "server/conductor", "server/network", "proto", "system", "tls", "logging"), ("grpc", "protobuf")
    ),
    "server/http/transport": Room(
        ("core/base", "rest", "server/network", "server/store", "system", "logging"), ("httplib", "openssl", "zlib")
    ),
    "server/http/access": Room(("core/*", "rest", "system", "server/folder", "server/http/transport")),
    "server/http/backend": Room(("core/*",)),
    "server/http/answers": Room(
        ("core/*", "rest", "sweepfile", "server/store", "server/http/transport", "server/http/backend", "json")
    ),
    "server/http/routes/request": Room(("core/*", "rest", "sweepfile", "system", "server/http/transport")),
    **{f"server/http/routes/{resource}": HANDLERS
       for resource in ("service", "sweeps", "trials", "checkpoints", "fleet")},
    "server/http/routes": Room(HANDLERS.rooms + ("server/http/routes/*",)),
    "server/http": Room(("core/*", "rest", "server/folder", "server/network", "server/store", "server/http/*")),
    "server": Room(
        ("core/*", "sweepfile", "checkpoints", "proto", "server/*", "system", "tls", "json", "logging"),
        ("grpc", "protobuf", "openssl"),
    ),
    "channel": Room(("system", "json")),
    "executor/processes": Room(("channel", "system", "logging")),
    "executor/logs": Room(("channel", "executor/processes", "system", "logging"), ("re2",)),
    "executor/gang": Room(("channel", "executor/logs", "executor/processes", "system", "logging"), ("re2",)),
    "executor/health": Room(("executor/gang", "executor/processes", "system", "logging")),
    "executor/transfer": Room(
        ("executor/gang", "executor/logs", "checkpoints", "proto", "system", "logging"), ("grpc", "protobuf")
    ),
    "executor/agent": Room(
        ("executor/gang", "executor/health", "executor/logs", "executor/processes", "executor/transfer", "proto", "system",
         "tls", "logging"),
        ("grpc", "protobuf"),
    ),
    "executor": Room(("executor/*", "proto", "logging"), ("grpc", "protobuf")),
    "slurm": Room(("system", "json")),
    "web": Room(),
    "clients/python": Room(),
    "cli": Room(
        ("core/*", "searchers", "schedulers", "simulator", "sweepfile", "proto", "server", "server/*",
         "executor", "executor/*", "checkpoints", "slurm", "system", "tls", "web", "rest", "json", "logging"),
        ("cli11", "httplib", "openssl", "grpc", "spdlog"),
    ),
    # The user's program: no gRPC and no protobuf, whose symbols clash with LibTorch's own.
    "trainable/include": Room((), ("torch",)),
    "trainable/base": Room(("trainable/include", "system", "json")),
    "trainable/channel": Room(("trainable/include", "trainable/base", "channel", "system")),
    "trainable/checkpoints": Room(
        ("trainable/include", "trainable/base", "checkpoints", "system", "json"), ("torch",)
    ),
    "trainable/data": Room(("trainable/include", "trainable/base"), ("torch",)),
    "trainable/distributed": Room(
        ("trainable/include", "trainable/base", "trainable/channel", "channel", "system"),
        ("torch", "gloo"),
    ),
    "trainable/files": Room(
        ("trainable/include", "trainable/base", "system"), ("curl",)
    ),
    "trainable/precision": Room(("trainable/distributed", "trainable/include"), ("torch",)),
    "trainable/worker": Room(
        ("trainable/include", "trainable/base", "trainable/channel", "trainable/checkpoints",
         "trainable/data", "trainable/distributed", "channel", "checkpoints", "system"),
        ("torch",),
    ),
    "trainable/gang": Room(("trainable/include", "trainable/base", "channel", "system")),
    "trainable/start": Room(
        ("trainable/include", "trainable/base", "trainable/channel", "trainable/checkpoints",
         "trainable/gang", "trainable/worker", "channel", "system"),
        ("cli11",),
    ),
    "trainable/driver": Room(
        ("trainable/include", "trainable/base", "trainable/channel", "trainable/checkpoints",
         "trainable/gang", "trainable/worker", "channel", "system", "json"),
        ("torch",),
    ),
    "trainable": Room(),
    "examples/in_process": Room(("core/*", "searchers"), pure=False),
    "examples": Room(("trainable/include",), ("torch", "nlohmann", "zlib")),
    # These look at everything.
    "tests": Room(("*",), ("*",)),
    "benchmarks": Room(("*",), ("*",)),
}

# How a library's headers begin. A header with a folder in its name that is in neither this table
# nor SYSTEM is unknown and a fault.
LIBRARIES = {
    "torch": ("torch/", "c10/", "ATen/"),
    "gloo": ("gloo/",),
    "grpc": ("grpc/", "grpcpp/", "grpc++/"),
    "protobuf": ("google/protobuf/",),
    "nlohmann": ("nlohmann/",),
    "yaml-cpp": ("yaml-cpp/",),
    "sqlite": ("sqlite3.h",),
    "eigen": ("Eigen/",),
    "lbfgspp": ("LBFGSB.h", "LBFGSpp/"),
    "httplib": ("httplib.h",),
    "openssl": ("openssl/",),
    "curl": ("curl/",),
    "zlib": ("zlib.h",),
    "re2": ("re2/",),
    "cli11": ("CLI/",),
    "spdlog": ("spdlog/", "fmt/"),
    "gtest": ("gtest/", "gmock/"),
    "benchmark": ("benchmark/",),
}
SYSTEM = ("sys/", "linux/", "arpa/", "net/", "netinet/")

# Standard headers that a pure room leaves alone: input and output, threads, clocks, and
# distributions that differ between libraries.
IMPURE = set(
    "iostream fstream filesystem syncstream thread mutex shared_mutex condition_variable future "
    "atomic semaphore latch barrier stop_token chrono ctime random csignal execution".split()
)

# It costs 15 s a file that includes it, so never by way of a header.
NEVER_IN_HEADERS = ("torch/torch.h", "torch/extension.h")

README_LINES_MAX = 30
# Folders whose parts are described one level up.
DESCRIBED_ABOVE = ("trainable/include/", "tests/unit/")
SOURCES = (".h", ".cc")
NOT_OURS = re.compile(r"^(\..*|build.*|node_modules|dist|attune-data|__pycache__)$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def source_files(root: Path) -> Iterator[Path]:
    """Paths, relative to root, of all C++ sources."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not NOT_OURS.match(name))
        for name in sorted(names):
            if name.endswith(SOURCES):
                yield (Path(folder) / name).relative_to(root)


def room_of(path: str) -> str | None:
    """The room that a path, relative to the root, lies in: the longest one that contains it."""
    if path.endswith(".pb.h"):
        return "proto"  # generated; included as attune/v1/….pb.h
    if path.startswith("attune/"):
        return "trainable/include"  # the SDK's public headers, as a user's program names them
    holding = [room for room in ROOMS if path.startswith(room + "/")]
    return max(holding, key=len, default=None)


def library_of(header: str) -> str | None:
    for library, beginnings in LIBRARIES.items():
        if header.startswith(beginnings):
            return library
    return None


def may_include(room: str, other: str) -> bool:
    if other == BELOW_ALL and room not in WITHOUT_BASE:
        return True
    return other == room or any(
        allowed in ("*", other) or (allowed.endswith("/*") and other.startswith(allowed[:-1]))
        for allowed in ROOMS[room].rooms
    )


def fault_of(path: Path, header: str) -> str | None:
    """What is wrong with `path` including `header`; None when nothing is."""
    room = room_of(str(path))
    if room is None:
        return "lies in no room that tests/arrows/arrows.py knows"
    other, library = room_of(header), library_of(header)
    rules = ROOMS[room]

    if library is None and other is not None:
        if may_include(room, other):
            return None
        allowed = ", ".join(rules.rooms) or "no other room"
        return f"includes {header}, of {other}; {room} may include {allowed}"
    if library is not None:
        if library not in rules.libraries and "*" not in rules.libraries:
            allowed = ", ".join(rules.libraries) or "none"
            return f"includes {header}, of the library {library}; {room} may use {allowed}"
        if header in NEVER_IN_HEADERS and path.suffix == ".h":
            return f"includes {header} in a header; include it in a .cc, torch/types.h here"
        return None
    if "/" in header and not header.startswith(SYSTEM):
        return f"includes {header}, whose room or library is unknown"
    if rules.pure and (header.endswith(".h") or "/" in header or header in IMPURE):
        return f"includes {header}; {room} is pure: no input, output, thread, clock or randomness"
    return None


def include_faults(root: Path) -> Iterator[str]:
    for path in source_files(root):
        text = (root / path).read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            quoted, angled = match.groups()
            line = text.count("\n", 0, match.start()) + 1
            if quoted and "/" not in quoted and library_of(quoted) is None:
                yield f"{path}:{line}: includes {quoted}; name it from the repository's root"
            elif fault := fault_of(path, quoted or angled):
                yield f"{path}:{line}: {fault}"


def preset_faults(root: Path) -> Iterator[str]:
    """A preset that builds some of the rooms builds what these include: it would not configure.

    The web page is exempt, which the server does without, and the tests, which skip what is not built.
    """
    arrows = {}
    for path in source_files(root):
        others = {room_of(name) for pair in INCLUDE.findall((root / path).read_text("utf-8"))
                  for name in pair if "/" in name}
        included = arrows.setdefault(path.parts[0], set())
        included |= {other.split("/")[0] for other in others if other}
    presets = json.loads((root / "CMakePresets.json").read_text(encoding="utf-8"))
    for preset in presets["configurePresets"]:
        if not (only := preset.get("cacheVariables", {}).get("ATTUNE_ONLY")):
            continue
        built = set(only.split(";"))
        for room in sorted(built - {"tests"}):
            for missing in sorted(arrows.get(room, set()) - built - {"web"}):
                yield f"CMakePresets.json: {preset['name']} builds {room} and not {missing}, which it includes"


def readme_faults(root: Path) -> Iterator[str]:
    """Each room, and each folder of sources in it, has a short README.md."""
    folders = {path.parent for path in source_files(root)}
    folders |= {Path(room) for room in ROOMS if any((root / room).glob("*"))}
    for folder in sorted(folders):
        if f"{folder}/".startswith(DESCRIBED_ABOVE):
            continue
        readme = root / folder / "README.md"
        if not readme.is_file():
            yield f"{folder}/README.md: missing; say what lives here, what it may use, how to add one"
            continue
        lines = len(readme.read_text(encoding="utf-8").splitlines())
        if lines > README_LINES_MAX:
            yield f"{folder}/README.md: {lines} lines; {README_LINES_MAX} are the most"


def main(root: Path) -> int:
    faults = [*include_faults(root), *preset_faults(root), *readme_faults(root)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
