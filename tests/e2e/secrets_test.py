"""Other users learn no secret from the data folder or from the output of `attune`."""

import os
import pathlib
import stat
import subprocess
import unittest
import urllib.error
import urllib.request

from support import EndToEnd, ask_server, sweep


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Secrets(EndToEnd):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.addCleanup(os.umask, os.umask(0o022))

    def readable_by_others(self):
        """Returns the files of the data folder that other users can read, without files of trials' programs."""
        return [str(path) for path in [self.data, *self.data.rglob("*")]
                if mode(path) & 0o077 and "checkpoints" not in path.parts]

    def test_other_users_cannot_read_the_data_folder(self):
        self.data.mkdir(mode=0o755)
        code, _, err = self.attune("run", self.write(sweep(stop={"max_trials": 2})), "--data-dir", self.data,
                                   "--port", 0)
        self.assertEqual(code, 0, err)
        self.assertEqual(mode(self.data), 0o700)
        self.assertEqual(self.readable_by_others(), [])
        self.assertTrue(list(self.data.rglob("*.log")))
        if os.geteuid() == 0:
            for path in self.data.rglob("*"):
                read = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", path],
                                      capture_output=True)
                self.assertNotEqual(read.returncode, 0, path)

    def test_an_old_data_folder_becomes_private(self):
        self.data.mkdir(mode=0o755)
        (self.data / "token").write_text("a-token-of-an-earlier-server\n")
        (self.data / "attune.db").touch(mode=0o644)
        self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0).await_stderr("^executors")
        self.assertEqual(self.readable_by_others(), [])

    def test_a_folder_with_other_files_keeps_its_mode(self):
        self.data.mkdir(mode=0o755)
        (self.data / "notes.txt").touch(mode=0o644)
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        server.await_stderr(r"\bother users\b")
        server.await_stderr("^executors")
        self.assertEqual(mode(self.data), 0o755)
        self.assertEqual(mode(self.data / "notes.txt"), 0o644)
        self.assertEqual(mode(self.data / "attune.db"), 0o600)

    def test_shared_data_and_programs_follow_the_umask(self):
        for flags, folder_mode in (([], 0o700), (["--shared-data"], 0o755)):
            data = self.folder / f"data{len(flags)}"
            spec = sweep(command=["sh", "-c", "umask > umask.txt"], working_directory=str(self.folder),
                         stop={"max_trials": 1}, scheduler={"name": "fifo"})
            self.attune("run", self.write(spec), "--data-dir", data, "--port", 0, *flags)
            self.assertEqual(mode(data), folder_mode)
            self.assertEqual((self.folder / "umask.txt").read_text(), "0022\n")

    def test_output_contains_no_secret(self):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-host", "0.0.0.0", "--rpc-port", 0)
        server.await_stderr("^executors")
        printed = "\n".join(server.stderr)
        for name in ("token", "join"):
            self.assertNotIn((self.data / name).read_text().strip().rsplit(":", 1)[-1], printed)
        self.assertNotIn("code=", printed)

    def test_a_link_logs_one_browser_in(self):
        self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0).await_stderr("^executors")
        code, link, err = self.attune("login", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        browser = urllib.request.build_opener(NoRedirect())
        with self.assertRaises(urllib.error.HTTPError) as redirected:
            browser.open(link.strip())
        self.assertEqual(redirected.exception.code, 303)
        cookie = redirected.exception.headers["Set-Cookie"].split(";")[0]
        redirected.exception.close()
        url = ask_server(self.data)["http"]
        with browser.open(urllib.request.Request(url + "/api/v1/sweeps", headers={"Cookie": cookie})) as answer:
            self.assertEqual(answer.status, 200)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            browser.open(link.strip())
        self.assertEqual(refused.exception.code, 401)
        refused.exception.close()
        for file in pathlib.Path(self.data / "sessions").iterdir():
            self.assertNotIn(cookie.split("=")[1], file.name + file.read_text())


if __name__ == "__main__":
    unittest.main()
