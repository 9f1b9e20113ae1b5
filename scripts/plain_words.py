#!/usr/bin/env python3
"""Counts constructions that are hard to read, in documents, comments and messages.

    scripts/plain_words.py               one row for each folder: words, hits, hits per 10,000 words
    scripts/plain_words.py --list N      that, and the lines of the N files with the most hits
    scripts/plain_words.py --check       one line for each folder with too many; exit code 1 if there is one

The constructions are in plain_words.txt. A hit is a place to read again, not always a fault: exempt a line that is
right in plain_words_exempt.txt. The row `docs` counts every page of the repository (*.md), without code and headings.
The row of a folder counts the comments and docstrings of its sources. The row `messages` counts text in string
literals, of four words or more, outside of tests, benchmarks and examples.
"""

import argparse
import ast
import collections
import io
import pathlib
import re
import sys
import tokenize
from typing import NamedTuple

import markdown_pages as markdown
from markdown_pages import ROOT

RATE_MAX = 8  # hits per 10,000 words
SMALL_WORDS = 5000  # up to this number of words, a folder may have SMALL_HITS_MAX hits instead
SMALL_HITS_MAX = 2
EXEMPT_MAX = 30

WORDS_OF_MESSAGE_MIN = 4
NO_MESSAGES = ("tests", "benchmarks", "examples")


class Line(NamedTuple):
    path: str
    number: int
    text: str


class Hit(NamedTuple):
    line: Line
    words: str


class Count:
    """The words and hits of a folder."""

    def __init__(self):
        self.words = 0
        self.hits = []

    @property
    def rate(self):
        return 1e4 * len(self.hits) / max(self.words, 1)

    def is_plain(self):
        if self.words <= SMALL_WORDS:
            return len(self.hits) <= SMALL_HITS_MAX
        return self.rate <= RATE_MAX


# --- Text of a file: (line number, text) of each line --------------------------------------------------------------


def _prose_of_markdown(text):
    for number, line in enumerate(markdown.without_code(text).split("\n"), 1):
        if not line.startswith("#"):
            yield number, line


def _is_docstring(node, parents):
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            and isinstance(parents[node], (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)))


