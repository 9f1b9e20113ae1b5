"""scripts/setup and scripts/build after an interruption, after a failure, and with two runs at the same time.

The tests replace apt-get, pip, npm, cmake and ninja with fake programs.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ["scripts/setup", "scripts/build", "scripts/common.sh", "scripts/progress.py", "web/package-lock.json",
         "CMakePresets.json", "scripts/docs_requirements.txt"]
TIMEOUT_S = 5  # below the 10 s between two lines of progress: no process may keep the output open for the next line

# Each fake program records its call. If $PAUSE is its name, it writes to a named pipe and waits for another. If $FAIL
# is its name, it prints $REASON and fails.
FAKE_PROGRAM = r"""#!/bin/bash
name=${0##*/}
[[ $name != python3 || $1 == -m ]] || exec "$PYTHON" "$@"
[[ $name != cmake || $1 != -DNPM* ]] || name=npm
[[ $name != apt-get ]] || name=$name-$(printf '%s\n' "$@" | grep -xE 'update|install')
[[ $* == *"pip --version"* ]] && exit
echo "$name" >>"$STATE/calls"
if [[ ${PAUSE:-} == "$name" ]]; then
  [[ $name != apt-get-install ]] || touch "$STATE/dpkg-interrupted"
  echo >"$STATE/paused"
  read -r <"$STATE/continue"
  rm -f "$STATE/dpkg-interrupted"
fi
if [[ ${FAIL:-} == "$name" ]]; then
  echo "$REASON"
  exit 100
fi
case $name in
  sudo) exec "$@" ;;
  node) echo v22.0.0 ;;
  dpkg-query) [[ ! -e $STATE/packages ]] || printf 'installed %s\n' "${@:3}" ;;
  dpkg)
    [[ $1 != --configure ]] || rm -f "$STATE/dpkg-interrupted"
    [[ ! -e $STATE/dpkg-interrupted ]] || echo half-installed
    ;;
  apt-get-install)
    [[ ! -e $STATE/dpkg-interrupted ]] || exit 100
    touch "$STATE/packages"
    ;;
  python3)
    while [[ $1 != --target ]]; do shift; done
    for wheel in $(for word in "${@:3}"; do [[ -f $word ]] && grep -oE '^\w+==\S+' "$word" || echo "$word"; done); do
      folder=${wheel%%==*}
      mkdir -p "$2/${folder//-/_}-${wheel##*==}.dist-info"
    done
    ;;
  npm)
    mkdir -p web/node_modules
    sha256sum <web/package-lock.json | cut -d ' ' -f 1 >web/node_modules/.attune-installed
    ;;
  cmake) touch build/build.ninja ;;
