"""Secrets of sweeps: only programs get the values; no output or file shows them."""

import contextlib
import fcntl
import json
import os
import pty
import subprocess
import termios
import unittest
import urllib.error
import urllib.request

from support import EndToEnd, PATIENCE_S, ask_server, sweep

VALUE = "hf_0123456789-abcdef"
# Writes its secret to a file, prints it, and fails with a message that contains it.
TELLS = ["sh", "-c", 'printf %s "$HF_TOKEN" >> got.txt; echo "key=$HF_TOKEN."; exit 1']


class SweepSecrets(EndToEnd):
    def set_secret(self, value, name="HF_TOKEN"):
        done = subprocess.run([self.program, "secret", "set", name, "--data-dir", self.data], input=value + "\n",
                              text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(value, done.stdout + done.stderr)

    def serve(self, *flags):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0, *flags)
        server.await_stderr("^executors")

    def create(self, **changes):
        spec = sweep(command=TELLS, working_directory=str(self.folder), stop={"max_trials": 1},
                     failure={"max_restarts": 0, "backoff": "10ms"}, **changes)
        return self.request("/api/v1/sweeps", "POST", json.dumps(spec).encode())

    def viewer(self):
        code, token, err = self.attune("token", "create", "vera", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        return {"Authorization": "Bearer " + token.strip()}

    def text(self, path, headers):
        request = urllib.request.Request(ask_server(self.data)["http"] + "/api/v1" + path, headers=headers)
        with urllib.request.urlopen(request) as answer:
            return answer.read().decode()

    def got(self):
        return (self.folder / "got.txt").read_text()

    def files_with(self, value):
        return sorted(path.name for path in self.data.rglob("*") if path.is_file()
                      and value.encode() in path.read_bytes())

    def test_only_the_program_sees_the_value(self):
        self.set_secret(VALUE)
        self.serve("--with-executor")
        status, answer = self.create(secrets=["HF_TOKEN"])
        self.assertEqual(status, 201, answer)
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "failed")
        self.assertEqual(self.got(), VALUE)
        viewer = self.viewer()
        masked = f"key={'*' * len(VALUE)}.\n"
        self.assertEqual(self.text("/sweeps/s1/trials/0/logs", viewer), masked)
        letters = [self.text(f"/sweeps/s1/trials/0/logs?offset={at}&limit=1", viewer) for at in range(len(masked))]
        self.assertEqual("".join(letters), masked)
        shown = [self.text(path, viewer) for path in ("/sweeps/s1", "/sweeps/s1/resolved", "/sweeps/s1/trials/0",
                                                      "/sweeps/s1/trials/0/schedule")]
        shown += self.attune("db", "export", "--what", "events", "--with-env", "--data-dir", self.data)[1:]
        shown += [line for process in self.processes for line in process.stderr]
        self.assertNotIn(VALUE, "\n".join(shown))
        self.assertEqual(self.files_with(VALUE), ["rank-0.log", "secrets.json"])

    def type_secret(self, typed):
        """Types a value at the prompt and returns the exit code and the text on the terminal."""
        terminal, side = pty.openpty()
        self.addCleanup(os.close, side)
        self.addCleanup(os.close, terminal)
        process = subprocess.Popen([self.program, "secret", "set", "HF_TOKEN", "--data-dir", self.data], stdin=side,
                                   stdout=side, stderr=side, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        shown = ""
        while "(hidden): " not in shown:
            shown += os.read(terminal, 1000).decode()
        self.assertFalse(termios.tcgetattr(side)[3] & termios.ECHO)
        os.write(terminal, typed.encode())
        code = process.wait(PATIENCE_S)
        self.assertTrue(termios.tcgetattr(side)[3] & termios.ECHO)
        os.set_blocking(terminal, False)
        with contextlib.suppress(BlockingIOError):
            shown += os.read(terminal, 1000).decode()
        return code, shown

    def test_the_terminal_does_not_show_the_typed_value(self):
        code, shown = self.type_secret(VALUE + "\n")
        self.assertEqual(code, 0, shown)
        self.assertNotIn(VALUE, shown)
        self.assertEqual(self.files_with(VALUE), ["secrets.json"])

    def test_an_interrupted_prompt_restores_the_terminal(self):
        self.assertEqual(self.type_secret("\x03")[0], 130)
        self.assertFalse((self.data / "secrets.json").exists())

    def test_an_undefined_secret_is_refused(self):
        self.serve()
        status, answer = self.create(secrets=["HF_TOKEN"])
        self.assertEqual((status, answer["type"]), (422, "urn:attune:problem:undefined-secret"))
        self.assertIn("attune secret set HF_TOKEN", answer["detail"])
        self.assertEqual(self.get("/sweeps")["sweeps"], [])

    def test_a_trial_waits_for_a_secret_that_was_removed(self):
        self.set_secret(VALUE)
        self.serve()
        self.assertEqual(self.create(secrets=["HF_TOKEN"])[0], 201)
        code, _, err = self.attune("secret", "rm", "HF_TOKEN", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.start("executor", "--server", ask_server(self.data)["rpc"], "--data-dir", self.folder / "executor",
                   "--token-file", self.data / "join")
        self.await_event(lambda kind, data: kind == "trial_changed" and data["state"] == "pending" and
                         "HF_TOKEN" in data["reason"])
        self.assertEqual(self.get("/sweeps/s1")["state"], "running")
        self.assertFalse((self.folder / "got.txt").exists())

    def test_later_attempts_get_a_new_value_and_the_old_one_stays_masked(self):
        self.set_secret(VALUE)
        self.serve("--with-executor")
        self.create(secrets=["HF_TOKEN"])
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "failed")
        self.processes.pop().kill()
        self.set_secret("another value")
        self.serve("--with-executor")
        self.create(secrets=["HF_TOKEN"])
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["sweep"] == "s2" and
                         data["state"] == "failed")
        self.assertEqual(self.got(), VALUE + "another value")
        viewer = self.viewer()
        self.assertEqual(self.text("/sweeps/s1/trials/0/logs", viewer), f"key={'*' * len(VALUE)}.\n")
        self.assertEqual(self.text("/sweeps/s2/trials/0/logs", viewer), "key=*************.\n")

    def test_only_admins_see_env(self):
        self.serve("--with-executor")
        status, answer = self.create(env={"WANDB_API_KEY": "of-mine"})
        self.assertEqual(status, 201, answer)
        self.assertIn("env.WANDB_API_KEY: ", answer["warnings"][0])
        self.await_event(lambda kind, _: kind == "trial_created")
        viewer = self.viewer()
        for path in ("/sweeps/s1", "/sweeps/s1/resolved", "/sweeps/s1/trials/0/schedule"):
            self.assertIn("of-mine", json.dumps(self.get(path)))
            self.assertNotIn("WANDB_API_KEY", self.text(path, viewer))
        exported = self.attune("db", "export", "--what", "events", "--data-dir", self.data)[1]
        self.assertIn("sweep_created", exported)
        self.assertNotIn("of-mine", exported)

    def test_train_passes_a_secret(self):
        self.environment["HF_TOKEN"] = "a value of the caller's"
        arguments = ("train", "--data-dir", self.data, "--env", "HF_TOKEN",
                     "--set", "failure.max_restarts=0", "--", *TELLS)
        code, _, err = self.attune(*arguments)
        self.assertEqual(code, 2, err)
        self.assertIn("attune secret set HF_TOKEN", err)
        self.set_secret(VALUE)
        code, out, err = self.attune(*arguments)
        self.assertEqual(code, 5, err)
        self.assertEqual(self.got()[-len(VALUE):], VALUE)
        self.assertNotIn(VALUE, out + err)


if __name__ == "__main__":
    unittest.main()
