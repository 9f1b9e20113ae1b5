"""Refuses to be imported where pip has mixed this package with another project's of the same name.

On PyPI `attune` is another project, and this one `attune-hpo`. Both install a folder `attune/`. Each public module
imports this one first, because the other project's `__init__.py` may have replaced this package's.
"""

from __future__ import annotations

import os


def require_alone(folder: str) -> None:
    """Raises ImportError if `folder`, which has the package, also has the other distribution's record of its files."""
    try:
        names = os.listdir(folder)
    except OSError:  # a zip file, for example
        return
    for name in names:
        if name.startswith("attune-") and name.endswith((".dist-info", ".egg-info")):
            other = name.rpartition(".")[0]
            raise ImportError(
                f"{folder} has two projects with a package named attune, and pip has mixed their files: attune-hpo, "
                f"which tunes hyperparameters, and {other}. Run `pip uninstall attune attune-hpo` and install the one "
                "that you want. If you want both, use two virtual environments.")


require_alone(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