esac
"""


class Scripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes inherit SIG_IGN

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.clone, self.state = pathlib.Path(folder.name, "clone"), pathlib.Path(folder.name, "state")
        for name in FILES:
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.clone / name)
        (self.state / "bin").mkdir(parents=True)
        for name in ["apt-get", "dpkg", "dpkg-query", "sudo", "python3", "node", "npm", "cmake", "ninja"]:
            stand_in = self.state / "bin" / name
            stand_in.write_text(FAKE_PROGRAM)
            stand_in.chmod(0o755)
        for name in ["paused", "continue"]:
            os.mkfifo(self.state / name)

    def start(self, script, *words, **variables):
        process = subprocess.Popen(
            [self.clone / "scripts" / script, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
            env={"PATH": f"{self.state}/bin:/usr/bin:/bin", "HOME": str(self.state), "STATE": str(self.state),
                 "PYTHON": sys.executable, **variables})
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def run_script(self, script, *words, **variables):
        process = self.start(script, *words, **variables)
        output, errors = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, output, errors

    def calls(self, name):
        return (self.state / "calls").read_text().split().count(name)

    def interrupt(self, script, stage):
        """Runs the script and sends Ctrl-C when it has reached the stage."""
        process = self.start(script, PAUSE=stage)
        (self.state / "paused").read_text()
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130, errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("interrupted", errors)

    def test_setup_continues_after_an_interruption(self):
        for stage in ["apt-get-update", "apt-get-install", "python3", "npm"]:
            self.interrupt("setup", stage)
            self.assertEqual([path.name for path in self.clone.glob(".deps/*.partial")], [], stage)
            self.assertFalse((self.clone / ".deps/downloads").exists(), stage)
        status, _, errors = self.run_script("setup")
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(self.run_script("setup"), (0, "", ""))

    def test_setup_gives_the_next_step_after_a_failure(self):
        for stage in ["apt-get-update", "apt-get-install", "python3", "npm"]:
            for reason, remedy in [("Temporary failure resolving 'deb.debian.org'", "the network"),
                                   ("[Errno 28] No space left on device", "free 3 GB"),
                                   ("E: You don't have enough free space in /var/cache/apt/archives/.", "free 3 GB")]:
                status, _, errors = self.run_script("setup", FAIL=stage, REASON=reason)
                self.assertEqual(status, 1)
                self.assertIn(remedy, errors.splitlines()[-1])
            self.assertEqual(self.run_script("setup", FAIL="none")[0], 0)
            shutil.rmtree(self.clone / ".deps")
            shutil.rmtree(self.clone / "web/node_modules")
            (self.state / "packages").unlink()

    def test_unknown_packages_are_named(self):
        status, _, errors = self.run_script("setup", FAIL="apt-get-install", REASON="E: Unable to locate package ninja-build")
        self.assertEqual(status, 1)
        self.assertIn("lacks: ninja-build", errors)

    def test_the_site_of_the_documentation_needs_only_its_wheels(self):
        for _ in range(2):  # the second finds all of them
            status, _, errors = self.run_script("setup", "docs")
            self.assertEqual((status, errors), (0, ""))
        self.assertEqual((self.state / "calls").read_text(), "python3\n")

    def test_two_setups_install_once(self):
        first = self.start("setup", PAUSE="python3")
        (self.state / "paused").read_text()
        second = self.start("setup")
        self.assertIn("waiting", second.stdout.readline())
        (self.state / "continue").write_text("\n")
        for each in [first, second]:
            _, errors = each.communicate(timeout=TIMEOUT_S)
            self.assertEqual((each.returncode, errors), (0, ""))
        self.assertEqual(self.calls("python3"), 1)

    def test_folders_that_cannot_be_written_are_named(self):
        for script, folder in [("setup", ".deps"), ("build", "build")]:
            (self.clone / folder).write_text("a file in the way")
            status, _, errors = self.run_script(script)
            self.assertEqual(status, 1)
            self.assertIn(f"write to {self.clone / folder}", errors)

    def test_files_that_npm_could_not_write_are_an_error(self):
        shutil.copy(ROOT / "web/npm_ci.cmake", self.clone / "web")
        npm = self.state / "bin/npm"
        command = [shutil.which("cmake"), f"-DNPM={npm}", "-P", self.clone / "web/npm_ci.cmake"]
        script = "#!/bin/sh\nmkdir -p node_modules\necho '{}'\n"
        npm.write_text(script.format("npm warn tar TAR_ENTRY_ERROR ENOSPC: no space left on device, write"))
        self.assertNotEqual(subprocess.run(command, capture_output=True).returncode, 0)
        npm.write_text(script.format("added 62 packages in 2s"))
        self.assertEqual(subprocess.run(command, capture_output=True).returncode, 0)

    def test_build_continues_after_an_interruption(self):
        self.interrupt("build", "cmake")
        self.interrupt("build", "ninja")
        self.assertEqual(self.calls("cmake"), 2)
        status, _, errors = self.run_script("build")
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(self.calls("cmake"), 2)

    def test_builds_of_one_folder_take_turns(self):
        first = self.start("build", PAUSE="ninja")
        (self.state / "paused").read_text()
        second = self.start("build")
        self.assertIn("waiting", second.stdout.readline())
        self.assertEqual(self.calls("ninja"), 1)
        (self.state / "continue").write_text("\n")
        for each in [first, second]:
            _, errors = each.communicate(timeout=TIMEOUT_S)
            self.assertEqual((each.returncode, errors), (0, ""))
        self.assertEqual(self.calls("ninja"), 2)


if __name__ == "__main__":
    unittest.main()
