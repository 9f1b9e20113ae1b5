"""Runs the examples of a page.

- A block with a name, as in ```yaml sweep.yaml, is written to the page's folder, at its place in the order.
- `sh` runs, in one shell for the page, in that folder, with `set -e` and the built `attune` in PATH.
- `yaml` without a name is a fragment of a sweep file: it must be valid over MINIMAL_SWEEP.
- `json` must be JSON and `python` must compile, also with a name.
- `cpp` must be a quote of a C++ source of the repository.
- `sql` runs on the database that the page's commands have made in attune-data, else on that of a small sweep.
- Blocks of the languages in SHOWN do not run.
- Blocks of the languages in FILES need a name.

A block after a paragraph with `Not run: REASON` does not run; the reason must be a sentence.
"""

import contextlib
import ctypes
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import markdown_pages as markdown  # noqa: E402
import python_torch  # noqa: E402

BUILD = pathlib.Path(os.environ.get("ATTUNE_BUILD_DIR", ROOT / "build")).resolve()
SHOWN = ("text", "console", "diff")
FILES = ("bash", "cmake", "ini", "nginx", "toml")  # only with a name, or not run
PATIENCE_S = 50  # for a page; CTest ends this program after 60 s

MINIMAL_SWEEP = {
    "apiVersion": "attune/v1", "kind": "Sweep", "name": "minimal",
    "command": ["true"],
    "metric": {"name": "loss", "mode": "min"},
    "parameters": {"lr": {"min": 1e-05, "max": 1.0, "scale": "log"}},
    "searcher": {"name": "tpe"},
    "scheduler": {"name": "none"},
    "resources": {"workers": 1},
    "stop": {"max_trials": 1},
}
SMALL_SWEEP = {**MINIMAL_SWEEP, "command": [sys.executable, "-c", "import attune; attune.report({'loss': 0.5}, step=1)"]}
TORCH = re.compile(r"^\s*(?:import|from)\b.*\b(?:torch|lightning|pytorch_lightning|transformers)\b", re.M)


class NoTorch(Exception):
    """The page needs torch in Python, but this machine does not have it."""


class Fault(Exception):
    """A fault of a block."""


# --- Processes -----------------------------------------------------------------------------------------------------

_PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 5  # to end after SIGTERM


def _end_children(sent):
    """Sends a signal to each child and collects children that have ended. Returns whether there was a child."""
    # The kernel lists the children of each thread separately.
    lists = [(task / "children").read_text() for task in pathlib.Path("/proc/self/task").iterdir()]
    children = [int(child) for child in " ".join(lists).split()]
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, sent)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
    return bool(children)


@contextlib.contextmanager
def no_process_left():
    """On exit, ends all processes that were started inside, also processes whose parents have ended."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # children of a process that ends become ours
    try:
        yield
    finally:
        deadline = time.monotonic() + _GRACE_S
        while _end_children(signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL):
            time.sleep(0.05)  # os.wait() has no time limit


# Brings up the loopback interface (SIOCSIFFLAGS: IFF_UP | IFF_RUNNING), then runs a command.
_LOOPBACK = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any:
    fcntl.ioctl(any, 0x8914, struct.pack("16sH14x", b"lo", 0x41))
os.execvp(sys.argv[1], sys.argv[1:])
"""


@functools.cache
def isolated():
    """Returns the prefix of a command that runs in a separate network with free ports; [] if that is not allowed."""
    words = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", _LOOPBACK]
    allowed = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if allowed else []


def _has_torch(environment):
    program = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"  # quicker than to import it
    return subprocess.run([sys.executable, "-c", program], env=environment).returncode == 0


def environment(folder, with_torch):
    """Returns the environment of a page's commands: with torch that of the machine, otherwise that of scripts/setup."""
    found = dict(os.environ)
    if with_torch and not _has_torch(found):
        found = python_torch.environment()
        if not _has_torch(found):
            raise NoTorch(f"no torch for {sys.executable}: run scripts/setup tests")
    path = [str(BUILD), os.path.dirname(sys.executable), found["PATH"]]
    packages = [str(ROOT / "clients/python"), *filter(None, [found.get("PYTHONPATH")])]
    for name in [name for name in found if name.startswith("ATTUNE_")]:
        del found[name]
    return {**found, "PATH": ":".join(path), "PYTHONPATH": ":".join(packages), "HOME": str(folder), "NO_COLOR": "1",
            "PYTHONDONTWRITEBYTECODE": "1"}


# --- Checks of one block -------------------------------------------------------------------------------------------


def check_reason(block):
    if not re.fullmatch(r"\S+(?: \S+)+\.", block.reason):
        raise Fault(f"the reason must be a sentence, with a full stop at its end: {block.reason!r}")


def check_json(block):
    try:
        json.loads(block.code)
    except ValueError as error:
        raise Fault(f"not JSON: {error}") from None


def check_python(block):
    try:
        compile(textwrap.dedent(block.code), block.name or "block", "exec")
    except SyntaxError as error:
        raise Fault(f"does not compile: {error}") from None


@functools.cache
def _cpp_sources():
    return {path: path.read_text() for path in markdown.tracked("examples/*.cc", "examples/*.h", "tests/*.cc", "tests/*.h",
                                                                 "trainable/*.h")}


