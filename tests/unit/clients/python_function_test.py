"""`attune.function`: the command that names a function, and functions that are pickled."""

import errno
import functools
import importlib
import json
import os
import pathlib
import pickle
import sys
import threading
import types
import unittest
import warnings
from unittest import mock

from rank import PACKAGE, Client

sys.path.insert(0, str(PACKAGE))

from attune import _pickled, function  # noqa: E402

# Python's own pickle is enough for these tests.
CLOUDPICKLE = types.SimpleNamespace(dumps=pickle.dumps)
MODULE = "def train(config, scale=1): return {'loss': config['lr'] * scale}\n"


class Function(Client):
    def setUp(self):
        super().setUp()
        (self.folder / "tuned.py").write_text(MODULE)
        for patch in (mock.patch.object(sys, "path", [str(self.folder), *sys.path]),
                      mock.patch.dict(sys.modules, cloudpickle=CLOUDPICKLE)):
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(sys.modules.pop, "tuned", None)
        importlib.invalidate_caches()
        self.tuned = importlib.import_module("tuned")

    def command(self, train, metric=None):
        """Returns the arguments of the command after `python -m attune.launcher -m attune.function`."""
        words = function.command(train, metric, self.folder)
        self.assertEqual(words[:5], [sys.executable, "-m", "attune.launcher", "-m", "attune.function"])
        return words[5:]

    def pickled(self, scale=3):
        """Returns the file of a pickled function."""
        *options, file = self.command(functools.partial(self.tuned.train, scale=scale))
        self.assertEqual(options, ["--path", str(self.folder), "--pickle"])
        return pathlib.Path(file)

    def files(self):
        folder = self.folder / "attune-functions"
        return list(folder.iterdir()) if folder.exists() else []


class Commands(Function):
    def test_a_function_of_a_module_is_named(self):
        self.assertEqual(self.command(self.tuned.train), ["--path", str(self.folder), "tuned:train"])
        self.assertEqual(self.command(self.tuned.train, "loss")[:2], ["--metric", "loss"])
        self.assertEqual(self.files(), [])

    def test_refuses_a_function_that_cannot_be_pickled(self):
        with self.assertRaisesRegex(ValueError, r"\btrain\b.*TypeError: .*lock"):
            self.command(functools.partial(self.tuned.train, scale=threading.Lock()))
        self.assertEqual(self.files(), [])

    def test_equal_functions_share_a_file(self):
        self.assertEqual(self.pickled(), self.pickled())
        self.assertNotEqual(self.pickled(), self.pickled(scale=4))
        self.assertEqual(len(self.files()), 2)

    def test_names_cloudpickle_if_it_is_missing(self):
        with mock.patch.dict(sys.modules, cloudpickle=None), \
                self.assertRaisesRegex(ImportError, r"\btrain\b.*pip install cloudpickle"):
            self.pickled()

    def test_refuses_an_object_that_is_not_a_function(self):
        with self.assertRaisesRegex(ValueError, "train is 'tuned:train'"):
            self.command("tuned:train")

    @unittest.skipUnless(hasattr(sys, "stdlib_module_names"), "Python before 3.10 has no list of its modules")
    def test_refuses_a_module_with_the_name_of_a_standard_module(self):
        self.tuned.__name__ = self.tuned.train.__module__ = "random"
        with mock.patch.dict(sys.modules, random=self.tuned), self.assertRaisesRegex(ValueError, r"\brandom\b"):
            self.command(self.tuned.train)


class Pickled(Function):
    def test_a_rank_calls_it(self):
        rank = self.rank(f"import sys; sys.argv = ['', '--path', {str(self.folder)!r}, '--pickle', {str(self.pickled())!r}]\n"
                         "import attune.function; attune.function.main()")
        self.assertAlmostEqual(rank.receive("report")["metrics"]["loss"], 0.3)

    def load_fails(self, file, message):
        with self.assertRaisesRegex(RuntimeError, message):
            _pickled.load(file)

    def test_refuses_a_missing_or_changed_file(self):
        file = self.pickled()
        self.assertEqual(_pickled.load(file)[0], "train")
        with open(file, "ab") as changed:
            changed.write(b"x")
        self.load_fails(file, "SHA-256")
        self.assertEqual(self.pickled(), file)  # this writes the file again
        self.assertEqual(_pickled.load(file)[0], "train")
        file.unlink()
        self.load_fails(file, f"{file}: .*{os.strerror(errno.ENOENT)}.*attune-functions")

    def test_runs_no_code_of_a_changed_file(self):
        file = self.pickled()
        head, _, _ = file.read_bytes().partition(b"\n")
        file.write_bytes(head + b"\n" + pickle.dumps(_Touch(self.folder / "run")))
        self.load_fails(file, "SHA-256")
        self.assertFalse((self.folder / "run").exists())

    def versions(self, **versions):
        patch = mock.patch.object(_pickled, "_versions", lambda: versions)
        patch.start()
        self.addCleanup(patch.stop)

    def test_another_version_of_python_is_an_error_that_names_both(self):
        self.versions(python="3.11")
        file = self.pickled()
        self.versions(python="3.12")
        self.load_fails(file, r"python 3\.11 .*\b3\.12\b")

    def test_another_version_of_a_package_is_a_warning_and_part_of_an_error(self):
        self.versions(python="3.11", torch="2.11", numpy="2.3")
        file = self.pickled()
        self.versions(python="3.11", numpy="1.26")
        with self.assertWarnsRegex(UserWarning, r"torch 2\.11 .*\bnone\b.*numpy 2\.3 .*\b1\.26\b"):
            _pickled.load(file)
        del self.tuned.train
        self.load_fails(file, r"\btrain: AttributeError: .*torch 2\.11 .*\bnone\b")

    def test_equal_versions_give_no_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _pickled.load(self.pickled())

    def test_versions_are_recorded(self):
        versions = json.loads(self.pickled().read_bytes().partition(b"\n")[0])["versions"]
        self.assertEqual(versions["python"], "{}.{}".format(*sys.version_info))


class _Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


if __name__ == "__main__":
    unittest.main()
