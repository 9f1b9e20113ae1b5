"""Starts a server for a program, and runs the CLI."""

from __future__ import annotations

import atexit
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import threading
import typing

from attune._rest import Error

_WHEEL_MACHINES = ("x86_64", "aarch64")  # machines whose wheels contain the program `attune`


class ServerProcess:
    """A process `attune serve --with-executor` on a data folder. It ends with stop(), or with this program.

    Its output goes to sys.stderr. The constructor returns when the server answers. It raises Error with the server's
    message if the server does not start.
    """

    def __init__(self, attune: str | os.PathLike[str], data_dir: str | os.PathLike[str],
                 options: typing.Sequence[str]) -> None:
        # Lets trials import the same package as this program.
        paths = [str(pathlib.Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")]
        self._process = subprocess.Popen(
            [_find_program(attune), "serve", "--with-executor", "--until-stdin-ends", "--data-dir", data_dir, *options],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            start_new_session=True)  # Ctrl-C reaches only this program, which then ends the server
        self._owner_pid = os.getpid()
        try:
            self._wait_until_it_serves()
        except BaseException:
            self._process.kill()
            self._wait_and_close_pipes()
            raise
        self._reader = threading.Thread(target=self._forward_output, daemon=True)
        self._reader.start()
        atexit.register(self.stop)

    def _wait_until_it_serves(self) -> None:
        output = ""
        for line in self._process.stderr or ():
            output += line
            if line.startswith("page "):  # the server answers now
                _write_to_stderr(output)
                return
        raise Error(output.strip() or f"attune serve ended with exit code {self._process.wait()}, without a message")

    def _forward_output(self) -> None:
        for line in self._process.stderr or ():
            _write_to_stderr(line)

    def stop(self) -> None:
        """Ends the server and its trials, and waits for that. Does nothing in a fork of the program."""
        if self._owner_pid != os.getpid():
            return
        atexit.unregister(self.stop)
        self._process.terminate()
        self._reader.join()
        self._wait_and_close_pipes()

    def _wait_and_close_pipes(self) -> None:
        self._process.wait()
        for pipe in self._process.stdin, self._process.stderr:
            if pipe:
                pipe.close()


def run_attune(attune: str | os.PathLike[str], *arguments: str) -> str:
    """Runs `attune` and returns its output. Raises Error with its message if it fails."""
    completed = subprocess.run([_find_program(attune), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, errors="replace")
    if completed.returncode != 0:
        raise Error(completed.stderr.strip() or f"attune {arguments[0]} ended with exit code {completed.returncode}")
    return completed.stdout


def _find_program(attune: str | os.PathLike[str]) -> str:
    """Returns the path of the program, in PATH or in a folder where pip installs programs."""
    scripts = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    program = shutil.which(attune) or shutil.which(attune, path=os.pathsep.join(scripts))
    if program is None:
        raise Error(f"no program {attune!r} is in PATH or in the folders of pip; {_install_hint()}")
    return program


def _install_hint() -> str:
    if sys.platform != "linux" or platform.machine() not in _WHEEL_MACHINES:
        return (f"Attune's server runs on Linux ({', '.join(_WHEEL_MACHINES)}) and this is {sys.platform} "
                f"({platform.machine()}): start `attune serve` on such a machine, and use "
                "attune.client.Server(\"HOST:PORT\") here")
    return ("install the wheel of attune-hpo for Linux, which contains the program, put an `attune` into PATH, or name "
            "it with attune=FILE")


def _write_to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
    except (AttributeError, OSError, ValueError):
        pass  # nobody reads stderr, and the server must not block on its output
