#!/usr/bin/env python3
"""Checks the subjects of the commits after a commit: `area: verb …`, imperative, at most 60 characters.

    scripts/commit_subjects.py COMMIT [FOLDER]     prints one line for each fault; exit code 1 if there is one

Merges are exempt. If the history of FOLDER does not go back to COMMIT, nothing is checked.
"""

import re
import subprocess
import sys

LENGTH_MAX = 60
_FORM = re.compile(r"[a-z0-9_./+-]+(?:, [a-z0-9_./+-]+)*: (?P<verb>[a-z][a-z-]*)\b")

# Imperatives with the ending of another verb form.
_IMPERATIVES = {"alias", "bias", "bring", "embed", "exceed", "feed", "focus", "need", "ping", "proceed", "seed", "shed", "speed"}


def fault_of(subject):
    """Describes the fault of a subject, or returns None."""
    if len(subject) > LENGTH_MAX:
        return f"{len(subject)} characters are more than {LENGTH_MAX}"
    found = _FORM.match(subject)
    if not found:
        return "it must begin with an area, a colon and a verb, such as `docs: explain`"
    verb = found["verb"]
    if verb not in _IMPERATIVES and re.search(r"(ed|ing|[^s]s)$", verb):
        return f"`{verb}` is no imperative: write what the commit does as a command, such as `add`"
    return None


def _git(folder, *words):
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)


def main(commit, folder="."):
    if _git(folder, "merge-base", "--is-ancestor", commit, "HEAD").returncode != 0:
        print(f"commit subjects: left out, the history here does not go back to {commit[:8]}")
        return 0
    log = _git(folder, "log", "--no-merges", "--format=%h %s", f"{commit}..HEAD")
    if log.returncode != 0:
        print(log.stderr, file=sys.stderr)
        return 1
    commits = [line.split(" ", 1) for line in log.stdout.splitlines()]
    faults = [f"commit {name}: {fault}: {subject}" for name, subject in commits if (fault := fault_of(subject))]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["--help"], ["-h"]) else 2)
    sys.exit(main(*sys.argv[1:]))
