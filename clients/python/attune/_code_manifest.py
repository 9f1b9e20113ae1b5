"""The manifest of a code snapshot: its files and links.

`code/manifest.h` of the server describes the text and has the same rules.
"""

from __future__ import annotations

import re
import typing

from attune._rest import Error

ENTRIES_MAX = 20_000  # files and links
PATH_BYTES_MAX = 1_024
MANIFEST_BYTES_MAX = 8 << 20

_FIRST_LINE = "attune-code/1"
_LINKS_FOLLOWED_MAX = 40  # as in Linux

_NOT_UTF_8 = re.compile("[\ud800-\udfff]")
_CONTROL_CHARACTER = re.compile("[\0-\x1f\x7f]")


class File(typing.NamedTuple):
    path: str  # relative, with / between names
    bytes: int
    sha256: str  # 64 hex digits
    executable: bool


class Link(typing.NamedTuple):
    path: str
    target: str  # relative to the folder of the link


def decode(path: bytes) -> str:
    """Returns a path as text. Bytes that are not UTF-8 become surrogates, whatever encoding the locale has."""
    return path.decode("utf-8", "surrogateescape")


def encode(path: str) -> bytes:
    """Returns the bytes of which decode() has made the text."""
    return path.encode("utf-8", "surrogateescape")


def printable(path: str) -> str:
    """Returns the path for a message, with U+FFFD for bytes that are not UTF-8."""
    return _NOT_UTF_8.sub("\ufffd", path)


def to_text(files: typing.Sequence[File], links: typing.Sequence[Link]) -> bytes:
    """Returns the manifest as text. Both lists are sorted by path.

    Raises Error if the text is larger than MANIFEST_BYTES_MAX.
    """
    lines = [_FIRST_LINE]
    for path, size, sha256, executable in files:
        lines.append(f"file\t{'755' if executable else '644'}\t{size}\t{sha256}\t{path}")
    lines += [f"link\t{link.target}\t{link.path}" for link in links]
    text = encode("\n".join(lines) + "\n")
    if len(text) > MANIFEST_BYTES_MAX:
        raise Error(f"the manifest of the code is larger than {MANIFEST_BYTES_MAX >> 20} MiB: exclude folders that "
                    "training does not need")
    return text


def check(files: typing.Sequence[str], links: typing.Sequence[Link]) -> None:
    """Raises Error if a folder with these paths of files and these links is not the same on every system."""
    _Checker(files, links).check()


class _Checker:
    def __init__(self, files: typing.Sequence[str], links: typing.Sequence[Link]) -> None:
        self._files, self._links = files, {link.path: link for link in links}
        self._entries: set[str] = set()
        self._folders: set[str] = set()
        self._by_lower_case: dict[bytes, str] = {}

    def check(self) -> None:
        if len(self._files) + len(self._links) > ENTRIES_MAX:
            raise Error(f"the code has more than {ENTRIES_MAX} files: exclude folders that training does not need")
        for path in (*self._files, *self._links):
            self._add_path(path)
        for link in self._links.values():
            fault = self._link_fault(link)
            if fault:
                raise Error(f"the link {_quoted(link.path)} to {_quoted(link.target)} {fault}: exclude the link, or "
                            "replace it with a copy")

    def _add_path(self, path: str) -> None:
        fault = _path_fault(path)
        if fault:
            raise Error(f"{_quoted(path)} {fault}")
        slash = path.find("/")
        while slash >= 0:
            folder = path[:slash]
            self._folders.add(folder)
            self._add_name(folder)
            if folder in self._entries:
                raise Error(f"{_quoted(folder)} is both a file and a folder")
            slash = path.find("/", slash + 1)
        if path in self._entries:
            raise Error(f"{_quoted(path)} is there twice")
        self._entries.add(path)
        if path in self._folders:
            raise Error(f"{_quoted(path)} is both a file and a folder")
        self._add_name(path)

    def _add_name(self, path: str) -> None:
        known = self._by_lower_case.setdefault(encode(path).lower(), path)  # bytes.lower() changes only ASCII
        if known != path:
            raise Error(f"{_quoted(known)} and {_quoted(path)} differ only in the case of letters, so some systems can "
                        "keep only one of them: rename or exclude one")

    def _link_fault(self, link: Link) -> str:
        """Follows the link as the kernel does: name by name, and the links on its way. Returns the end of a message."""
        if not link.target or len(encode(link.target)) > PATH_BYTES_MAX or _has_bad_characters(link.target):
            return "has an invalid target"
        folder = link.path.rpartition("/")[0]
        names: list[str] = []  # the last one first
        followed = 0
        following: Link | None = link
        while following is not None:
            followed += 1
            if followed > _LINKS_FOLLOWED_MAX:
                return "leads in a circle"
            if following.target.startswith("/"):
                return "leads out of the folder"
            names += reversed(following.target.split("/"))
            following = None
            while names and following is None:
                name = names.pop()
                if name in ("", "."):
                    continue
                if name == "..":
                    if not folder:
                        return "leads out of the folder"
                    folder = folder.rpartition("/")[0]
                    continue
                path = f"{folder}/{name}" if folder else name
                following = self._links.get(path)
                if following is None:
                    if path not in self._folders:
                        return "" if path in self._entries and not names else "leads to nothing in the snapshot"
                    folder = path
        return ""


def _path_fault(path: str) -> str:
    """Returns why a path is refused, as the end of a message. Empty if it is valid."""
    if len(encode(path)) > PATH_BYTES_MAX:
        return f"is longer than {PATH_BYTES_MAX} bytes"
    if _NOT_UTF_8.search(path):
        return "is not valid UTF-8"
    if _CONTROL_CHARACTER.search(path):
        return "has a control character"
    if any(name in ("", ".", "..") for name in path.split("/")):
        return "is not a path inside the folder"
    return ""


def _has_bad_characters(text: str) -> bool:
    return bool(_NOT_UTF_8.search(text) or _CONTROL_CHARACTER.search(text))


def _quoted(path: str) -> str:
    return f'"{printable(path)}"'
