"""Reads Markdown pages: fenced blocks, prose, headings, links."""

import pathlib
import re
import subprocess
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
USER_FOLDERS = ("start", "how-to", "reference")

_FENCE = re.compile(r"(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?(\S+?)>?(?:\s+\".*\")?\s*$", re.M)
_TARGET = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")


class Block(NamedTuple):
    """A fenced block of code. `line` is the line of its fence, from 1."""

    line: int
    language: str
    name: str  # the name of the file that the block shows, or ""
    code: str
    reason: str | None  # the text after "Not run:" in the paragraph before it, if any


def tracked(*patterns):
    """The tracked files whose paths match the patterns."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def user_pages(docs=ROOT / "docs"):
    return sorted(page for folder in USER_FOLDERS for page in (docs / folder).glob("*.md"))


def _segments(text):
    """(line number, line, fence or None) of each line; `fence` is the fence of the block around the line."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        found = _FENCE.match(line)
        if fence is None and found:
            fence = (number, found)
            yield number, line, fence
        elif fence is not None:
            yield number, line, fence
            marks = fence[1]["marks"]
            if found and found["marks"].startswith(marks) and not found["info"].strip():
                fence = None
        else:
            yield number, line, None


def _reason_before(lines):
    """The text after "Not run:" in the last paragraph of these lines, or None."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    start = len(lines)
    while start and lines[start - 1].strip():
        start -= 1
    found = re.search(r"(?:^|\s)Not run: *(.*)", " ".join(line.strip() for line in lines[start:]))
    return found[1].strip() if found else None


def blocks(text):
    """The fenced blocks of a page, in order."""
    found, lines = [], text.split("\n")
    starts = {}
    for number, _, fence in _segments(text):
        if fence:
            starts.setdefault(fence[0], (fence[1], []))[1].append(number)
    for start, (fence, numbers) in starts.items():
        indent = len(fence["indent"])
        code = [line[min(indent, len(line) - len(line.lstrip(" "))):] for line in lines[start:numbers[-1] - 1]]
        language, _, name = fence["info"].strip().partition(" ")
        found.append(Block(start, language, name.strip(), "".join(line + "\n" for line in code),
                           _reason_before(lines[:start - 1])))
    return found


def code(text, language, name="", heading=None):
    """The code of each block of a language that is this file; None: of any file, or of none.

    With a heading of level 2, only of the blocks below it.
    """
    if heading is not None:
        text = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [block.code for block in blocks(text) if block.language == language and name in (None, block.name)]


def prose_lines(text):
    """(line number, line) of each line outside of fenced blocks and of what a generator writes.

    A generator writes between the comments `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
    """
    generator = None
    for number, line, fence in _segments(text):
        marker = re.fullmatch(r"<!-- ([\w ]+): (begin|end) -->", line.strip())
        if marker and not fence:
            generator = marker[1] if marker[2] == "begin" else None
        elif fence is None and generator is None:
            yield number, line


def without_code(text):
    """The text with fenced blocks and comments emptied; lines keep their numbers."""
    text = "\n".join("" if fence else line for _, line, fence in _segments(text))
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)


def words(text):
    """Number of words of a page, without code and what a generator writes."""
    prose = "\n".join(line for _, line in prose_lines(text))
    return len(_COMMENT.sub("", prose).split())


def slug(heading):
    """The anchor that GitHub gives a heading, as HTML pages of ours do."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(text):
    """All anchors of a page."""
    found = set()
    for line in without_code(text).split("\n"):
        heading = re.match(r" {0,3}#{1,6} +(.*?)(?: +#+)? *$", line)
        if heading:
            base = slug(heading[1])
            name, count = base, 0
            while name in found:
                count += 1
                name = f"{base}-{count}"
            found.add(name)
        found.update(_TARGET.findall(line))
    return found


def links(text):
    """(line number, target) of each link and image."""
    text = without_code(text)
    plain = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", lambda code: re.sub(r"[^\n]", " ", code[0]), text, flags=re.S)
    for pattern in (_LINK, _REFERENCE):
        for found in pattern.finditer(plain):
            yield plain.count("\n", 0, found.start()) + 1, found[1]


def dead_links(page):
    """One line for each link of a page that leads nowhere inside the repository."""
    faults = []
    for number, target in links(page.read_text()):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z][a-z+.-]*:", path):
            continue
        place = (page.parent / path).resolve() if path else page
        where = f"{page}:{number}: {target}"
        if not place.exists():
            faults.append(f"{where}: no such file")
        elif anchor and place.suffix == ".md" and anchor not in anchors(place.read_text()):
            faults.append(f"{where}: no such heading")
        elif anchor and place.is_dir():
            faults.append(f"{where}: a folder has no headings")
    return faults


def long_lines(text, limit):
    """(line number, length) of each line of prose that is longer than the limit.

    Tables, headings and the targets of links are not counted.
    """
    for number, line in prose_lines(text):
        if not line.lstrip().startswith(("|", "#", "<")):
            length = len(re.sub(r"\]\([^)]*\)|https?://\S+", "]", line))
            if length > limit:
                yield number, length
