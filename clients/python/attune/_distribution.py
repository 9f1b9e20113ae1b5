"""Raises ImportError if pip has mixed this package with the package of another project.

On PyPI, `attune` is another project, and this project is `attune-hpo`. Both install a folder `attune/`. Each public
module imports this one first, because the other project's `__init__.py` may have replaced this package's.
"""

from __future__ import annotations

import os


def require_alone(folder: str) -> None:
    """Raises ImportError if `folder`, which contains this package, also contains metadata of the other project."""
    try:
        names = os.listdir(folder)
    except OSError:  # a zip file, for example
        return
    for name in names:
        if name.startswith("attune-") and name.endswith((".dist-info", ".egg-info")):
            other = name.rpartition(".")[0]
            raise ImportError(
                f"{folder} mixes files of two projects with a package named attune: attune-hpo, which tunes "
                f"hyperparameters, and {other}. Run `pip uninstall attune attune-hpo` and install one of them, or install "
                "each in its own virtual environment.")


require_alone(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
