"""Completions in bash, zsh and fish with the scripts of `attune completion`."""

import json
import os
import shutil
import subprocess
import unittest

from support import ATTUNE, EndToEnd

# Calls the completion function like bash: $1 is the line up to the cursor, the others are its words.
BASH = """
source <("$ATTUNE" completion bash)
COMP_LINE=$1 COMP_POINT=${#1}
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_attune
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(EndToEnd):
    def setUp(self):
        super().setUp()
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "attune").symlink_to(ATTUNE)
        self.environment.update(ATTUNE=ATTUNE, PATH=f"{bin_folder}:{os.environ['PATH']}", HOME=str(self.folder))

    def run_shell(self, *command):
        done = subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return sorted(line for line in done.stdout.split("\n") if line)

    def bash(self, line, *words):
        return self.run_shell("bash", "--norc", "-c", BASH, "bash", line, *(words or line.split(" ")))

    def script(self, shell):
        code, script, err = self.attune("completion", shell)
        self.assertEqual(code, 0, err)
        return self.write(script, f"script.{shell}")

    def test_bash_completes_commands_and_options(self):
        self.assertEqual(self.bash("attune sw"), ["sweep"])
        self.assertEqual(self.bash("attune sweep cr"), ["create"])
        self.assertEqual(self.bash("attune serve --with"), ["--with-executor"])
        self.assertIn("doctor", self.bash("attune "))

    def test_bash_completes_values_also_after_an_equals_sign(self):
        self.assertEqual(self.bash("attune version -o "), ["json", "table"])
        # Bash replaces only the last of these words.
        self.assertEqual(self.bash("attune version --output=", "attune", "version", "--output", "="), ["json", "table"])
        self.assertEqual(self.bash("attune version --output=j", "attune", "version", "--output", "=", "j"), ["json"])

    def test_bash_joins_the_parts_of_an_address(self):
        words = ["attune", "version", "--server", "http", ":", "//box", ":", "7070", "--no-c"]
        self.assertEqual(self.bash("attune version --server http://box:7070 --no-c", *words), ["--no-color"])

    def test_bash_ignores_text_after_the_cursor(self):
        line = "attune sw list"
        script = BASH.replace("COMP_POINT=${#1}", "COMP_POINT=9").replace("COMP_CWORD=$(($# - 1))", "COMP_CWORD=1")
        self.assertEqual(self.run_shell("bash", "--norc", "-c", script, "bash", line, *line.split(" ")), ["sweep"])

    def test_bash_completes_files_and_folders(self):
        self.write("", "one sweep.yaml")
        (self.folder / "one-folder").mkdir()
        self.assertEqual(self.bash("attune run one"), ["one sweep.yaml", "one-folder"])
        self.assertEqual(self.bash("attune serve --data-dir one"), ["one-folder"])
        words = ["attune", "serve", "--tls-key", "=", "one"]
        self.assertEqual(self.bash("attune serve --tls-key=one", *words), ["one sweep.yaml", "one-folder"])

    def test_bash_completes_sweeps(self):
        self.start("serve", "--data-dir", "attune-data", "--port", 0, "--rpc-port", 0).await_stderr(r"http://")
        file = self.write({"apiVersion": "attune/v1", "kind": "Sweep", "metric": {"name": "loss", "mode": "min"},
                           "parameters": {"x": {"min": 0.0, "max": 1.0}}, "searcher": {"name": "random"},
                           "scheduler": {"name": "fifo", "max": 1}})
        self.assertEqual(self.attune("sweep", "create", file)[0], 0)
        self.assertEqual(self.bash("attune sweep get "), ["s1"])

    def test_zsh_can_read_its_script(self):
        script = self.script("zsh")
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        self.run_shell("zsh", "-n", script)

    def test_fish_gives_the_same_completions(self):
        script = self.script("fish")
        if not shutil.which("fish"):
            self.skipTest("no fish")
        self.run_shell("fish", "--no-execute", script)

        def fish(line):
            lines = self.run_shell("fish", "--no-config", "-c", f"source {script}; complete -C {json.dumps(line)}")
            return [each.split("\t")[0] for each in lines]

        self.write("", "one.yaml")
        (self.folder / "one-folder").mkdir()
        self.assertEqual(fish("attune sweep cr"), ["create"])
        self.assertEqual(fish("attune version -o "), ["json", "table"])
        self.assertEqual(fish("attune version --output=j"), ["--output=json"])
        self.assertEqual(fish("attune run one.y"), ["one.yaml"])
        self.assertEqual(fish("attune serve --tls-key=one.y"), ["--tls-key=one.yaml"])
        self.assertEqual(fish("attune serve --data-dir one"), ["one-folder/"])


if __name__ == "__main__":
    unittest.main()
