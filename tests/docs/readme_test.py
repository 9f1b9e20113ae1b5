"""The README and the page of the SDK show code that is compiled and sweep files that run."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def block(language):
    return re.search(rf"```{language}\n(.*?)```", README, re.S).group(1)


class Readme(unittest.TestCase):
    def test_program_is_the_example(self):
        self.assertEqual(block("cpp"), (ROOT / "examples/line/line.cc").read_text())

    def test_sweep_is_the_example(self):
        def without_command(text):
            return [line for line in text.splitlines() if not line.startswith("command:")]
        self.assertEqual(without_command(block("yaml")),
                         without_command((ROOT / "examples/line/sweep.yaml").read_text()))

    def test_page_of_the_sdk_quotes_what_the_tests_run(self):
        page = (ROOT / "docs/trainable.md").read_text()
        source = "".join((ROOT / "tests/unit/trainable" / name).read_text()
                         for name in ("gang_docs.cc", "gang_checkpoints.cc"))
        blocks = re.findall(r"```cpp\n(.*?)```", page, re.S)
        self.assertTrue(blocks)
        for code in blocks:
            self.assertIn(code, source)

    def test_links_lead_somewhere(self):
        for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
                self.assertTrue((page.parent / target).exists(), f"{page}: {target}")


if __name__ == "__main__":
    unittest.main()
