"""Checks the links, the search and the files for programs of the site that scripts/docs builds."""

import html.parser
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPHINX = ROOT / ".deps/docs"
SKIPPED = 77  # the exit code that CTest knows


class Page(html.parser.HTMLParser):
    """Finds the addresses that a page names, the addresses that a browser loads, and the anchors of the page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif tag in ("img", "script") and attributes.get("src"):
            self.loaded.append(attributes["src"])
        elif tag == "link" and attributes.get("rel") == "stylesheet":
            self.loaded.append(attributes["href"])


def sphinx(source, site):
    return subprocess.run([sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "-c", ROOT / "docs/site", source,
                           site], env={**os.environ, "PYTHONPATH": str(SPHINX)}, capture_output=True, text=True)


class Site(unittest.TestCase):
    longMessage = False

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site = pathlib.Path(folder.name) / "site"
        made = subprocess.run([ROOT / "scripts/docs", cls.site], capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
        cls.pages = {path: Page(path.read_text()) for path in cls.site.rglob("*.html")
                     if not path.is_relative_to(cls.site / "cpp")}

    def test_every_address_leads_somewhere(self):
        faults = []
        for path, page in self.pages.items():
            for address in page.links + page.loaded:
                parts = urllib.parse.urlsplit(address)
                target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
                if parts.scheme or parts.netloc:
                    if address in page.loaded:
                        faults.append(f"{path.name} loads {address} from elsewhere")
                elif not target.is_file():
                    faults.append(f"{path.name}: {address}: no such file")
                elif parts.fragment and target in self.pages and urllib.parse.unquote(parts.fragment) not in self.pages[target].anchors:
                    faults.append(f"{path.name}: {address}: no such anchor")
        self.assertFalse(faults, "\n".join(faults))

    def test_every_user_page_is_there(self):
        for page in (ROOT / "docs").glob("[shr]*/*.md"):
            if page.parent.name in ("start", "how-to", "reference"):
                self.assertTrue((self.site / page.relative_to(ROOT)).with_suffix(".html").exists(), f"{page} is not linked")

    def test_search_knows_the_words_of_the_pages(self):
        index = (self.site / "searchindex.js").read_text()
        self.assertIn("docs/reference/sweep-file", index)
        self.assertIn("reduction_factor", index)

    def test_files_for_programs_are_there(self):
        for name in ("docs/openapi.yaml", "docs/schemas/sweep-v1.json"):
            self.assertEqual((self.site / name).read_bytes(), (ROOT / name).read_bytes())

    @unittest.skipUnless(shutil.which("doxygen"), "no doxygen")
    def test_the_reference_of_the_headers_is_linked(self):
        self.assertTrue((self.site / "cpp/index.html").exists())
        self.assertIn("../cpp/index.html", self.pages[self.site / "docs/README.html"].links)


class Errors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source, self.site = pathlib.Path(folder.name) / "source", pathlib.Path(folder.name) / "site"
        (self.source / "docs/start").mkdir(parents=True)

    def make(self, text):
        (self.source / "docs/README.md").write_text("# Pages\n\n[one](start/one.md)\n")
        (self.source / "docs/start/one.md").write_text(f"# One\n\n{text}\n")
        return sphinx(self.source, self.site)

    def test_dead_links_are_errors(self):
        made = self.make("[a](gone.md)\n\n[b](#gone)\n\n[c](../README.md#gone)\n\n[d](#one)")
        self.assertNotEqual(made.returncode, 0)
        for line in (3, 5, 7):
            self.assertIn(f"one.md:{line}: WARNING", made.stderr)
        self.assertNotIn("one.md:9", made.stderr)

    def test_named_files_have_their_name_above_them(self):
        made = self.make("```yaml sweep.yaml\na: 1\n```")
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertIn("sweep.yaml", (self.site / "docs/start/one.html").read_text())


if __name__ == "__main__":
    if not (SPHINX / "sphinx").exists():
        print(f"skipped: {SPHINX} does not exist; run scripts/setup docs")
        sys.exit(SKIPPED)
    unittest.main()
