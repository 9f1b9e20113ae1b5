"""Checks pages: their length, the length of their lines, and the targets of their links."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import markdown_pages as markdown  # noqa: E402

WORDS_MAX = 36_500  # in all user pages together
COLUMNS_MAX = 100


class Pages(unittest.TestCase):
    longMessage = False

    def test_user_pages_are_short(self):
        counts = {str(page.relative_to(ROOT)): markdown.words(page.read_text()) for page in markdown.user_pages()}
        self.assertTrue(counts)
        longest = sorted(counts.items(), key=lambda count: -count[1])[:5]
        total = sum(counts.values())
        self.assertLessEqual(total, WORDS_MAX, f"{total} words are more than {WORDS_MAX}; the longest pages: {longest}")

    def test_prose_is_wrapped(self):
        faults = [f"{page.relative_to(ROOT)}:{line}: {length} columns"
                  for page in markdown.user_pages() for line, length in markdown.long_lines(page.read_text(), COLUMNS_MAX)]
        self.assertFalse(faults, f"wrap these {len(faults)} lines at {COLUMNS_MAX} columns:\n" + "\n".join(faults))

    def test_links_lead_somewhere(self):
        pages = markdown.tracked("*.md")
        self.assertTrue(pages)
        faults = [fault for page in pages for fault in markdown.dead_links(page)]
        self.assertFalse(faults, "dead links:\n" + "\n".join(faults))


class Markdown(unittest.TestCase):
    PAGE = ("# A `page`: how & why\n\n"
            "Text with `](code.md)`.\n\n"
            "Not run: needs a cluster\nof two hosts.\n\n"
            "```yaml sweep.yaml\na: 1\n```\n"
            "- item\n\n  ~~~sh\n  true\n    false\n  ~~~\n\n"
            "<!-- keys: begin -->\nmany generated words\n<!-- keys: end -->\n"
            "## Same\n## Same\n<a id=\"mine\"></a>\n")

    def test_blocks_have_names_and_reasons(self):
        named, plain = markdown.blocks(self.PAGE)
        self.assertEqual(named, (8, "yaml", "sweep.yaml", "a: 1\n", "needs a cluster of two hosts."))
        self.assertEqual(plain, (13, "sh", "", "true\n  false\n", None))

    def test_code_comments_and_generated_text_have_no_words(self):
        self.assertEqual(markdown.words(self.PAGE), len("# A `page`: how & why Text with `](code.md)`. Not run: needs a "
                                                        "cluster of two hosts. - item ## Same ## Same <a id=/>".split()))

    def test_anchors_are_those_of_github(self):
        self.assertEqual(markdown.anchors(self.PAGE), {"a-page-how--why", "same", "same-1", "mine"})

    def test_dead_links_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("# Here\n[a](#here) [b](#there) [c](gone.md)\n[d](page.md#here) [e](other:x)\n\n[f]: none.md\n")
            faults = [fault.removeprefix(f"{page}:").rsplit(": ", 1)[0] for fault in markdown.dead_links(page)]
        self.assertEqual(faults, ["2: #there", "2: gone.md", "5: none.md"])

    def test_tables_and_targets_of_links_may_be_long(self):
        long = "x" * 20
        text = f"| {long} |\n[y]({long})\n{long}\n```\n{long}\n```\n"
        self.assertEqual(list(markdown.long_lines(text, 10)), [(3, 20)])


if __name__ == "__main__":
    unittest.main()
