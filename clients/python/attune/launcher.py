"""Warm start: a process that has imported slow modules, and forks the ranks of gangs.

    python3 -m attune.launcher [--import MODULE,…] train.py ARGUMENTS
    python3 -m attune.launcher [--import MODULE,…] -m MODULE ARGUMENTS

Use this as the `command` of a sweep file, without placeholders. An executor starts it once on each host
(docs/reference/worker-channel.md, "Launchers"). The launcher imports torch, or the named modules. On request it forks a
rank, in milliseconds. Only ranks run the script, and each reads it from its file. Without an executor, and if the
imports have started threads, which a fork would lose, the script runs as with `python3 train.py`.
"""

from __future__ import annotations

import attune._distribution  # first: it raises if pip mixed two packages

import builtins
import ctypes
import gc
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import pkgutil
import random
import runpy
import select
import signal
import socket
import sys
import types
import typing

_PROTOCOL = 1
_PACKET_BYTES_MAX = 64 * 1024
_PR_SET_PDEATHSIG = 1
_SYS_PIDFD_OPEN = 434


class Launcher:
    """Forks ranks on request of the executor, and reports their ends to it."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._children: dict[int, tuple[int, int]] = {}  # pid → (pidfd, process group)

    def serve(self) -> None:
        """Handles requests. Returns only in children, which must then run the script as a rank."""
        self._send({"type": "ready", "protocol": _PROTOCOL, "pid": os.getpid()})
        while True:
            awaited: list[typing.Any] = [self._socket, *(fd for fd, _ in self._children.values())]
            ready, _, _ = select.select(awaited, [], [])
            self._reap()
            if self._socket not in ready:
                continue
            packet, descriptors, _, _ = socket.recv_fds(self._socket, _PACKET_BYTES_MAX, 2,
                                                        socket.MSG_CMSG_CLOEXEC)
            if not packet:
                self._kill_all()
                os._exit(0)
            message = json.loads(packet)
            if message.get("type") == "fork" and self._fork(message, *descriptors):
                return
            for descriptor in descriptors:
                os.close(descriptor)

    def _fork(self, request: dict[str, typing.Any], channel: int, log: int) -> bool:
        """Forks a rank. Returns True in the child and False in the launcher."""
        launcher = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            pid = os.fork()
        except OSError as error:
            self._send({"type": "forked", "request": request["request"], "error": str(error)})
            return False
        if pid == 0:
            self._become_rank(request, channel, log, launcher)
            return True
        # The child does the same. So the group exists before the executor is told, whichever process is faster.
        group = request.get("process_group", 0)
        _join_group(pid, group)
        pidfd = self._libc.syscall(_SYS_PIDFD_OPEN, pid, 0)  # not every Python has os.pidfd_open
        if pidfd < 0:
            sys.exit(f"attune.launcher: pidfd_open: {os.strerror(ctypes.get_errno())}")
        self._children[pid] = pidfd, group or pid
        self._send({"type": "forked", "request": request["request"], "pid": pid}, [pidfd])
        return False

    def _become_rank(self, request: dict[str, typing.Any], channel: int, log: int, launcher: int) -> None:
        self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(1)  # the launcher died before prctl()
        _join_group(0, request.get("process_group", 0))
        self._socket.close()
        for pidfd, _ in self._children.values():
            os.close(pidfd)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        for name, value in request.get("env", {}).items():
            if name == "ATTUNE_CGROUP":
                _join_cgroup(value)
            elif value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        os.environ["ATTUNE_CHANNEL_FD"] = str(channel)
        if request.get("cwd"):
            os.chdir(request["cwd"])

    def _reap(self) -> None:
        for pid in list(self._children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended == 0:
                continue
            os.close(self._children.pop(pid)[0])
            code = os.waitstatus_to_exitcode(status)
            outcome = {"signal": -code} if code < 0 else {"exit_code": code}
            self._send({"type": "exited", "pid": pid, **outcome})

    def _kill_all(self) -> None:
        for pid, (_, group) in self._children.items():
            for kill, target in ((os.killpg, group), (os.kill, pid)):
                try:
                    kill(target, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it has ended
        for pid in self._children:
            os.waitpid(pid, 0)

    def _send(self, message: dict[str, typing.Any], descriptors: typing.Iterable[int] = ()) -> None:
        socket.send_fds(self._socket, [json.dumps(message).encode()], list(descriptors))


def _join_group(pid: int, group: int) -> None:
    try:
        os.setpgid(pid, group)
    except OSError:
        pass  # the gang has ended meanwhile; the executor then kills the rank when it is told of it


def _join_cgroup(folder: str) -> None:
    try:
        (pathlib.Path(folder) / "cgroup.threads").write_text("0")
    except OSError:
        pass  # the executor then finds the process by its environment


def _import_modules(modules: list[str] | None) -> None:
    if modules is None:
        modules = [name for name in ("torch", "torch.distributed", "attune.torch")
                   if importlib.util.find_spec("torch")]
    for name in modules:
        importlib.import_module(name)
    if "torch" in sys.modules and importlib.util.find_spec("torch._dynamo"):
        # DistributedDataParallel and optimizers import it at their first use, which takes seconds.
        importlib.import_module("torch._dynamo")


def _check_single_threaded() -> None:
    # Some libraries, such as numpy's OpenBLAS, end their threads before a fork. So fork once before the count.
    probe = os.fork()
    if probe == 0:
        os._exit(0)
    os.waitpid(probe, 0)
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        sys.exit(f"attune.launcher: cannot fork ranks, because the imported modules have started threads ({threads - 1}), which "
                 "a fork loses; name other modules with --import")


def _reset_state_after_fork() -> None:
    """Gives a rank its own random seeds, and the numbers of threads from its environment."""
    random.seed()
    typing.cast(io.TextIOWrapper, sys.stdout).reconfigure(line_buffering=True)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()
    if os.environ.get("OMP_NUM_THREADS", "").isdigit():
        threads = int(os.environ["OMP_NUM_THREADS"])
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)
        _set_openblas_threads(threads)


def _set_openblas_threads(threads: int) -> None:
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps}
    for path in paths:
        if "openblas" not in os.path.basename(path):
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue  # not a library, or the file has been replaced meanwhile
        for form in "openblas_set_num_threads", "scipy_openblas_set_num_threads":
            for name in form, form + "64_":
                if hasattr(library, name):
                    getattr(library, name)(threads)


def _make_main_module() -> types.ModuleType:
    """Replaces the module `__main__` by an empty one, with the attributes that it has when Python starts."""
    main = types.ModuleType("__main__")
    setattr(main, "__builtins__", builtins)
    for name, value in (("__annotations__", {}), ("__cached__", None)):  # not all versions of Python have these
        if name in globals():
            setattr(main, name, value)
    sys.modules["__main__"] = main
    return main


def _run_module(name: str) -> None:
    """Runs a module like `python3 -m NAME`, with the function that Python itself uses."""
    sys.path[0] = os.getcwd()
    _make_main_module()
    typing.cast(typing.Any, runpy)._run_module_as_main(name)


def _run_script(name: str) -> None:
    """Runs a script like `python3 NAME`. NAME may be a folder or an archive with a `__main__.py`."""
    path = os.path.join(os.getcwd(), name)
    main = _make_main_module()
    if pkgutil.get_importer(name) is not None:
        sys.path[0] = path
        typing.cast(typing.Any, runpy)._run_module_as_main("__main__", alter_argv=False)
        return
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    try:
        file = io.open_code(path)
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    with file:
        loader: typing.Any = importlib.machinery.SourcelessFileLoader
        code = pkgutil.read_code(file)  # None if it is not a .pyc file
        if code is None:
            file.seek(0)
            loader = importlib.machinery.SourceFileLoader
            code = compile(file.read(), path, "exec", dont_inherit=True)
    main.__file__ = path
    main.__loader__ = loader("__main__", path)
    exec(code, vars(main))


def main() -> None:
    """Runs a script or a module: in forked ranks if an executor has started this process, otherwise in this process."""
    arguments, modules = sys.argv[1:], None
    if arguments and arguments[0] == "--import":
        modules = [name for name in "".join(arguments[1:2]).split(",") if name]
        arguments = arguments[2:]
    is_module = arguments[:1] == ["-m"]
    if len(arguments) <= is_module:
        sys.exit("usage: python3 -m attune.launcher [--import MODULE,…] (SCRIPT | -m MODULE) [ARGUMENT…]")
    descriptor = os.environ.pop("ATTUNE_LAUNCHER_FD", None)
    if descriptor is not None:
        _import_modules(modules)
        _check_single_threaded()
        gc.collect()
        gc.freeze()  # so that children share the memory of imported modules
        Launcher(int(descriptor)).serve()
        _reset_state_after_fork()
    sys.argv = arguments[is_module:]
    if is_module:
        _run_module(sys.argv[0])
    else:
        _run_script(sys.argv[0])


if __name__ == "__main__":
    main()
