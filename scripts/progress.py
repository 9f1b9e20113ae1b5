#!/usr/bin/env python3
"""Runs a build or the tests and prints a line at least every 10 s.

    progress.py cmake LOG COMMAND...    writes what CMake prints to the file LOG
    progress.py ninja COMMAND...        counts what is compiled; prints what goes wrong
    progress.py ctest COMMAND...        prints what CTest prints, and what runs while it is silent

The exit status is the command's.
"""

import signal

# The command has the same terminal, so Ctrl-C reaches it too, and this program ends after it. This is a handler,
# because the command would inherit SIG_IGN. It comes first, because Ctrl-C may come at any time.
signal.signal(signal.SIGINT, lambda *_: None)

import contextlib
import os
import re
import selectors
import subprocess
import sys
import time

PERIOD_S = 10
NINJA_STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")
CTEST_START = re.compile(r"\s*Start\s+\d+: (\S+)")
CTEST_END = re.compile(r"\s*(\d+)/(\d+) Test\s+#\d+: (\S+) ")


def duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


class CMake:
    """Writes the output of CMake to a file."""

    environment = {}

    def __init__(self, log):
        self.log = open(log, "w")
        self.last = ""

    def read(self, line):
        self.last = line
        with contextlib.suppress(OSError):  # a full disk: CMake's exit status reports it
            print(line, file=self.log, flush=True)

    def state(self, seconds):
        return f"build: configuring, {duration(seconds)}: {self.last[:80]}"


class Ninja:
    """Counts the finished steps of Ninja. Hides their lines, and prints all others."""

    environment = {"NINJA_STATUS": "[%f/%t] "}

    def __init__(self):
        self.done = self.total = 0

    def read(self, line):
        """The text to print for this line, or None."""
        if step := NINJA_STEP.match(line):
            self.done, self.total = int(step[1]), int(step[2])
            return None
        return None if line == "ninja: no work to do." else line

    def state(self, seconds):
        if not self.total:
            return f"build: starting, {duration(seconds)}"
        text = f"build: {self.done} of {self.total} steps, {duration(seconds)}"
        if self.done * 5 >= self.total:  # an earlier estimate would be too inexact
            text += f", about {duration(seconds * (self.total - self.done) / self.done)} left"
        return text


class CTest:
    """Counts ended tests and running tests."""

    environment = {}

    def __init__(self):
        self.done = self.total = 0
        self.running = []

    def read(self, line):
        if start := CTEST_START.match(line):
            self.running.append(start[1])
            return None
        if end := CTEST_END.match(line):
            self.done, self.total = int(end[1]), int(end[2])
            if end[3] in self.running:
                self.running.remove(end[3])
        return line

    def state(self, seconds):
        of = f" of {self.total}" if self.total else ""
        return f"tests: {self.done}{of} done, {duration(seconds)}; running: {', '.join(self.running)}"


def follow(command, progress):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
                               env={**os.environ, **progress.environment})
    os.set_blocking(process.stdout.fileno(), False)
    began = printed = time.monotonic()
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            selector.select(max(0, printed + PERIOD_S - time.monotonic()))
            block = process.stdout.read(65536)
            if block == b"":
                break
            *lines, rest = (rest + (block or b"")).split(b"\n")
            for line in lines:
                text = progress.read(line.decode(errors="replace").rstrip("\r"))
                if text is not None:
                    print(text, flush=True)
                    printed = time.monotonic()
            if time.monotonic() >= printed + PERIOD_S:
                print(progress.state(time.monotonic() - began), flush=True)
                printed = time.monotonic()
    if rest:
        print(rest.decode(errors="replace"), flush=True)
    return process.wait()


def main():
    kinds = {"cmake": CMake, "ninja": Ninja, "ctest": CTest}
    kind, *words = sys.argv[1:] or [None]
    arguments = [words.pop(0)] if kind == "cmake" and words else []
    if kind not in kinds or not words:
        sys.exit(__doc__)
    status = follow(words, kinds[kind](*arguments))
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
