"""The reference that doxygen generates from the SDK's headers is complete and gives no warning."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = pathlib.Path("trainable/include/attune")
DOXYGEN = os.environ.get("ATTUNE_DOXYGEN", "doxygen")


def filtered_for_doxygen(header):
    return subprocess.run(["awk", "-f", ROOT / "docs/doxygen/comments.awk", header], check=True,
                          capture_output=True, text=True).stdout


class Reference(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pages = pathlib.Path(folder.name) / "pages"
        self.pages.mkdir()
        self.copy = pathlib.Path(folder.name) / "copy"
        for part in (HEADERS, "docs/doxygen", "docs/reference/cpp-sdk.md"):
            source, target = ROOT / part, self.copy / part
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)

    def make(self, root):
        return subprocess.run([DOXYGEN, "docs/doxygen/Doxyfile"], cwd=root, capture_output=True,
                              text=True, env={**os.environ, "ATTUNE_REFERENCE_DIR": self.pages})

    def test_every_public_symbol_has_a_valid_comment(self):
        made = self.make(ROOT)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        main = (self.pages / "html/index.html").read_text()
        self.assertIn("PrepareDataLoader", main)
        context = (self.pages / "html/classattune_1_1Context.html").read_text()
        before = (ROOT / HEADERS / "context.h").read_text().partition("bool Report(")[0]
        comment = before[before.rindex("\n\n"):]
        self.assertIn(comment.partition("// ")[2].partition(". ")[0], context)

    def test_a_missing_comment_is_an_error_with_the_name(self):
        for added in ("void Undocumented();", "struct Bare {\n  int undocumented = 0;\n};",
                      "// A class.\nclass Half {\n public:\n  void Undocumented() const;\n};"):
            header = self.copy / HEADERS / "error.h"
            header.write_text((ROOT / HEADERS / "error.h").read_text().replace(
                "}  // namespace attune", added + "\n\n}  // namespace attune"))
            made = self.make(self.copy)
            self.assertNotEqual(made.returncode, 0, added)
            self.assertIn("ndocumented", made.stderr)
            self.assertIn("error.h", made.stderr)

    def test_a_warning_of_doxygen_is_an_error(self):
        page = self.copy / "docs/reference/cpp-sdk.md"
        page.write_text(page.read_text() + "\nSee @ref NoSuchThing.\n")
        made = self.make(self.copy)
        self.assertNotEqual(made.returncode, 0)
        self.assertIn("NoSuchThing", made.stderr)


class Comments(unittest.TestCase):
    def filtered(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".h") as header:
            header.write(text)
            header.flush()
            return filtered_for_doxygen(header.name)

    def test_lines_keep_their_numbers(self):
        for header in (ROOT / HEADERS).glob("*.h"):
            self.assertEqual(filtered_for_doxygen(header).count("\n"), header.read_text().count("\n"))

    def test_a_comment_documents_its_whole_paragraph(self):
        self.assertEqual(
            self.filtered("// Of both,\n// equally.\nint A();\nint B();\n\nint C();\n"),
            "/// Of both,\n/// equally.\nint A();\n/** Of both, equally. */ int B();\n\nint C();\n")

    def test_a_comment_after_a_declaration_may_continue_below(self):
        self.assertEqual(self.filtered("int a = 0;  // of this\n            // and that\n"),
                         "int a = 0;  ///< of this\n            ///< and that\n")

    def test_comments_in_bodies_are_unchanged(self):
        body = "  // Why.\n  return 1;  // because\n"
        self.assertEqual(self.filtered("// A.\nint A() {\n" + body + "}\n"),
                         "/// A.\nint A() {\n" + body + "}\n")

    def test_bases_of_a_class_may_be_on_a_separate_line(self):
        inside = " public:\n  // Of A.\n  int A();\n};\n"
        self.assertEqual(self.filtered("// Of C.\nclass C\n    : public B {\n" + inside),
                         "/// Of C.\nclass C\n    : public B {\n" + inside.replace("//", "///"))

    def test_indented_text_is_code(self):
        self.assertEqual(self.filtered("// As in\n//\n//   Use();\nint A();\n"),
                         "/// As in\n///\n///       Use();\nint A();\n")


if __name__ == "__main__":
    unittest.main()
