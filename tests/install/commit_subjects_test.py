"""scripts/commit_subjects.py: which subjects it rejects, and of which commits."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import commit_subjects  # noqa: E402

NOBODY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
          "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


class Subjects(unittest.TestCase):
    def test_imperatives_after_an_area_are_right(self):
        for subject in ("docs: explain retries", "tests/sim: feed the log", "cli, rest: process `a: b`", "web: pass tags on"):
            self.assertIsNone(commit_subjects.fault_of(subject), subject)

    def test_other_forms_are_faults(self):
        for subject in ("Explain retries", "docs explain retries", "docs: explained retries", "docs: explaining retries",
                        "docs: explains retries", "docs: Explain retries", "docs:explain", "docs: "):
            self.assertIsNotNone(commit_subjects.fault_of(subject), subject)

    def test_a_subject_has_60_characters_at_most(self):
        subject = "docs: explain ".ljust(60, "x")
        self.assertIsNone(commit_subjects.fault_of(subject))
        self.assertIn("61 characters", commit_subjects.fault_of(subject + "x"))


class Commits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.git("init", "--quiet", "--initial-branch", "main")
        self.first = self.commit("Old and long, before anybody had written down what a subject looks like")

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.folder, env={**os.environ, **NOBODY}, check=True, capture_output=True,
                              text=True).stdout.strip()

    def commit(self, subject):
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def check(self, commit):
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as faults:
            code = commit_subjects.main(commit, self.folder)
        return code, said.getvalue(), faults.getvalue().splitlines()

    def test_commits_after_the_first_are_checked(self):
        self.commit("docs: explain")
        self.assertEqual(self.check(self.first), (0, "", []))
        self.commit("Explained")
        code, _, [fault] = self.check(self.first)
        self.assertEqual(code, 1)
        self.assertIn("Explained", fault)

    def test_merges_are_exempt(self):
        self.git("switch", "--quiet", "--create", "other")
        self.commit("docs: explain")
        self.git("switch", "--quiet", "main")
        self.commit("docs: shorten")
        self.git("merge", "--quiet", "--message", "Merge branch 'other'", "other")
        self.assertEqual(self.check(self.first), (0, "", []))

    def test_a_history_that_ends_too_early_is_left_out(self):
        self.commit("Wrong")
        for commit in ("0" * 40, self.git("commit-tree", "-m", "apart", "HEAD^{tree}")):
            code, said, faults = self.check(commit)
            self.assertEqual((code, faults), (0, []))
            self.assertIn("left out", said)


if __name__ == "__main__":
    unittest.main()
