"""Reports, and starts a process that reports as the same rank; both print their numbers."""

import os
import subprocess
import sys

import attune

print(f"process {os.getpid()}", flush=True)
attune.report({"loss": 1})
if len(sys.argv) == 1:
    sys.exit(subprocess.run([sys.executable, __file__, "child"]).returncode)
