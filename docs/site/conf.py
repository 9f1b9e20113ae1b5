"""Configuration of Sphinx: the pages as a site. scripts/docs runs it, with the repository as the folder of sources.

The site has the pages that docs/README.md links to, directly or through another page. A link that leads nowhere is
a warning, and each warning is an error.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import markdown_pages  # noqa: E402

project = "Attune"
root_doc = "docs/README"
extensions = ["myst_parser"]
exclude_patterns = [".*", "build*", "attune-data", "**/node_modules"]
myst_heading_anchors = 6
myst_heading_slug_func = "markdown_pages.slug"
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]  # examples leave things out with "…"

html_theme = "furo"
html_title = "Attune"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
templates_path = ["templates"]
html_sidebars = {"**": ["sidebar/brand.html", "sidebar/search.html", "sidebar/scroll-start.html",
                        "sidebar/navigation.html", "sidebar/programs.html", "sidebar/scroll-end.html"]}
html_context = {"has_cpp_reference": "ATTUNE_CPP_REFERENCE" in os.environ}

# Heading in the sidebar, and the folder whose pages are below it; a page belongs to the first that contains it.
SECTIONS = {"Start": "docs/start", "How to": "docs/how-to", "Reference": "docs/reference", "Background": "docs",
            "Repository": ""}

_LINK = re.compile(r"\]\(([^)#:\s]+)\)")
_NAMED_FENCE = re.compile(r"^( *)(`{3,})(\w+) +([^\s`{]+) *$", re.M)


def _files_of(folder):
    """The files that a link to a folder stands for: its README.md, else all in it."""
    readme = folder / "README.md"
    return [readme] if readme.exists() else sorted(path for path in folder.iterdir() if path.is_file())


def _linked_pages(root):
    """docs/README.md and the pages that it leads to, in the order in which they are linked."""
    found = [root / f"{root_doc}.md"]
    for page in found:  # grows
        for _, link in markdown_pages.links(page.read_text()):
            target = (page.parent / link.partition("#")[0]).resolve()
            found += [file for file in (_files_of(target) if target.is_dir() else [target])
                      if file.suffix == ".md" and file.exists() and file.is_relative_to(root) and file not in found]
    return [str(page.relative_to(root)) for page in found]


def _section_of(page):
    return next(section for section, folder in SECTIONS.items() if pathlib.PurePath(page).is_relative_to(folder))


def _navigation(pages):
    """A toctree for each section, as MyST."""
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {section}\n\n"
        + "".join(f"/{page.removesuffix('.md')}\n" for page in pages if _section_of(page) == section) + "```\n"
        for section in SECTIONS if any(_section_of(page) == section for page in pages))


def _choose_pages(app, config):
    config.include_patterns = _linked_pages(pathlib.Path(app.srcdir))


def _adapt_source(app, name, source):
    """Changes in Markdown that GitHub does not need."""
    folder = (pathlib.Path(app.srcdir) / name).parent

    def link_to_file(link):
        files = _files_of(folder / link[1]) if (folder / link[1]).is_dir() else []
        return f"]({os.path.relpath(files[0], folder)})" if files else link[0]

    text = _LINK.sub(link_to_file, source[0])
    text = _NAMED_FENCE.sub(r"\1\2{code-block} \3\n\1:caption: \4\n", text)
    if name == root_doc:
        text += _navigation(app.config.include_patterns[1:])
    source[0] = text


def setup(app):
    app.connect("config-inited", _choose_pages)
    app.connect("source-read", _adapt_source)
