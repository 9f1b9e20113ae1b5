#!/usr/bin/env python3
"""Reads every #include of the repository and reports the dependencies that the architecture forbids.

    dependencies.py [ROOT]      prints one fault a line, FILE:LINE: what and why; exit 1 if there is any

The tables below repeat the module table of docs/architecture.md in a form that a program can check.
A new module or library needs one line here, in the commit that adds it.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple


class Module(NamedTuple):
    modules: tuple = ()  # other modules whose headers it may include; "x/*" is every module inside x
    libraries: tuple = ()  # names of LIBRARIES
    pure: bool = False  # uses only the standard library, without the headers in IMPURE


# The module that every other module may include, except the modules in WITHOUT_BASE. Their headers need no
# other header, because users install them or because every module includes them.
BELOW_ALL = "base"
WITHOUT_BASE = ("trainable/include", "examples", "json", "logging", "proto", "web", "clients/python")

# The modules that a searcher or a scheduler may include: core without its state and its brain.
ALGORITHMS_SEE = ("core/base", "core/space", "core/log", "core/algorithms")

# The modules that a folder of REST handlers may include. It may not include another folder of handlers.
HANDLERS = Module(
    ("core/*", "rest", "simulator", "sweepfile", "server/store", "server/http/transport", "server/http/backend",
     "server/http/answers", "server/http/routes/request", "json")
)

MODULES = {
    # Wrappers of one library each, so that only one source compiles the library's templates.
    "json": Module((), ("nlohmann",)),
    "logging": Module((), ("spdlog",)),
    # The lowest layer. `system` wraps the calls to Linux.
    "base": Module(pure=True),
    "system": Module((), ("openssl",)),
    # The brain: its results depend on its arguments only.
    "core/base": Module(pure=True),
    "core/space": Module(("core/base",), pure=True),
    "core/analysis": Module(("core/base", "core/space"), pure=True),
    "core/log": Module(("core/base", "core/space"), pure=True),
    "core/algorithms": Module(("core/base", "core/space", "core/log"), pure=True),
    "core/state": Module(("core/base", "core/space", "core/log", "core/algorithms"), pure=True),
    "core/brain": Module(("core/*",), pure=True),
    "core": Module(pure=True),
    # The REST contract: generated structs, and their conversion from JSON.
    "rest": Module((), ("nlohmann",)),
    "searchers/model": Module(ALGORITHMS_SEE, pure=True),
    "searchers/gaussian": Module(
        ALGORITHMS_SEE + ("searchers/model",), ("eigen", "lbfgspp"), pure=True
    ),
    "searchers": Module(ALGORITHMS_SEE + ("searchers/model", "searchers/gaussian"), pure=True),
    "schedulers": Module(ALGORITHMS_SEE, pure=True),
    # Runs sweeps in virtual time.
    "simulator": Module(("core/*",), pure=True),
    # The service.
    "sweepfile": Module(ALGORITHMS_SEE + ("json",), ("yaml-cpp", "re2")),
    "proto": Module((), ("grpc", "protobuf")),
    "tls": Module(("system",), ("openssl",)),
    "checkpoints": Module(("system", "json")),
    "code": Module(("system", "checkpoints")),
    "object_storage": Module(("system", "checkpoints", "json")),
    "download": Module(("system",), ("curl",)),
    "server/store": Module(
        ("core/*", "sweepfile", "system", "json", "logging"), ("sqlite", "openssl", "zlib")
    ),
    "server/folder": Module(("checkpoints", "code", "system", "tls", "json", "logging")),
    "server/network": Module(("system",)),
    "server/conductor": Module(("core/*", "server/store", "logging")),
    "server/rpc": Module(
        ("core/*", "server/conductor", "server/network", "proto", "system", "tls", "logging"), ("grpc", "protobuf")
    ),
    "server/storage": Module(
        ("core/*", "sweepfile", "checkpoints", "code", "object_storage", "proto", "server/conductor", "server/folder",
         "server/rpc", "server/store", "system", "json", "logging")
    ),
    "server/http/transport": Module(
        ("core/base", "rest", "server/network", "server/store", "system", "logging"), ("httplib", "openssl", "zlib")
    ),
    "server/http/access": Module(("core/*", "rest", "system", "server/folder", "server/http/transport")),
    "server/http/backend": Module(("core/*",)),
    "server/http/answers": Module(
        ("core/*", "rest", "sweepfile", "server/store", "server/http/transport", "server/http/backend", "json")
    ),
    "server/http/routes/request": Module(("core/*", "rest", "sweepfile", "system", "server/http/transport")),
    **{f"server/http/routes/{resource}": HANDLERS
       for resource in ("service", "checkpoints", "fleet")},
    **{f"server/http/routes/{resource}": Module(HANDLERS.modules + ("server/folder",))
       for resource in ("code", "sweeps", "tokens")},
    "server/http/routes/trials": Module(HANDLERS.modules + ("server/folder", "system")),
    "server/http/routes": Module(HANDLERS.modules + ("server/http/routes/*",)),
    "server/http": Module(("core/*", "rest", "server/folder", "server/network", "server/store", "server/http/*")),
    "server": Module(
        ("core/*", "sweepfile", "checkpoints", "code", "object_storage", "proto", "server/*", "system", "tls", "json",
         "logging"),
        ("grpc", "protobuf", "openssl"),
    ),
    "channel": Module(("system", "json")),
    "executor/processes": Module(("channel", "system", "logging")),
    "executor/logs": Module(("channel", "executor/processes", "system", "logging"), ("re2",)),
    "executor/gang": Module(("channel", "executor/logs", "executor/processes", "system", "logging"), ("re2",)),
    "executor/health": Module(("executor/gang", "executor/processes", "system", "logging")),
    "executor/transfer": Module(
        ("executor/gang", "executor/logs", "checkpoints", "code", "download", "object_storage", "proto", "system",
         "logging"),
        ("grpc", "protobuf"),
    ),
    "executor/environments": Module(("executor/gang", "executor/processes", "system", "logging")),
    "executor/record": Module(("executor/gang", "executor/health", "executor/processes", "system", "json")),
    "executor/agent": Module(
        ("executor/environments", "executor/gang", "executor/health", "executor/logs", "executor/processes",
         "executor/record", "executor/transfer", "code", "object_storage", "proto", "system", "tls", "logging"),
        ("grpc", "protobuf"),
    ),
    "executor": Module(("executor/*", "proto", "logging"), ("grpc", "protobuf")),
    "pilots": Module(("system", "json")),
    "slurm": Module(("pilots", "system")),
    "kubernetes": Module(("pilots", "system", "json")),
    "web": Module(),
    "clients/python": Module(),
    "cli": Module(
        ("core/*", "searchers", "schedulers", "simulator", "sweepfile", "proto", "server", "server/*",
         "executor", "executor/*", "checkpoints", "code", "object_storage", "kubernetes", "pilots", "slurm", "system", "tls", "web", "rest", "json", "logging"),
        ("cli11", "httplib", "openssl", "grpc", "spdlog"),
    ),
    # The user's program: no gRPC and no protobuf, because their symbols clash with LibTorch's.
    "trainable/include": Module((), ("torch",)),
    "trainable/base": Module(("trainable/include", "system", "json")),
    "trainable/channel": Module(("trainable/include", "trainable/base", "channel", "system")),
    "trainable/checkpoints": Module(
        ("trainable/include", "trainable/base", "checkpoints", "system", "json"), ("torch",)
    ),
    "trainable/data": Module(("trainable/include", "trainable/base"), ("torch",)),
    "trainable/distributed": Module(
        ("trainable/include", "trainable/base", "trainable/channel", "channel", "system"),
        ("torch", "gloo"),
    ),
    "trainable/files": Module(("trainable/include", "trainable/base", "download", "system")),
    "trainable/precision": Module(("trainable/distributed", "trainable/include"), ("torch",)),
    "trainable/worker": Module(
        ("trainable/include", "trainable/base", "trainable/channel", "trainable/checkpoints",
         "trainable/data", "trainable/distributed", "channel", "checkpoints", "system"),
        ("torch",),
    ),
    "trainable/gang": Module(("trainable/include", "trainable/base", "channel", "system")),
    "trainable/start": Module(
        ("trainable/include", "trainable/base", "trainable/channel", "trainable/checkpoints",
         "trainable/gang", "trainable/worker", "channel", "system"),
        ("cli11",),
    ),
    "trainable/driver": Module(
        ("trainable/include", "trainable/base", "trainable/channel", "trainable/checkpoints",
         "trainable/gang", "trainable/worker", "channel", "system", "json"),
        ("torch",),
    ),
    "trainable": Module(),
    "examples/in_process": Module(("core/*", "searchers"), pure=False),
    "examples": Module(("trainable/include",), ("torch", "nlohmann", "zlib")),
    # These may include every module.
    "tests": Module(("*",), ("*",)),
    "benchmarks": Module(("*",), ("*",)),
}

# The prefixes of each library's headers. A header in a folder is a fault if neither this table nor
# SYSTEM lists its prefix.
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

# Standard headers that a pure module must not include: input and output, threads, clocks, and random
# distributions, which differ between implementations of the standard library.
IMPURE = set(
    "iostream fstream filesystem syncstream thread mutex shared_mutex condition_variable future "
    "atomic semaphore latch barrier stop_token chrono ctime random csignal execution".split()
)

# Each of these adds about 15 s to the compilation of a file, so only .cc files may include them.
NEVER_IN_HEADERS = ("torch/torch.h", "torch/extension.h")

README_LINES_MAX = 30
# Subfolders of these need no README.md: the README.md of the folder above describes them.
DESCRIBED_ABOVE = ("trainable/include/", "tests/unit/")
SOURCES = (".h", ".cc")
IGNORED_FOLDERS = re.compile(r"^(\..*|build.*|node_modules|dist|attune-data|__pycache__)$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def source_files(root: Path) -> Iterator[Path]:
    """Yields the paths of all C++ sources, relative to root."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not IGNORED_FOLDERS.match(name))
        for name in sorted(names):
            if name.endswith(SOURCES):
                yield (Path(folder) / name).relative_to(root)


