"""Reads a checkpoint of the SDK in Python, and a checkpoint of Python in the SDK.

    scripts/python_torch.py python3 python_test.py GANG_PROGRAM

Skipped if this Python has no torch or no safetensors.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

nn = torch.nn


def network():
    return nn.Sequential(nn.Conv2d(1, 3, 3, bias=False), nn.BatchNorm2d(3), nn.Flatten(),
                         nn.Linear(3 * 6 * 6, 2))


def run(program, last_step, *arguments):
    """Runs the program by hand up to a step and returns its output."""
    environment = {**os.environ, "GANG_PROGRAM_FORM": "exchange"}
    environment.pop("LD_LIBRARY_PATH", None)  # it is for the torch of this Python only
    done = subprocess.run([program, "--max-step", str(last_step), *arguments], env=environment,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def distance(network, sample):
    network.eval()
    with torch.no_grad():
        return (network(sample["input"]) - sample["output"]).abs().max().item()


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(program, 1, "--checkpoint-dir", folder / "sdk")
        checkpoint = folder / "sdk" / "step-1-attempt-1"
        sdk_network = network()
        sdk_network.load_state_dict(load_file(checkpoint / "model.safetensors"), strict=True)
        error = distance(sdk_network, load_file(checkpoint / "sample.safetensors"))
        print(f"error in Python: {error:.1e}")
        assert error < 1e-5

        python_network = network()
        sample = {"input": torch.rand(5, 1, 8, 8)}
        python_network(sample["input"])
        python_network.eval()
        sample["output"] = python_network(sample["input"]).detach()
        python = folder / "python"
        python.mkdir()
        save_file(python_network.state_dict(), python / "model.safetensors")
        save_file(sample, python / "sample.safetensors")
        files = {file.name: {"bytes": file.stat().st_size,
                             "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
                 for file in python.iterdir()}
        (python / "manifest.json").write_text(json.dumps(
            {"format": "attune-checkpoint/1", "step": 1, "world_size": 1, "files": files}))
        output = run(program, 2, "--checkpoint-dir", folder / "resumed", "--resume", python)
        error = float(re.search(r"error (\S+)", output).group(1))
        print(f"error in the SDK: {error:.1e}")
        assert error < 1e-5


main()
