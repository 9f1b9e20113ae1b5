"""`attune doctor` on the real host, with faults that a test can create."""

import json
import resource
import socket
import subprocess
import unittest

from support import ATTUNE, EndToEnd

HTTP_PORT = 7070


class Doctor(EndToEnd):
    def checks(self, *args, **options):
        """Returns the exit code and the checks by name."""
        done = subprocess.run([ATTUNE, "doctor", "-o", "json", *map(str, args)], capture_output=True, text=True,
                              env=self.environment, cwd=self.folder, **options)
        self.assertTrue(done.stdout, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["ready"], done.returncode == 0)
        self.assertEqual(report["ready"], all(check["status"] != "missing" for check in report["checks"]))
        for check in report["checks"]:
            self.assertEqual(check["status"] == "ok", check["remedy"] is None, check)
        return done.returncode, {check["name"]: check for check in report["checks"]}

    def test_checks_this_host_and_leaves_no_files(self):
        before = sorted(self.folder.rglob("*"))
        code, checks = self.checks("--data-dir", self.data)
        self.assertIn(code, (0, 1))
        self.assertEqual(checks["attune"]["status"], "ok")
        self.assertEqual(checks["kernel"]["status"], "ok")
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_a_low_limit_of_open_files_is_a_fault(self):
        code, checks = self.checks(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        self.assertEqual(code, 1)
        self.assertEqual(checks["open-files"]["status"], "missing")

    def test_an_impossible_data_folder_is_a_fault(self):
        file = self.write("x", "file")
        code, checks = self.checks("--data-dir", file)
        self.assertEqual(code, 1)
        self.assertEqual(checks["data-dir"]["status"], "missing")
        self.assertEqual(self.checks("--data-dir", file + "/below")[1]["data-dir"]["status"], "missing")

    def test_a_missing_temporary_folder_is_a_fault(self):
        self.environment["TMPDIR"] = str(self.folder / "absent")
        self.assertEqual(self.checks()[1]["tmp-dir"]["status"], "missing")

    def test_names_the_program_that_uses_a_port(self):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", HTTP_PORT))
            except OSError:
                self.skipTest(f"port {HTTP_PORT} is taken")
            taken.listen()
            check = self.checks()[1]["http-port"]
        self.assertEqual(check["status"], "warning")
        self.assertIn("python", check["detail"])

    def test_python_is_optional(self):
        self.environment["PATH"] = str(self.folder)
        self.assertEqual(self.checks()[1]["python"]["status"], "ok")

    def test_compares_its_version_with_the_server(self):
        self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0).await_stderr(r"http://")
        _, checks = self.checks("--data-dir", self.data)
        self.assertEqual(checks["server"]["status"], "ok")
        self.assertIn("http://", checks["server"]["detail"])
        self.assertIn("server", checks["clock"]["detail"])

    def test_a_server_that_does_not_answer_is_a_fault(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))  # bound, but not listening
            code, checks = self.checks("--server", f"127.0.0.1:{silent.getsockname()[1]}")
        self.assertEqual(code, 1)
        self.assertEqual(checks["server"]["status"], "missing")


if __name__ == "__main__":
    unittest.main()