def module_of(path: str) -> str | None:
    """Returns the innermost module that contains a path, which is relative to the root."""
    if path.endswith(".pb.h"):
        return "proto"  # a generated header, included as attune/v1/….pb.h
    if path.startswith("attune/"):
        return "trainable/include"  # the SDK's public headers, as a user's program names them
    containing = [module for module in MODULES if path.startswith(module + "/")]
    return max(containing, key=len, default=None)


def library_of(header: str) -> str | None:
    for library, prefixes in LIBRARIES.items():
        if header.startswith(prefixes):
            return library
    return None


def may_include(module: str, other: str) -> bool:
    if other == BELOW_ALL and module not in WITHOUT_BASE:
        return True
    return other == module or any(
        allowed in ("*", other) or (allowed.endswith("/*") and other.startswith(allowed[:-1]))
        for allowed in MODULES[module].modules
    )


def fault_of(path: Path, header: str) -> str | None:
    """Describes why `path` may not include `header`; returns None if it may."""
    module = module_of(str(path))
    if module is None:
        return "lies in no known module; add its module to MODULES in tests/dependencies/dependencies.py"
    other, library = module_of(header), library_of(header)
    rules = MODULES[module]

    if library is None and other is not None:
        if may_include(module, other):
            return None
        allowed = ", ".join(rules.modules) or "no other module"
        return f"includes {header}, of {other}; {module} may include {allowed}"
    if library is not None:
        if library not in rules.libraries and "*" not in rules.libraries:
            allowed = ", ".join(rules.libraries) or "none"
            return f"includes {header}, of the library {library}; {module} may use {allowed}"
        if header in NEVER_IN_HEADERS and path.suffix == ".h":
            return f"includes {header} in a header; include it in a .cc, torch/types.h here"
        return None
    if "/" in header and not header.startswith(SYSTEM):
        return f"includes {header}, whose module or library is unknown; add it to tests/dependencies/dependencies.py"
    if rules.pure and (header.endswith(".h") or "/" in header or header in IMPURE):
        return f"includes {header}; {module} is pure: no input, output, thread, clock or randomness"
    return None


