"""The tools that `scripts/setup tests` installs for these tests."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTRACT = ROOT / "docs/openapi.yaml"
TOOLS = ROOT / ".deps/python-tools"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(TOOLS), "NO_PROXY": "127.0.0.1"}


def generate(language, contract, target):
    subprocess.run([sys.executable, ROOT / "rest/generate.py", language, contract, target], check=True)


def copy_package(folder, contract=CONTRACT):
    """Copies the package `attune` for Python into the folder, with the types of a contract."""
    shutil.copytree(ROOT / "clients/python/attune", folder / "attune", ignore=shutil.ignore_patterns("__pycache__"))
    generate("python", contract, folder / "attune/_contract.pyi")


def require(module):
    """Exits with 77, which CTest counts as skipped, if this Python cannot import the module from TOOLS."""
    tried = subprocess.run([sys.executable, "-c", f"import {module}"], env=ENVIRONMENT, capture_output=True, text=True)
    if tried.returncode != 0:
        print(f"skipped: {module} needs Python 3.11 and `scripts/setup tests`\n{tried.stderr}")
        sys.exit(77)
