"""How soon a server is there again, and how large it is, when its log is long.

Writes the database of a server that was killed in a sweep of many trials (`long_log.cc`), starts a
server on it, and asks it for pages of trials.

    restart.py BUILD_DIR [TRIALS [REPORTS]]
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

STARTS = 3
PAGES = 20


def resident_mb(pid, key):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(key + r":\s+(\d+) kB", status)[1]) / 1024


class Server:
    def __init__(self, build, data):
        began = time.monotonic()
        self.process = subprocess.Popen(
            [build / "attune", "serve", "--data-dir", data, "--port", "0", "--rpc-port", "0"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in self.process.stderr:
            if "http://" in line:
                break
        self.http = json.loads((data / "server.json").read_text())["http"]
        self.token = (data / "token").read_text().strip()
        with self.get("/readyz"):
            self.ready_s = time.monotonic() - began

    def get(self, path):
        return urllib.request.urlopen(urllib.request.Request(
            self.http + path, headers={"Authorization": "Bearer " + self.token}))

    def page_ms(self, query):
        began = time.monotonic()
        with self.get("/api/v1/sweeps/s1/trials" + query) as answer:
            page = json.loads(answer.read())
        return (time.monotonic() - began) * 1000, page


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    trials, reports = (sys.argv[2:] + ["100000", "100"][len(sys.argv) - 2:])[:2]
    with tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as folder:  # a disk, not memory
        data = pathlib.Path(folder)
        began = time.monotonic()
        written = subprocess.run([build / "benchmarks/long_log", data / "attune.db", trials, reports],
                                 check=True, capture_output=True, text=True).stdout.strip()
        size = sum(file.stat().st_size for file in data.iterdir()) / 1e9
        print(f"{trials} trials of {reports} reports: {written}, {size:.2f} GB, "
              f"written in {time.monotonic() - began:.0f} s")
        for start in range(STARTS):
            server = Server(build, data)
            ready_mb = resident_mb(server.process.pid, "VmRSS")
            _, first = server.page_ms("?page_size=1000")
            times = {}
            for name, query in (("first 100", "?page_size=100"), ("first 1,000", "?page_size=1000"),
                                ("next 1,000",
                                 "?page_size=1000&page_token=" + first["next_page_token"])):
                times[name] = median([server.page_ms(query)[0] for _ in range(PAGES)])
            peak_mb = resident_mb(server.process.pid, "VmHWM")
            server.process.kill()
            server.process.wait()
            pages = ", ".join(f"{name} {ms:.1f} ms" for name, ms in times.items())
            print(f"start {start + 1} after a kill: ready in {server.ready_s:.2f} s, {ready_mb:.0f} MB "
                  f"then, {peak_mb:.0f} MB at most; pages of trials: {pages}")


main()
