"""Starts ddp.py in another process, and ends with its status."""

import pathlib
import subprocess
import sys

sys.exit(subprocess.run([sys.executable, pathlib.Path(__file__).with_name("ddp.py")]).returncode)
