"""Finds the public functions of the SDK's headers and checks whether a program calls them."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import markdown_pages as markdown  # noqa: E402

# Comments with these words mark functions that programs do not call.
_INTERNAL = re.compile(r"For the SDK only|Called by Context|Main\(\) calls")
_MARK = "__internal__"

# Classes of the internal namespace that programs use under other names, for example DistributedModel.
_ALIASED = {"ModelOf"}


def _without_comments(text):
    """Removes comments and preprocessor lines. A mark replaces each comment on an internal member."""
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    text = re.sub(r"=\s*\{\}", "= 0", text)  # default values of parameters and members
    return re.sub(r"(?:[ \t]*//[^\n]*\n?)+",
                  lambda comment: f" {_MARK if _INTERNAL.search(comment[0]) else ''}\n", text)


def _without_templates(head):
    """Removes the text between angle brackets."""
    head = head.replace("->", "")
    while (shorter := re.sub(r"<[^<>]*>", "", head)) != head:
        head = shorter
    return head


def _block_end(text, start):
    """Returns the position after the brace that closes the one at `start`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    raise ValueError("a brace is not closed")


def _function_in(head, scope):
    """Returns the name of the function in a declaration, or None."""
    plain = _without_templates(head)
    call = re.search(r"([~\w]+)\s*\((?!\s*\*)", plain)
    if not call or _MARK in head or "operator" in plain or "=" in plain[:call.start()]:
        return None
    if re.search(r"\b(using|friend|static_assert|concept)\b", plain) or call[1].lstrip("~") == scope:
        return None
    return call[1]


def _scan(text, scope, is_public, names):
    """Adds the public functions of a namespace or a class."""
    head, at = "", 0
    for match in iter(lambda: re.compile(r"[;{}]|\b(public|private|protected):").search(text, at), None):
        head += text[at:match.start()]
        at = match.end()
        plain = _without_templates(head)
        block = re.search(r"\b(namespace|class|struct|enum)\b\s*([\w: ]*)[^(]*$", plain)
        if match[1]:
            is_public, head = match[1] == "public", ""
        elif match[0] == "{":
            at = _block_end(text, match.start())
            body = text[match.end():at - 1]
            if block:
                kind, name = block[1], block[2].split(":")[0].strip()
                if kind == "namespace":
                    found = set()
                    _scan(body, "", True, found)
                    internal = block[2].strip().endswith("trainable")
                    names |= {each for each in found if not internal or each[0] in _ALIASED}
                elif kind in ("class", "struct") and is_public and _MARK not in head:
                    _scan(body, name.split(" ")[0], kind == "struct", names)
                head = ""
            elif "(" in plain and not re.search(r"=\s*$", plain):
                if is_public and (function := _function_in(head, scope)):
                    names.add((scope, function))
                head = ""
        elif match[0] == ";":
            if is_public and (function := _function_in(head, scope)):
                names.add((scope, function))
            head = ""


def public_functions(header):
    """Returns (class or "", name) of each public function that a header declares."""
    names = set()
    _scan(_without_comments(header), "", True, names)
    return names


def is_used(scope, name, code):
    """Whether code calls the function, or overrides it."""
    call = rf"{name}\s*(<[^;(){{}}]*>)?\s*\("
    if not scope:
        return re.search(rf"\b{call}", code) is not None
    return re.search(rf"(\.|->|::){call}|::{name}\b|\b{call}[^;{{}}]*\)\s*(const\s*)?override", code) is not None


def code_of_examples(root):
    """Returns the C++ code of examples and of snippets for the pages, without comments."""
    root = pathlib.Path(root)
    texts = [path.read_text() for ending in ("cc", "h") for path in sorted(root.glob(f"examples/**/*.{ending}"))]
    for page in ("README.md", "docs/reference/cpp-sdk.md", "docs/how-to/checkpoints.md"):
        texts += markdown.code((root / page).read_text(), "cpp")
    return re.sub(r"//[^\n]*", "", "\n".join(texts))
