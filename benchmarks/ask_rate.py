"""How long it takes to ask for a trial and to tell how it went, when there have been many.

Writes the database of a sweep without a program (`long_log.cc`), starts a server on it, and asks and
tells, one after the other; a wait of the disk is in each.

    ask_rate.py BUILD_DIR [TRIALS]
"""

import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROUNDS = 1000


class Client:
    def __init__(self, data):
        url = json.loads((data / "server.json").read_text())["http"]
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"))
        self.headers = {"Authorization": "Bearer " + (data / "token").read_text().strip()}

    def ms(self, method, path, body=None):
        began = time.monotonic()
        self.connection.request(method, "/api/v1/sweeps/s1" + path, body and json.dumps(body),
                                self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        took = (time.monotonic() - began) * 1000
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status} {text.decode()}")
        return took, json.loads(text)


def tells(values):
    values = sorted(values)
    return f"median {values[len(values) // 2]:.2f} ms, 99 % {values[len(values) * 99 // 100]:.2f} ms"


def measure(build, trials):
    with tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as folder:  # a disk, not memory
        data = pathlib.Path(folder)
        subprocess.run([build / "benchmarks/long_log", data / "attune.db", str(trials), "2", "asked"],
                       check=True, stdout=subprocess.DEVNULL)
        server = subprocess.Popen(
            [build / "attune", "serve", "--data-dir", data, "--port", "0", "--rpc-port", "0"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in server.stderr:
            if "http://" in line:
                break
        client = Client(data)
        ask, tell, get = [], [], []
        for _ in range(ROUNDS):
            took, trial = client.ms("POST", "/trials:ask")
            ask.append(took)
            report = {"epoch": trial["epoch"], "step": 2, "metrics": {"loss": 0.5}}
            took, _ = client.ms("POST", f"/trials/{trial['trial']}:tell", report)
            tell.append(took)
            get.append(client.ms("GET", "")[0])
        server.terminate()
        server.wait()
    print(f"after {trials} trials: ask {tells(ask)}; tell {tells(tell)}; the sweep {tells(get)}")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    measure(build, 100)
    measure(build, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)


main()
