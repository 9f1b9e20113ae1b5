"""Patterns of paths, with the syntax and meaning of gitignore(5).

`code/patterns.h` of the server has the same rules. tests/data/code_patterns.json has cases that both must pass.
"""

from __future__ import annotations

import re
import typing

_FOLDERS = "(?:[^/]*/)*?"  # any number of folders


class _Pattern(typing.NamedTuple):
    regex: re.Pattern[str]
    negated: bool
    folders_only: bool
    any_folder: bool  # matches a name in every folder


class Patterns:
    """Patterns in their order: the last one that matches decides.

    A file below a folder that matches also matches, whatever later patterns say, as with git. Paths are text with /
    between names. Bytes that are not UTF-8 are surrogates (`surrogateescape`).
    """

    def __init__(self) -> None:
        self._patterns: list[_Pattern] = []
        self._folders: dict[str, bool] = {"": False}  # whether a folder or one of its parents matches

    @classmethod
    def from_lines(cls, text: str) -> Patterns:
        """Reads one pattern a line. Empty lines and lines that begin with # are ignored."""
        patterns = cls()
        for line in text.removeprefix("\ufeff").split("\n"):
            if not line.startswith("#"):
                patterns._add(line[:-1] if line.endswith("\r") else line)
        return patterns

    @classmethod
    def from_list(cls, lines: typing.Iterable[str]) -> Patterns:
        """Reads one pattern an element. Raises ValueError if a pattern is empty or has a line break."""
        patterns = cls()
        for line in lines:
            if "\n" in line or "\r" in line or not patterns._add(line):
                raise ValueError(f'"{line}" is not a pattern of paths')
        return patterns

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def matches(self, path: str, is_folder: bool) -> bool:
        """Returns whether the patterns match the path itself. Use it if no folder of the path matches."""
        name = path.rpartition("/")[2]
        for pattern in reversed(self._patterns):
            if pattern.folders_only and not is_folder:
                continue
            if pattern.regex.fullmatch(name if pattern.any_folder else path):
                return not pattern.negated
        return False

    def matches_file(self, path: str) -> bool:
        """Returns whether the patterns match the file or one of its folders."""
        return self._matches_folder(path.rpartition("/")[0]) or self.matches(path, False)

    def _matches_folder(self, folder: str) -> bool:
        parents = []
        while folder not in self._folders:
            parents.append(folder)
            folder = folder.rpartition("/")[0]
        found = self._folders[folder]
        for parent in reversed(parents):
            found = self._folders[parent] = found or self.matches(parent, True)
        return found

    def _add(self, line: str) -> bool:
        """Adds a pattern. Returns False if the line has none."""
        while line.endswith(" ") and not line.endswith("\\ "):  # blanks at the end count only if they are quoted
            line = line[:-1]
        negated = line.startswith("!")
        line = line[negated:]
        folders_only = line.endswith("/")
        line = line[:-1] if folders_only else line
        any_folder = "/" not in line
        line = line[1:] if line.startswith("/") else line
        if line:
            self._patterns.append(_Pattern(re.compile(_regex(line), re.DOTALL), negated, folders_only, any_folder))
        return bool(line)


def _regex(glob: str) -> str:
    """Returns the regular expression of a glob.

    No pattern takes exponential time: a later `*` makes an earlier one in the same name needless, and a later `**`
    makes every earlier one needless. So the text before the next one is matched once, and never in another way.
    """
    blocks = [[""]]  # the text between `**/`, in pieces between `*`
    at = 0
    while at < len(glob):
        if glob.startswith("**", at) and glob[at - 1:at] in ("", "/") and glob[at + 2:at + 3] in ("", "/"):
            blocks.append([""])
            at += 3
        elif glob[at] == "*":
            while glob[at:at + 1] == "*":
                at += 1
            blocks[-1].append("")
        else:
            regex, at = _character(glob, at)
            blocks[-1][-1] += regex
    groups = 0

    def once(regex: str) -> str:
        nonlocal groups
        groups += 1
        return f"(?=(?P<g{groups}>{regex}))(?P=g{groups})"

    whole = ""
    everything_below = glob == "**" or glob.endswith("/**")
    for number, (first, *others) in enumerate(blocks):
        is_last = number == len(blocks) - 1
        if is_last and everything_below:
            return whole + ".+"
        pieces = ["[^/]*?" + piece for piece in others]
        ending = pieces.pop() if pieces and is_last else ""
        block = first + "".join(map(once, pieces)) + ending
        if number > 0:
            block = _FOLDERS + block if is_last else once(_FOLDERS + block)
        whole += block
    return whole


def _character(glob: str, at: int) -> tuple[str, int]:
    """Returns the regular expression of what the glob has at an index for one character, and the index behind it."""
    if glob[at] == "?":
        return "[^/]", at + 1
    if glob[at] == "[":
        return _bracket(glob, at) or (r"\[", at + 1)
    character, at = _quoted(glob, at)
    return re.escape(character), at


def _bracket(glob: str, at: int) -> tuple[str, int] | None:
    """Returns the same for a bracket expression. None: it has no closing bracket, and the bracket is a character."""
    at += 1
    negated = glob[at:at + 1] in ("!", "^")
    at += negated
    first, ranges = at, ""
    while at < len(glob):
        if glob[at] == "]" and at > first:
            if not ranges:
                return ("[^/]" if negated else "(?!)"), at + 1
            return f"(?!/)[{'^' if negated else ''}{ranges}]", at + 1
        low, at = _quoted(glob, at)
        high = low
        if glob[at:at + 1] == "-" and glob[at + 1:at + 2] not in ("", "]"):
            high, at = _quoted(glob, at + 1)
        if low <= high:
            ranges += f"{re.escape(low)}-{re.escape(high)}"
    return None


def _quoted(glob: str, at: int) -> tuple[str, int]:
    """Returns the character at an index, without the backslash that quotes it, and the index behind it."""
    if glob[at] == "\\" and at + 1 < len(glob):
        at += 1
    return glob[at], at + 1
