"""Measures start time and memory of a server with a long log.

Writes the database of a server that was killed in a sweep with many trials (`long_log.cc`), starts a server on
it, and requests pages of trials.
"""

import json
import pathlib
import statistics
import subprocess
import tempfile
import time
import urllib.request

import driver

STARTS = 3
PAGES = 20


class Server(driver.Server):
    def __init__(self, build, data):
        began = time.monotonic()
        super().__init__(build, data)
        with self.get("/readyz"):
            self.ready_s = time.monotonic() - began

    def get(self, path):
        return urllib.request.urlopen(urllib.request.Request(self.url + path, headers=self.headers))

    def page_ms(self, query):
        began = time.monotonic()
        with self.get("/api/v1/sweeps/s1/trials" + query) as answer:
            page = json.loads(answer.read())
        return (time.monotonic() - began) * 1000, page


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "trials", 100_000, "trials in the log")
    driver.add_count(parser, "reports", 100, "reports of each trial")
    arguments = parser.parse_args()
    build, trials, reports = arguments.build, arguments.trials, arguments.reports
    with tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as folder:  # a disk, not memory
        data = pathlib.Path(folder)
        began = time.monotonic()
        written = subprocess.run([build / "benchmarks/long_log", data / "attune.db", str(trials), str(reports)],
                                 check=True, capture_output=True, text=True).stdout.strip()
        size = sum(file.stat().st_size for file in data.iterdir()) / 1e9
        print(f"{trials} trials of {reports} reports: {written}, {size:.2f} GB, "
              f"written in {time.monotonic() - began:.0f} s")
        for start in range(STARTS):
            with Server(build, data) as server:
                ready_mb = server.status("VmRSS") / 1024
                _, first = server.page_ms("?page_size=1000")
                times = {}
                for name, query in (("first 100", "?page_size=100"), ("first 1,000", "?page_size=1000"),
                                    ("next 1,000",
                                     "?page_size=1000&page_token=" + first["next_page_token"])):
                    times[name] = statistics.median(server.page_ms(query)[0] for _ in range(PAGES))
                peak_mb = server.status("VmHWM") / 1024
                server.process.kill()
            pages = ", ".join(f"{name} {ms:.1f} ms" for name, ms in times.items())
            print(f"start {start + 1} after a kill: ready in {server.ready_s:.2f} s, {ready_mb:.0f} MB "
                  f"then, {peak_mb:.0f} MB at most; pages of trials: {pages}")


if __name__ == "__main__":
    main()
