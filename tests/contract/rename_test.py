#!/usr/bin/env python3
"""Checks that a member of the REST contract cannot be renamed in one place only.

    rename_test.py COMPILER NODE

A copy of the contract renames `Sweep.best`. The test generates code from the copy and checks each user of the contract
against it: the server and the command line with the compiler, the dashboard with tsc, the Python client with mypy.
"""

import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

from tools import CONTRACT, ENVIRONMENT, ROOT, copy_package, generate, require

COMPILER = NODE = None


def renamed_contract(path):
    document = yaml.safe_load(CONTRACT.read_text(encoding="utf-8"))
    sweep = document["components"]["schemas"]["Sweep"]
    sweep["properties"]["best_report"] = sweep["properties"].pop("best")
    sweep["required"] = ["best_report" if member == "best" else member for member in sweep["required"]]
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def check_cpp(folder, contract, source):
    generate("cpp", contract, folder)
    return run([COMPILER, "-std=c++20", "-fsyntax-only", "-w", f"-I{folder}", f"-I{ROOT}", ROOT / source])


def check_page(folder, contract):
    web = folder / "web"
    shutil.copytree(ROOT / "web/src", web / "src")
    shutil.copy(ROOT / "web/tsconfig.json", web)
    (web / "node_modules").symlink_to(ROOT / "web/node_modules")
    generate("ts", contract, web / "src/api/contract.ts")
    return run([NODE, web / "node_modules/typescript/bin/tsc", "--noEmit", "-p", web])


def check_python(folder, contract, program=None):
    """Checks a program that uses the client, or the client itself."""
    package = folder / "python"
    copy_package(package, contract)
    what = ["--check-untyped-defs", "-m", "attune.client"]
    if program:
        (package / "program.py").write_text(program)
        what = ["program.py"]
    return run([sys.executable, "-m", "mypy", "--follow-imports=silent", "--no-incremental", *what], cwd=package,
               env=ENVIRONMENT)


PROGRAM = """\
from attune.client import LocalServer

def train(lr: float) -> float:
    return lr

with LocalServer() as server:
    sweep = server.create({"name": "typed"})
    print(sweep.get()["state"].upper(), [trial["config"] for trial in sweep.trials()])
    best = sweep.run(lambda trial: train(trial.config["lr"]))
    print(best["metrics"]["loss"] + 1 if best else None)
"""

USERS = {
    "the server": lambda *at: check_cpp(*at, "server/http/answers/render.cc"),
    "the command line": lambda *at: check_cpp(*at, "cli/views/sweep_view.cc"),
    "the page": check_page,
    "the Python client": check_python,
}


def check(user, contract, *more):
    with tempfile.TemporaryDirectory() as folder:
        return USERS[user](pathlib.Path(folder), contract, *more)


class Rename(unittest.TestCase):
    def test_a_renamed_member_is_an_error_for_every_user(self):
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
            contract = pathlib.Path(folder, "openapi.yaml")
            renamed_contract(contract)
            for user, result in zip(USERS, pool.map(lambda user: check(user, contract), USERS)):
                with self.subTest(user):
                    self.assertNotEqual(result.returncode, 0)
                    self.assertRegex(result.stdout, r"error.*\bbest\b")

    def test_a_program_that_uses_a_name_that_does_not_exist_is_an_error(self):
        right = check("the Python client", CONTRACT, PROGRAM)
        self.assertEqual(right.returncode, 0, right.stdout)
        wrong = check("the Python client", CONTRACT, PROGRAM.replace('["state"]', '["stat"]'))
        self.assertRegex(wrong.stdout, r'program.py:8: error.*"stat"')

    def test_the_python_client_has_the_types_of_the_contract(self):
        result = check("the Python client", CONTRACT)
        self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    require("mypy")
    COMPILER, NODE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
