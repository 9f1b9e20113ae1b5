"""Tests scripts/plain_words.py, and checks the English of the repository with it."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import plain_words  # noqa: E402


class Repository(unittest.TestCase):
    longMessage = False

    def test_no_folder_has_too_many_hits(self):
        counts, unused = plain_words.count(plain_words.sources(), plain_words.exemptions())
        faults = plain_words.faults(counts) + [f"no hit needs the exemption {each}" for each in unused]
        self.assertFalse(faults, "\n".join(faults))


class Counting(unittest.TestCase):
    def count(self, name, text, exempt=()):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return plain_words.count([pathlib.Path(name)], exempt, pathlib.Path(folder))

    def hits(self, name, text):
        """(row, line number, words) of each hit."""
        counts, _ = self.count(name, text)
        return sorted((row, hit.line.number, hit.words) for row, each in counts.items() if row != "all" for hit in each.hits)

    def test_pages_count_without_code_and_headings(self):
        text = "# Besides\n\nA besides.\n\n```sh\nbesides\n```\nB likewise\n"
        self.assertEqual(self.hits("core/README.md", text), [("docs", 3, "besides"), ("docs", 8, "likewise")])

    def test_cpp_counts_comments_and_messages(self):
        text = ('// one besides\nint a;  // two besides\n/* three\n * besides */\nauto b = "four besides // as a message";\n'
                'auto c = R"(five\nit is besides a raw string)";\nauto d = "besides";\nauto e = "https://besides/";\n')
        self.assertEqual(self.hits("core/a.cc", text),
                         [("core", 1, "besides"), ("core", 2, "besides"), ("core", 4, "besides"),
                          ("messages", 5, "besides"), ("messages", 7, "besides")])

    def test_python_counts_comments_docstrings_and_messages(self):
        text = '"""One\n\nbesides."""\nx = 1  # two besides\nraise ValueError(f"there is {x} besides the message")\n'
        self.assertEqual(self.hits("clients/a.py", text),
                         [("clients", 3, "besides"), ("clients", 4, "besides"), ("messages", 5, "besides")])

    def test_tests_have_no_messages(self):
        self.assertEqual(self.hits("tests/a.py", 'x = "this is a message besides"\n'), [])

    def test_scripts_count_comments(self):
        self.assertEqual(self.hits("scripts/a", "#!/bin/bash\n# one besides\ntrue\n"), [("scripts", 2, "besides")])

    def test_elements_of_the_dashboard_are_messages(self):
        self.assertEqual(self.hits("web/a.tsx", "<p>There is a text besides</p>\n"), [("messages", 1, "besides")])

    def test_an_exempt_line_counts_its_words_only(self):
        exempt = [("a.md", "A besides"), ("a.md", "gone")]
        counts, unused = self.count("a.md", "A besides.\nB besides.\n", exempt)
        self.assertEqual((counts["docs"].words, len(counts["docs"].hits)), (4, 1))
        self.assertEqual(unused, {("a.md", "gone")})

    def test_every_pattern_finds_what_it_is_for(self):
        found = "It comes to two, whoever is to say so many of its own."
        words = {hit.words for hit in plain_words.hits_of(plain_words.Line("a", 1, found))}
        self.assertEqual(words, {"comes to", "whoever", "is to", "so many", "of its own"})


class Limits(unittest.TestCase):
    def faults(self, words, hits):
        count = plain_words.Count()
        count.words, count.hits = words, [None] * hits
        return plain_words.faults({"core": count})

    def test_a_large_folder_may_have_8_hits_in_10_000_words(self):
        self.assertEqual(self.faults(10_000, 8), [])
        self.assertIn("too many", self.faults(10_000, 9)[0])

    def test_a_small_folder_may_have_2_hits(self):
        self.assertEqual(self.faults(100, 2), [])
        self.assertEqual(self.faults(5000, 2), [])
        self.assertIn("too many", self.faults(100, 3)[0])
        self.assertEqual(self.faults(5001, 4), [])


if __name__ == "__main__":
    unittest.main()
