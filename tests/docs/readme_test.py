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
        tests = "tests/unit/trainable"
        sources = [f"{tests}/program/gang_docs.cc", f"{tests}/program/gang_checkpoints.cc",
                   f"{tests}/program/gang_trainer.cc", f"{tests}/driver/group_docs.cc",
                   "examples/line/line.cc", "examples/linear/linear.cc", "examples/tour/data.cc"]
        text = "".join((ROOT / source).read_text() for source in sources)
        blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs/reference/cpp-sdk.md").read_text(), re.S)
        self.assertTrue(blocks)
        for code in blocks:
            self.assertIn(code, text)

    def test_difference_is_that_of_the_example(self):
        page = (ROOT / "docs/how-to/migrating.md").read_text()
        difference = re.search(r"```diff\n(.*?)```", page, re.S).group(1).splitlines()
        for name, sign in (("single.cc", "-"), ("function_api.cc", "+")):
            source = (ROOT / "examples/function_api" / name).read_text()
            side = "\n".join(line[1:] for line in difference if line[:1] in (" ", sign))
            self.assertIn(side, source)

    def test_links_lead_somewhere(self):
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
            prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
                self.assertTrue((page.parent / target).exists(), f"{page}: {target}")


if __name__ == "__main__":
    unittest.main()