def include_faults(root: Path) -> Iterator[str]:
    for path in source_files(root):
        text = (root / path).read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            quoted, angled = match.groups()
            line = text.count("\n", 0, match.start()) + 1
            if quoted and "/" not in quoted and library_of(quoted) is None:
                yield f"{path}:{line}: includes {quoted}; write its path from the root of the repository"
            elif fault := fault_of(path, quoted or angled):
                yield f"{path}:{line}: {fault}"


def preset_faults(root: Path) -> Iterator[str]:
    """Finds presets that build a module without the modules that it includes. CMake could not configure them.

    Two modules are exempt: the server can do without `web`, and `tests` skips modules that are not built.
    """
    dependencies = {}
    for path in source_files(root):
        others = {module_of(name) for pair in INCLUDE.findall((root / path).read_text("utf-8"))
                  for name in pair if "/" in name}
        included = dependencies.setdefault(path.parts[0], set())
        included |= {other.split("/")[0] for other in others if other}
    presets = json.loads((root / "CMakePresets.json").read_text(encoding="utf-8"))
    for preset in presets["configurePresets"]:
        if not (only := preset.get("cacheVariables", {}).get("ATTUNE_ONLY")):
            continue
        built = set(only.split(";"))
        for module in sorted(built - {"tests"}):
            for missing in sorted(dependencies.get(module, set()) - built - {"web"}):
                yield f"CMakePresets.json: {preset['name']} builds {module} and not {missing}, which it includes"


def readme_faults(root: Path) -> Iterator[str]:
    """Finds modules, and folders of sources inside them, without a README.md or with a long one."""
    folders = {path.parent for path in source_files(root)}
    folders |= {Path(module) for module in MODULES if any((root / module).glob("*"))}
    for folder in sorted(folders):
        if f"{folder}/".startswith(DESCRIBED_ABOVE):
            continue
        readme = root / folder / "README.md"
        if not readme.is_file():
            yield f"{folder}/README.md: missing; say what the folder contains, what it may use and how to extend it"
            continue
        lines = len(readme.read_text(encoding="utf-8").splitlines())
        if lines > README_LINES_MAX:
            yield f"{folder}/README.md: {lines} lines; shorten it to {README_LINES_MAX}"


def main(root: Path) -> int:
    faults = [*include_faults(root), *preset_faults(root), *readme_faults(root)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
