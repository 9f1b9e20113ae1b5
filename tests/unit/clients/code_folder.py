"""The part of a test that makes a folder of code."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients/python"))

from attune import _code  # noqa: E402
from attune.client import Error  # noqa: E402

NO_GIT_CONFIG = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class Folder:
    """The part of a test that makes a folder of code."""

    def make_folder(self, folder):
        self.code = folder / "code"
        self.code.mkdir()
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            del os.environ[name]
        os.environ.update(NO_GIT_CONFIG)

    def write(self, path, text="text\n"):
        file = self.code / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def git(self, *arguments, folder=""):
        command = ["git", "-C", self.code / folder, "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(command, check=True, capture_output=True)

    def collect(self, include=(), exclude=(), bytes_max=10**6):
        return _code.collect(self.code, list(include), list(exclude), bytes_max)

    def paths(self, include=(), exclude=()):
        lines = self.collect(include, exclude).manifest.decode().splitlines()[1:]
        return [line.split("\t")[-1] + ("->" if line.startswith("link") else "") for line in lines]

    def assert_refused(self, *words, **options):
        with self.assertRaises(Error) as caught:
            self.collect(**options)
        for word in words:
            self.assertIn(word, str(caught.exception))
