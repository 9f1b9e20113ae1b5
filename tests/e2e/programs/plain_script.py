"""A training script that does not use Attune. It takes a parameter and prints metrics."""

import os
import sys

x = float(sys.argv[1].partition("=")[2])
with open(f"pid-{os.getpid()}", "w"):
    pass  # runs until it is killed; the test checks that it is gone
for epoch in range(1, 10_000_000):
    print(f"epoch {epoch}: score={x * (1 - 0.5 ** epoch)}, rank {os.environ['RANK']}")
    if os.path.exists("enough"):
        break
