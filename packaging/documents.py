#!/usr/bin/env python3
"""Writes the man pages of `attune` and its completion for shells.

    documents.py REFERENCE SHARE ZSH ATTUNE...

REFERENCE is docs/reference/cli.md, SHARE the folder share/ of the installation, ZSH the folder in it for functions of zsh.
ATTUNE... is a command that runs `attune` on this machine and prints its commands and options. The text comes from
REFERENCE. Pages are compressed, as Debian requires. The same input gives the same files.
"""

import datetime
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys

BUNDLE = {"bash": "bash-completion/completions/attune", "fish": "fish/vendor_completions.d/attune.fish"}


# ---- Markdown to roff --------------------------------------------------------------------------------------------


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def inline(text):
    """A paragraph in roff: code and bold text become bold, links become their text."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"(`[^`]*`|\*\*[^*]*\*\*)", text)
    shown = ""
    for part in parts:
        if part.startswith("`"):
            shown += f"\\fB{escape(part[1:-1])}\\fR"
        elif part.startswith("**"):
            shown += f"\\fB{escape(part[2:-2])}\\fR"
        else:
            shown += part.replace("\\", "\\e")
    # roff takes a line that begins with . or ' for a command.
    return re.sub(r"^([.'])", r"\\&\1", shown)


def cells(row):
    """The cells of a row of a table; an escaped pipe is part of a cell."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def table(rows):
    lines = []
    for row in rows[2:]:  # without the header and the line below it
        first, *others = cells(row)
        lines += [".TP", inline(first), inline("; ".join(others))]
    return lines


def blocks(markdown):
    """Yields paragraphs, tables, lists and fenced code, each as a list of its lines."""
    block, is_code = [], False
    for line in [*markdown.split("\n"), ""]:
        is_fence = line.startswith("```")
        if block and not is_code and (is_fence or not line.strip()):
            yield block
            block = []
        if is_code or line.strip():
            block.append(line)
        if is_fence:
            if is_code:
                yield block
                block = []
            is_code = not is_code


def prose(markdown):
    """Lines of roff. Leaves out tables of flags, because pages have the options from the program.

    Also leaves out remarks about examples that tests do not run.
    """
    lines = []
    for block in blocks(markdown):
        if block[0].startswith("Not run:"):
            continue
        if block[0].startswith("```"):
            code = [re.sub(r"^([.'])", r"\\&\1", escape(line)) for line in block[1:-1]]
            lines += [".PP", ".RS 4", ".EX", *code, ".EE", ".RE"]
        elif block[0].startswith("|"):
            title = cells(block[0])[0]
            lines += [".SH EXIT STATUS"] if title == "exit code" else []
            lines += [] if title == "flag" else table(block)
        elif block[0].startswith("- "):
            for item in re.split(r"\n(?=- )", "\n".join(block)):
                lines += [".IP \\(bu 2", inline(" ".join(item[2:].split()))]
        else:
            lines += [".PP", inline(" ".join(" ".join(block).split()))]
    return lines


# ---- The reference -----------------------------------------------------------------------------------------------


def commands_of(heading):
    """The commands in a heading: `attune sweep create FILE` is ("sweep", "create")."""
    found = []
    for command in re.findall(r"`attune ([^`]*)`", heading):
        words = []
        for word in command.split():
            if not re.fullmatch(r"[a-z]+", word):
                break
            words.append(word)
        found.append(tuple(words))
    return found


class Reference:
    def __init__(self, text):
        parts = re.split(r"^(##+ .*)$", text, flags=re.M)
        self.about = parts[0].split("\n", 1)[1]  # below the title
        self.chapters = {}  # sections without a command: title -> text
        self.verbs = []  # (commands, text)
        for heading, body in zip(parts[1::2], parts[2::2]):
            commands = commands_of(heading)
            if commands:
                self.verbs.append((commands, body))
            else:
                self.chapters[heading.lstrip("# ")] = body

    def of(self, *verb):
        """The text about a command, also from sections about several commands."""
        return "\n\n".join(body for commands, body in self.verbs if verb in commands)


# ---- Pages -------------------------------------------------------------------------------------------------------


def names(option):
    value = f" \\fI{escape(option['value'])}\\fR" if option["value"] else ""
    return ", ".join(f"\\fB{escape(name)}\\fR" for name in option["names"]) + value


def options(these):
    lines = []
    for option in these:
        about = inline(option["about"])
        facts = []
        if option["values"]:
            facts.append("one of " + ", ".join(f"\\fB{escape(value)}\\fR" for value in option["values"]))
        if option["default"]:
            facts.append(f"default \\fB{escape(option['default'])}\\fR")
        if option["environment"]:
            facts.append(f"environment \\fB{escape(option['environment'])}\\fR")
        lines += [".TP", names(option), about + (f" ({'; '.join(facts)})" if facts else "")]
    return lines


def sentence(about):
    return inline(about[:1].upper() + about[1:]) + "."


