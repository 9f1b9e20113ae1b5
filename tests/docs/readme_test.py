"""The README shows code that is compiled and a sweep file that runs: examples/line."""

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

    def test_links_lead_somewhere(self):
        for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
                self.assertTrue((page.parent / target).exists(), f"{page}: {target}")


if __name__ == "__main__":
    unittest.main()
