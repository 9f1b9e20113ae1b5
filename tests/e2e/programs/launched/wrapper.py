"""Starts ddp.py as a process of its own, and ends as it does."""

import pathlib
import subprocess
import sys

sys.exit(subprocess.run([sys.executable, pathlib.Path(__file__).with_name("ddp.py")]).returncode)