def synopsis(words, verb):
    line = f"\\fB{escape(' '.join(words))}\\fR [\\fIOPTION\\fR]..."
    for positional in verb["positionals"]:
        name = f"\\fI{escape(positional['names'][0])}\\fR" + ("..." if positional["many"] else "")
        line += f" {name}" if positional["required"] else f" [{name}]"
    return line


class Pages:
    def __init__(self, tree, reference, version, date):
        self.tree, self.reference, self.version, self.date = tree, reference, version, date

    def head(self, name, about):
        return [".nr HY 0",  # no hyphenation, because commands must not be broken
                f'.TH "{escape(name.upper())}" 1 "{self.date}" "Attune {self.version}" "Attune Manual"',
                ".SH NAME", f"{escape(name)} \\- {inline(about)}"]

    def see_also(self, *pages):
        return [".SH SEE ALSO", ", ".join(f"\\fB{escape(page)}\\fR(1)" for page in pages)]

    def program(self):
        verbs = self.tree["verbs"]
        lines = self.head("attune", "tune hyperparameters of distributed training")
        lines += [".SH SYNOPSIS", "\\fBattune\\fR \\fIVERB\\fR [\\fIOPTION\\fR]...", ".SH DESCRIPTION"]
        lines += prose(self.reference.about) + [".SH VERBS"]
        for verb in verbs:
            lines += [".TP", f"\\fBattune\\-{escape(verb['name'])}\\fR(1)", inline(verb["about"])]
        for title, text in self.reference.chapters.items():
            if title in ("Finding the server", "Output"):
                lines += [f".SH {title.upper()}", *prose(text)]
        lines += [".SH OPTIONS", *options(self.tree["options"])]
        return lines + self.see_also(*(f"attune-{verb['name']}" for verb in verbs))

    def verb(self, verb):
        """A page of a verb, or of a noun with all its verbs."""
        name = verb["name"]
        subverbs = verb["verbs"]
        lines = self.head(f"attune-{name}", verb["about"]) + [".SH SYNOPSIS"]
        own_text = self.reference.of(name)
        has_own_action = not subverbs or own_text
        forms = [synopsis(["attune", name], verb)] if has_own_action else []
        forms += [synopsis(["attune", name, sub["name"]], sub) for sub in subverbs]
        lines += "\n.br\n".join(forms).split("\n")
        if verb["aliases"]:
            lines += [".PP", "Other names: " + ", ".join(f"\\fBattune {escape(a)}\\fR" for a in verb["aliases"]) + "."]
        lines += [".SH DESCRIPTION", *(prose(own_text) or [sentence(verb["about"])])]
        if has_own_action and (verb["positionals"] or verb["options"]):
            lines += [".SH OPTIONS", *options(arguments(verb)), *options(verb["options"])]
        if subverbs:
            lines += self.subverbs(name, subverbs)
        return lines + self.see_also("attune")

    def subverbs(self, name, subverbs):
        common = [option for option in subverbs[0]["options"]
                  if len(subverbs) > 1 and all(option in other["options"] for other in subverbs)]
        lines = [".SH VERBS"]
        shown = set()
        for sub in subverbs:
            lines += [f".SS \"attune {escape(name)} {escape(sub['name'])}\"", sentence(sub["about"])]
            text = self.reference.of(name, sub["name"])
            if text not in shown:  # some verbs share a section
                lines += prose(text)
            shown.add(text)
            lines += options(arguments(sub)) + options([o for o in sub["options"] if o not in common])
        if common:
            lines += [".SH COMMON OPTIONS", "Every command has these:", *options(common)]
        return lines


def arguments(verb):
    """Positionals that say something about themselves."""
    return [dict(p, value="") for p in verb["positionals"] if p["about"]]


# ---- Files -------------------------------------------------------------------------------------------------------


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o644)


def write_page(share, name, lines):
    lines = [line for line in lines if line]
    # A paragraph begins by itself below a heading.
    lines = [line for before, line in zip(["", *lines], lines) if not (line == ".PP" and before.startswith(".S"))]
    text = "\n".join(lines) + "\n"
    write(share / f"man/man1/{name}.1.gz", gzip.compress(text.encode(), 9, mtime=0))


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    reference, share, zsh = map(pathlib.Path, sys.argv[1:4])
    attune = sys.argv[4:]

    def ask(*words):
        return subprocess.run([*attune, *words], check=True, capture_output=True, text=True).stdout

    changed = int(os.environ.get("SOURCE_DATE_EPOCH") or reference.stat().st_mtime)
    tree = json.loads(ask("__describe"))
    pages = Pages(tree, Reference(reference.read_text()), ask("--version").split()[-1],
                  datetime.datetime.fromtimestamp(changed, datetime.timezone.utc).strftime("%Y-%m-%d"))
    write_page(share, "attune", pages.program())
    for verb in tree["verbs"]:
        write_page(share, f"attune-{verb['name']}", pages.verb(verb))
    for shell, path in {**BUNDLE, "zsh": zsh / "_attune"}.items():
        write(share / path, ask("completion", shell).encode())


if __name__ == "__main__":
    main()