def check_cpp(block):
    if not any(f"\n{block.code}" in f"\n{source}" for source in _cpp_sources().values()):
        raise Fault("not a quote of a source in examples/, tests/ or trainable/")


def _without(keys, sweep):
    return {key: value for key, value in sweep.items() if key not in keys and not (key == "metric" and "metrics" in keys)}


def check_fragment(block):
    """Checks that the block is a valid sweep file after the missing keys of a minimal sweep were added."""
    try:
        fragment = yaml.safe_load(block.code)
    except yaml.YAMLError as error:
        raise Fault(f"not YAML: {error}") from None
    if not isinstance(fragment, dict):
        raise Fault("not a part of a sweep file")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sweep.yaml"
        file.write_text(yaml.safe_dump(_without(fragment, MINIMAL_SWEEP)) + block.code)
        program = fragment.get("command", ["true"])[0]
        if "/" in program and not os.path.isabs(program):
            executable = pathlib.Path(folder) / program
            executable.parent.mkdir(parents=True, exist_ok=True)
            executable.touch(0o755)
        done = subprocess.run([BUILD / "attune", "sweep", "validate", "sweep.yaml"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Fault(f"not valid over a minimal sweep: {done.stderr.strip()}")


CHECKS = {"json": check_json, "python": check_python, "cpp": check_cpp, "yaml": check_fragment}
LANGUAGES = {*CHECKS, *SHOWN, *FILES, "sh", "sql"}


# --- Pages ---------------------------------------------------------------------------------------------------------


def _script(page, blocks, staged):
    """Returns a shell script that writes the files and runs the commands of the page in order."""
    lines = ["set -e", f"trap 'code=$?; ((code == 0)) || echo \"{page.name}:$line: exit code $code\" >&2' EXIT"]
    for block in blocks:
        if block.name:
            file = staged / str(block.line)
            file.write_text(block.code)
            name = shlex.quote(block.name)
            lines.append(f"mkdir -p $(dirname {name}) && cp {file} {name}")
        elif block.language == "sh":
            file = staged / f"{block.line}.sh"
            file.write_text(block.code)
            lines += [f"line={block.line}", f". {file}"]
    return "\n".join(lines) + "\n"


def _run(arguments, folder, variables, output, deadline):
    """Runs a command in a new session with its output in a file. Raises Fault if it fails or reaches the deadline."""
    with output.open("w") as log:
        done = subprocess.Popen(arguments, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = done.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            code = f"none within {PATIENCE_S} s"
            done.kill()
            done.wait()
    if code != 0:
        end = output.read_text(errors="replace").splitlines()[-30:]
        raise Fault(f"exit code {code}; the output ends:\n" + textwrap.indent("\n".join(end), "  | "))


def _check_queries(blocks, folder, variables, deadline):
    database = folder / "attune-data/attune.db"
    if not database.exists():
        (folder / "small.yaml").write_text(yaml.safe_dump(SMALL_SWEEP))
        _run([*isolated(), "attune", "run", "small.yaml"], folder, variables, folder.parent / "small.log", deadline)
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        for block in blocks:
            try:
                connection.executescript(block.code)
            except sqlite3.Error as error:
                raise Fault(f"line {block.line}: {error}") from None


def _runs(block):
    """Whether a block is part of the run of its page. Raises Fault if the block is invalid."""
    if block.language not in LANGUAGES:
        raise Fault(f"unknown language {block.language!r}; known are {', '.join(sorted(LANGUAGES))}")
    if block.reason is not None:
        check_reason(block)
        return False
    if block.language in FILES and not block.name:
        raise Fault(f"{block.language} needs a file's name after it, or `Not run: REASON` before it")
    if block.language in CHECKS and not (block.name and block.language in ("cpp", "yaml")):
        CHECKS[block.language](block)
    return bool(block.name) or block.language in ("sh", "sql")


def _run_page(page, blocks):
    """Runs blocks of a page. Raises Fault and NoTorch."""
    deadline = time.monotonic() + PATIENCE_S
    with tempfile.TemporaryDirectory(prefix="attune-docs-", ignore_cleanup_errors=True) as top, no_process_left():
        folder, staged = pathlib.Path(top) / "page", pathlib.Path(top) / "staged"
        folder.mkdir()
        staged.mkdir()
        variables = environment(folder, any(TORCH.search(block.code) for block in blocks))
        script = staged / "page.sh"
        script.write_text(_script(page, blocks, staged))
        _run([*isolated(), "bash", script], folder, variables, staged / "log", deadline)
        queries = [block for block in blocks if block.language == "sql"]
        if queries:
            _check_queries(queries, folder, variables, deadline)


def faults_of(page):
    """Runs all examples of a page and returns the text of each fault. Raises NoTorch."""
    faults, running = [], []
    for block in markdown.blocks(page.read_text()):
        try:
            running += [block] if _runs(block) else []
        except Fault as fault:
            faults.append(f"{page.name}:{block.line}: {fault}")
    if any(block.language in ("sh", "sql") for block in running):
        try:
            _run_page(page, running)
        except Fault as fault:
            faults.append(f"{page.name}: {fault}")
    return faults
