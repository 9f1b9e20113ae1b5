"""The tools that `scripts/setup tests` installs for these tests."""

import os
import pathlib
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[2] / ".deps/python-tools"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(TOOLS), "NO_PROXY": "127.0.0.1"}


def require(module):
    """Exits with 77, which CTest counts as skipped, if this Python cannot import the module from TOOLS."""
    tried = subprocess.run([sys.executable, "-c", f"import {module}"], env=ENVIRONMENT, capture_output=True, text=True)
    if tried.returncode != 0:
        print(f"skipped: {module} needs Python 3.11 and `scripts/setup tests`\n{tried.stderr}")
        sys.exit(77)
