"""Runs the examples of pages.

    examples_test.py PAGE...     prints one line for each fault; exit code 1 if there is one, 77 without torch
    examples_test.py             tests the runner itself
"""

import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

import examples


def fenced(info, code, before=""):
    return f"{before}\n\n```{info}\n{code}\n```\n"


class Examples(unittest.TestCase):
    def faults(self, text):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(text)
            return examples.faults_of(page)

    def assert_fault(self, text, pattern):
        faults = self.faults(text)
        self.assertEqual(len(faults), 1, faults)
        self.assertRegex(faults[0], pattern)

    def test_unknown_languages_are_faults(self):
        self.assert_fault(fenced("haskell", "main"), r"page\.md:3: unknown language 'haskell'")
        self.assert_fault(fenced("", "main"), "unknown language ''")

    def test_languages_of_files_need_a_name(self):
        self.assertEqual(self.faults(fenced("cmake CMakeLists.txt", "a")), [])
        self.assert_fault(fenced("cmake", "a"), "file's name")

    def test_text_console_and_diff_do_not_run(self):
        self.assertEqual(self.faults(fenced("text", "exit 1") + fenced("console", "$ exit 1") + fenced("diff", "-a")), [])

    def test_a_reason_exempts_a_block_if_it_is_a_sentence(self):
        self.assertEqual(self.faults(fenced("sh", "false", "Not run: needs a Slurm cluster.")), [])
        self.assert_fault(fenced("sh", "false", "Not run: slow"), "sentence")
        self.assert_fault(fenced("sh", "false", "Not run:"), "sentence")

    def test_json_must_parse(self):
        self.assertEqual(self.faults(fenced("json", "[1]")), [])
        self.assert_fault(fenced("json", "{a: 1}"), "not JSON")

    def test_python_must_compile(self):
        self.assertEqual(self.faults(fenced("python", "import nothing_of_this_name")), [])
        self.assert_fault(fenced("python", "def"), "compile: ")
        self.assert_fault(fenced("python train.py", "def"), "compile: ")

    def test_cpp_must_be_a_quote(self):
        line = (examples.ROOT / "examples/line/line.cc").read_text().split("\n")[0]
        self.assertEqual(self.faults(fenced("cpp", line)), [])
        self.assert_fault(fenced("cpp", f" {line}"), "quote")

    def test_fragments_must_be_valid(self):
        self.assertEqual(self.faults(fenced("yaml", "stop: {max_trials: 3}\ncommand: [./train]")), [])
        self.assertEqual(self.faults(fenced("yaml", "parameters: {lr: {min: 1e-4, max: 2e-4}}")), [])
        self.assertEqual(self.faults(fenced("yaml", "metrics: [{name: loss, mode: min}, {name: time, mode: min}]")), [])
        self.assert_fault(fenced("yaml", "stop: {max_trial: 3}"), "max_trial")
        self.assert_fault(fenced("yaml", "- a"), r"\bpart\b")
        self.assert_fault(fenced("yaml", "a: ["), "not YAML")

    def test_commands_share_a_shell_and_files_are_written_in_order(self):
        self.assertEqual(self.faults(
            fenced("text a/file", "one") + fenced("sh", "grep one a/file; here=1") + fenced("text a/file", "two") +
            fenced("sh", '[[ $here == 1 ]]; grep two a/file; attune version; python3 -c "import attune"')), [])
        self.assert_fault(fenced("sh", "echo said\nfalse\ntrue"), r"exit code 1; (.|\n)*said\n(.|\n)*page\.md:3: exit code 1")

    def test_queries_run_on_the_data_of_a_sweep(self):
        self.assertEqual(self.faults(fenced("sql", "SELECT best FROM trials;")), [])
        self.assert_fault(fenced("sql", "SELECT no_such_column FROM trials;"), "no_such_column")

    def test_no_process_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            note = pathlib.Path(folder) / "pid"
            self.assertEqual(self.faults(fenced("sh", f"(setsid sleep 1000 & echo $! >{note}) & wait\nsetsid sleep 1000 &")), [])
            with self.assertRaises(ProcessLookupError):
                os.kill(int(note.read_text()), 0)

    def test_a_page_that_takes_too_long_is_ended(self):
        with mock.patch.object(examples, "PATIENCE_S", 0.5):
            start = time.monotonic()
            self.assert_fault(fenced("sh", "sleep 1000"), r"none within 0\.5 s")
        self.assertLess(time.monotonic() - start, 20)


SKIPPED = 77  # the exit code that CTest knows


def main(pages):
    faults = []
    for page in pages:
        try:
            faults += examples.faults_of(pathlib.Path(page).resolve())
        except examples.NoTorch as reason:
            print(f"skipped: {reason}")
            return SKIPPED
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].endswith(".md"):
        sys.exit(main(sys.argv[1:]))
    unittest.main()
