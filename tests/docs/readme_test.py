"""The README and the pages for C++ contain only code that is compiled and sweep files that run."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

sys.path.insert(0, str(ROOT / "scripts"))
import markdown_pages as markdown  # noqa: E402
import python_torch  # noqa: E402


def read(file):
    return (ROOT / file).read_text()


def block(page, language, name=""):
    """Returns the code of the only block of a page with this language and file name."""
    [code] = markdown.code(read(page), language, name)
    return code


def without_command(sweep):
    return [line for line in sweep.splitlines() if not line.startswith("command:")]


class Readme(unittest.TestCase):
    def test_program_in_cpp_is_part_of_the_example(self):
        self.assertIn(block("README.md", "cpp"), read("examples/function_api/function_api.cc"))

    def test_sweep_matches_the_example(self):
        self.assertEqual(without_command(block("README.md", "yaml", "sweep.yaml")),
                         without_command(read("examples/line/sweep.yaml")))

    def test_program_in_python_matches_the_page(self):
        self.assertEqual(block("README.md", "python", "train.py"),
                         block("docs/start/first-sweep-python.md", "python", "smallest.py"))

    def test_program_in_python_trains(self):
        environment = python_torch.environment()
        environment["PYTHONPATH"] = f"{ROOT / 'clients/python'}:{environment.get('PYTHONPATH', '')}"
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "train.py")
            script.write_text(block("README.md", "python", "train.py"))
            trained = subprocess.run([sys.executable, script], cwd=folder, env=environment, capture_output=True,
                                     text=True)
        if "No module named 'torch'" in trained.stderr:
            self.skipTest(f"no torch for {sys.executable}: run scripts/setup")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        steps = re.findall(r"^step (\d+)  loss=\d", trained.stdout, re.M)
        self.assertEqual(steps, [str(step) for step in range(1, 28)])


class FirstSweepInCpp(unittest.TestCase):
    PAGE = "docs/start/first-sweep-cpp.md"

    def test_program_matches_the_example(self):
        self.assertEqual(block(self.PAGE, "cpp"), read("examples/line/line.cc"))

    def test_sweep_matches_the_example(self):
        self.assertEqual(without_command(block(self.PAGE, "yaml", "sweep.yaml")),
                         without_command(read("examples/line/sweep.yaml")))

    def test_project_file_has_the_lines_of_the_example(self):
        lines = [line.strip() for line in read("examples/line/CMakeLists.txt").splitlines()]
        places = [lines.index(line) for line in block(self.PAGE, "cmake", "CMakeLists.txt").splitlines()]
        self.assertEqual(places, sorted(places))


class Pages(unittest.TestCase):
    def test_pages_about_the_sdk_quote_what_the_tests_run(self):
        tests = "tests/unit/trainable"
        sources = [f"{tests}/program/gang_docs.cc", f"{tests}/program/gang_checkpoints.cc",
                   f"{tests}/program/gang_trainer.cc", f"{tests}/driver/group_docs.cc",
                   "examples/line/line.cc", "examples/linear/linear.cc", "examples/tour/data.cc"]
        text = "".join((ROOT / source).read_text() for source in sources)
        for page in ("docs/reference/cpp-sdk.md", "docs/how-to/checkpoints.md"):
            blocks = markdown.code(read(page), "cpp")
            self.assertTrue(blocks, page)
            for code in blocks:
                self.assertIn(code, text)

    def test_difference_matches_the_example(self):
        difference = block("docs/how-to/from-determined.md", "diff").splitlines()
        for name, sign in (("single.cc", "-"), ("function_api.cc", "+")):
            source = (ROOT / "examples/function_api" / name).read_text()
            side = "\n".join(line[1:] for line in difference if line[:1] in (" ", sign))
            self.assertIn(side, source)


if __name__ == "__main__":
    unittest.main()