def _string_of(node):
    """The text of a string, with X for each expression in it; None for other nodes."""
    if isinstance(node, ast.JoinedStr):
        return "".join(each.value if isinstance(each, ast.Constant) else "X" for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _strings_of_python(text):
    """(line number, text, whether it is a docstring) of each line of each string."""
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in parents:
        string = _string_of(node)
        if string is not None and not isinstance(parents[node], ast.JoinedStr):
            for offset, line in enumerate(string.split("\n")):
                yield node.lineno + offset, line, _is_docstring(parents[node], parents)


def _comments_of_python(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            yield token.start[0], token.string.lstrip("#")
    for number, line, is_docstring in _strings_of_python(text):
        if is_docstring:
            yield number, line


def _messages_of_python(text):
    return ((number, line) for number, line, is_docstring in _strings_of_python(text) if not is_docstring)


def _comments_of_shell(text):
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.search(r"(?:^|\s)#+\s(.*)", line)
        if comment:
            yield number, comment[1]


# A string, so that what looks like a comment in it is none, or a comment. Raw strings come first.
_TOKEN_OF_C = re.compile(r"""R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<string>(?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)'"""
                         r"""|(?<![^\s;{}(),])//+(?P<line>[^\n]*)|/\*+(?P<block>.*?)\*/""", re.S)


def _tokens_of_c(text, *kinds):
    for token in _TOKEN_OF_C.finditer(text):
        for kind in kinds:
            if token[kind]:
                start = text.count("\n", 0, token.start(kind)) + 1
                for offset, line in enumerate(token[kind].split("\n")):
                    yield start + offset, re.sub(r"^\s*\*\s", "", line) if kind == "block" else line


def _comments_of_c(text):
    return _tokens_of_c(text, "line", "block")


def _messages_of_c(text):
    return _tokens_of_c(text, "string", "raw")


def _messages_of_typescript(text):
    """Also text between the tags of elements."""
    yield from _messages_of_c(text)
    for found in re.finditer(r"[>`]\s*([A-Z][^<>{}`]{20,})[<`]", text):
        for offset, line in enumerate(found[1].split("\n")):
            yield text.count("\n", 0, found.start(1)) + 1 + offset, line


def _is_shell(path):
    return path.suffix in (".sh", ".cmake") or path.name in ("CMakeLists.txt", "Makefile") or (
        not path.suffix and path.parts[0] in ("scripts", "packaging"))


def texts_of(path, text):
    """(row, lines) of the texts of a file; a line is (number, text). The path is relative to the repository."""
    folder = path.parts[0] if len(path.parts) > 1 else "root"
    comments = messages = None
    if path.suffix == ".md":
        yield "docs", _prose_of_markdown(text)
    elif path.suffix == ".py":
        comments, messages = _comments_of_python, _messages_of_python
    elif path.suffix in (".h", ".cc", ".proto"):
        comments, messages = _comments_of_c, _messages_of_c
    elif path.suffix in (".ts", ".tsx"):
        comments, messages = _comments_of_c, _messages_of_typescript
    elif _is_shell(path):
        comments = _comments_of_shell
    if comments:
        yield folder, comments(text)
    if messages and folder not in NO_MESSAGES:
        yield "messages", ((number, line) for number, line in messages(text)
                           if len(re.findall(r"[A-Za-z]{2,}", line)) >= WORDS_OF_MESSAGE_MIN)


# --- Counting ------------------------------------------------------------------------------------------------------


def _entries(name):
    lines = (ROOT / "scripts" / name).read_text().split("\n")
    return [line for line in lines if line.strip() and not line.startswith("#")]


PATTERNS = [re.compile(entry) for entry in _entries("plain_words.txt")]


def exemptions():
    """(path, words of the line) of each exemption. Raises ValueError for an entry without a reason."""
    found = []
    for entry in _entries("plain_words_exempt.txt"):
        parts = [part.strip() for part in entry.split(" | ")]
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"plain_words_exempt.txt: not PATH | words | reason: {entry}")
        found.append((parts[0], parts[1]))
    if len(found) > EXEMPT_MAX:
        raise ValueError(f"plain_words_exempt.txt: {len(found)} exemptions are more than {EXEMPT_MAX}")
    return found


def hits_of(line):
    return [Hit(line, found[0]) for pattern in PATTERNS for found in pattern.finditer(line.text)]


def count(files, exempt=(), root=ROOT):
    """The Count of each row, and those exemptions that no hit needs."""
    counts = collections.defaultdict(Count)
    unused = set(exempt)
    for path in files:
        for row, lines in texts_of(path, (root / path).read_text(errors="replace")):
            for number, text in lines:
                line = Line(str(path), number, text.strip())
                hits = hits_of(line)
                exempting = {entry for entry in exempt if hits and entry[0] == line.path and entry[1] in text}
                unused -= exempting
                for each in (counts[row], counts["all"]):
                    each.words += len(text.split())
                    each.hits += hits if not exempting else []
    return dict(counts), unused


def faults(counts):
    """One text for each row that has too many hits."""
    return [f"{row}: {len(each.hits)} hits in {each.words} words ({each.rate:.0f} per 10,000) are too many; "
            "see scripts/plain_words.py --list 5"
            for row, each in sorted(counts.items()) if not each.is_plain()]


def sources():
    paths = [path.relative_to(ROOT) for path in markdown.tracked() if path.is_file()]
    return [path for path in paths if "data" not in path.parts[1:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", type=int, default=0, metavar="N")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="only these files and folders")
    arguments = parser.parse_args()
    files = [path for path in sources() if not arguments.paths or any(path.is_relative_to(each) for each in arguments.paths)]
    counts, unused = count(files, exemptions())
    if arguments.check:
        found = faults(counts) + [f"plain_words_exempt.txt: no hit in {entry}" for entry in sorted(unused)]
        print("\n".join(found) or "plain enough")
        return 1 if found else 0
    rows = sorted(counts.items(), key=lambda row: (row[0] == "all", row[0]))
    print(f"{'row':<14}{'words':>8}{'hits':>7}{'per 10,000':>12}")
    for row, each in rows:
        print(f"{row:<14}{each.words:>8}{len(each.hits):>7}{each.rate:>12.0f}")
    by_file = collections.defaultdict(list)
    for hit in counts["all"].hits if counts else []:
        by_file[hit.line.path].append(hit)
    for path, hits in sorted(by_file.items(), key=lambda file: -len(file[1]))[:arguments.list]:
        print(f"\n{path}: {len(hits)}")
        for hit in sorted(hits):
            print(f"  {hit.line.number}: [{hit.words}] {hit.line.text[:110]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
