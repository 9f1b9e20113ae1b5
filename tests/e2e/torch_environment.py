"""The environment of tests whose gangs import torch in Python: the machine's, or the one of scripts/setup."""

import os
import subprocess
import sys
import unittest

from support import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import python_torch  # noqa: E402


def environment_with_torch():
    """The environment in which this Python imports torch and the package; None if there is none."""
    for environment in os.environ, python_torch.environment():
        path = f"{ROOT / 'clients/python'}:{environment.get('PYTHONPATH', '')}"
        environment = {**environment, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": path}
        # Also what takes longest to compile, which then no gang has to.
        if subprocess.run([sys.executable, "-c", "import torch.distributed, torch._dynamo"], env=environment,
                          capture_output=True).returncode == 0:
            return environment
    return None


ENVIRONMENT = environment_with_torch()
NO_TORCH = f"no torch for {sys.executable}: pip install torch, or run scripts/setup with Python 3.11"
needs_torch = unittest.skipUnless(ENVIRONMENT, NO_TORCH)


def main(*modules):
    """unittest.main() of a file whose every test needs torch, and these modules."""
    if not ENVIRONMENT:
        print("SKIPPED:", NO_TORCH)  # CTest looks for it
    elif modules and subprocess.run([sys.executable, "-c", f"import {','.join(modules)}"], env=ENVIRONMENT,
                                    capture_output=True).returncode != 0:
        print("SKIPPED: no", *modules)
    else:
        unittest.main()
