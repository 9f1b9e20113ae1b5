"""The man pages and completions in a package."""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference/cli.md"
ATTUNE = pathlib.Path(os.environ.get("ATTUNE_BUILD_DIR", "build")).resolve() / "attune"


def write_documents(share):
    subprocess.run([sys.executable, ROOT / "packaging/documents.py", REFERENCE, share, "zsh/site-functions", ATTUNE],
                   check=True)


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.share = pathlib.Path(folder.name)
        write_documents(cls.share)
        cls.files = files_of(cls.share)
        cls.tree = json.loads(subprocess.check_output([ATTUNE, "__describe"]))

    def page(self, name):
        return gzip.decompress(self.files[f"man/man1/{name}.1.gz"]).decode()

    def test_each_command_has_a_page_with_its_options(self):
        self.assertEqual(len([name for name in self.files if name.startswith("man/")]), len(self.tree["verbs"]) + 1)
        for verb in self.tree["verbs"]:
            page = self.page(f"attune-{verb['name']}").replace("\\-", "-")
            for each in [verb, *verb["verbs"]]:
                for option in each["options"] if each is not verb or not verb["verbs"] else []:
                    for name in option["names"]:
                        self.assertIn(f"\\fB{name}\\fR", page, verb["name"])

    def test_pages_contain_the_text_of_the_reference(self):
        sections = re.findall(r"(?m)^### `attune ([a-z]+).*\n\n([A-Z]\w+(?: \w+)+)", REFERENCE.read_text())
        self.assertIn("run", dict(sections))
        for command, first_words in sections:
            self.assertIn(first_words, self.page(f"attune-{command}"))
        self.assertIn(".SH EXIT STATUS", self.page("attune"))

    def test_pages_contain_no_markdown(self):
        for name in self.files:
            if name.startswith("man/"):
                page = self.page(pathlib.Path(name).name.removesuffix(".1.gz"))
                for line in re.sub(r"(?ms)^\.EX$.*?^\.EE$", "", page).split("\n"):  # skips the examples
                    self.assertNotRegex(line, r"`|^#|^\||\]\(|\| ---", name)

    def test_shells_find_their_scripts(self):
        for name in ("bash-completion/completions/attune", "zsh/site-functions/_attune",
                     "fish/vendor_completions.d/attune.fish"):
            self.assertIn(b"__complete", self.files[name])

    def test_equal_input_gives_equal_files(self):
        with tempfile.TemporaryDirectory() as again:
            write_documents(again)
            self.assertEqual(files_of(pathlib.Path(again)), self.files)

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "no man")
    def test_man_accepts_the_pages(self):
        self.check("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z")

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
    def test_mandoc_accepts_the_pages(self):
        self.check("mandoc", "-T", "lint", "-W", "warning")

    def check(self, *command):
        for name in self.files:
            if name.startswith("man/"):
                done = subprocess.run([*command, self.share / name], capture_output=True, text=True,
                                      env=dict(os.environ, LC_ALL="C.UTF-8"))
                said = done.stderr + (done.stdout if command[0] == "mandoc" else "")
                self.assertEqual((done.returncode, said), (0, ""), name)


if __name__ == "__main__":
    unittest.main()
