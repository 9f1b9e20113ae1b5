#!/usr/bin/env python3
"""Checks that nobody can add an event or a key of the sweep file only in part: the incomplete code does not compile.

    omissions_test.py COMPILER [FLAG...]

Each case copies a few headers, with one event more, into a folder that the compiler searches first. It then
compiles the sources that handle events with -fsyntax-only.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = []

EVENTS = "core/log/executor_events.h"
LIST = "core/log/event.h"
APPLIER = "core/state/applier.h"

# The sources that handle events, by the name of the consumer in an event's row.
CONSUMERS = {
    "kStream": "server/http/answers/event_stream.cc",
    "kTables": "server/store/tables/projection.cc",
    "kSummary": "simulator/tally.cc",
    "kCurves": "simulator/recording.cc",
    "kAudit": "core/brain/audit.cc",
}
ALL_SOURCES = ["core/log/event.cc", "core/state/apply.cc", "server/store/event_codec.cc",
              "server/rpc/affected_executors.cc", *CONSUMERS.values()]

SPEC = "core/log/sweep_spec.h"
KEYS = "core/log/sweep_keys.h"
# The sources that use the table of keys.
KEY_SOURCES = ["core/log/sweep_keys.cc", "core/brain/edit.cc", "sweepfile/keys.cc", "sweepfile/spec_reader.cc",
                        "sweepfile/codec.cc"]

IGNORED = "Handled(kNoConsumer), Ignored(kEveryConsumer)"
FIELDS = ', Field("note", &ToyHappened::note)'


def toy(handling=IGNORED, fields=FIELDS, row=True):
    text = "struct ToyHappened {\n  SweepId sweep;\n  std::string note;\n"
    if row:
        text += ('  static constexpr auto kRow = EventRow({"toy_happened", Needs::kSweep, kGangs'
                 + (f", {handling}" if handling else "") + "}, &ToyHappened::sweep" + fields + ");\n")
    return text + "};\n"


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def replace(text, old, new):
    assert old in text, old
    return text.replace(old, new, 1)


def headers(event, applied=True):
    """Returns {path: text} for the headers that change when `event` is added."""
    end = "}  // namespace attune\n"
    changed = {
        EVENTS: replace(read(EVENTS), end, event + end),
        LIST: replace(read(LIST), "std::variant<", "std::variant<ToyHappened, "),
    }
    if applied:
        changed[APPLIER] = replace(read(APPLIER), " public:\n", " public:\n  void operator()(const ToyHappened&) {}\n")
    return changed


def syntax_check(changed, source):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in changed.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        command = [*COMPILER, "-std=c++20", "-fsyntax-only", "-w", f"-I{folder}", f"-I{ROOT}", ROOT / source]
        return subprocess.run(command, capture_output=True, text=True)


class Omissions(unittest.TestCase):
    def check(self, cases):
        """Each case is (headers, source, regex of the expected error; None if it must compile)."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = pool.map(lambda case: syntax_check(case[0], case[1]), cases)
        for (_, source, error), run in zip(cases, runs):
            with self.subTest(source=source):
                if error is None:
                    self.assertEqual(run.returncode, 0, run.stderr[:2000])
                else:
                    self.assertNotEqual(run.returncode, 0)
                    self.assertRegex(run.stderr, error)

    def test_an_event_that_all_consumers_ignore_changes_three_files(self):
        complete = headers(toy())
        self.assertEqual(len(complete), 3)
        self.check([(complete, source, None) for source in ALL_SOURCES])

    def test_an_incomplete_event_does_not_compile(self):
        self.check([
            (headers(toy(row=False)), "core/log/event.cc", "kRow"),
            (headers(toy(fields="")), "core/log/event.cc", "its row"),
            (headers(toy(handling="")), "core/log/event.cc", "EventRow"),
            (headers(toy(), applied=False), "core/state/apply.cc", "ToyHappened"),
        ])

    def test_a_consumer_that_neither_handles_nor_ignores_does_not_compile(self):
        consumers = list(CONSUMERS)
        self.check([
            (headers(toy(handling="Handled(kNoConsumer), Ignored(" +
                         " | ".join(name for name in consumers if name != left_out) + ")")),
             "core/log/event.cc", "neither handles") for left_out in consumers
        ])

    def test_a_consumer_without_code_for_a_handled_event_does_not_compile(self):
        consumers = list(CONSUMERS)
        self.check([
            (headers(toy(handling=f"Handled({name}), Ignored(" +
                         " | ".join(other for other in consumers if other != name) + ")")),
             source, "ToyHappened") for name, source in CONSUMERS.items()
        ])

    def test_a_consumer_with_code_for_an_ignored_event_does_not_compile(self):
        path = "core/log/trial_events.h"
        row = re.search(r'"trial_created".*?\}', read(path), re.S).group(0)  # an event that all consumers handle
        self.assertIn("Ignored(kNoConsumer)", row)
        cases = []
        for name, source in CONSUMERS.items():
            ignored = re.sub(r"Handled\([^)]*\)", "Handled(" + " | ".join(o for o in CONSUMERS if o != name) + ")", row)
            ignored = ignored.replace("Ignored(kNoConsumer)", f"Ignored({name})")
            cases.append(({path: replace(read(path), row, ignored)}, source, "there is code"))
        self.check(cases)

    def test_a_key_needs_a_field_and_a_row(self):
        field = {SPEC: replace(read(SPEC), "struct StopPolicy {\n", "struct StopPolicy {\n  int toys = 3;\n")}
        above = "      KeyRow<&SweepSpec::stop, &StopPolicy::max_time>("
        row = '      KeyRow<&SweepSpec::stop, &StopPolicy::toys>({.name = "stop.toys", .help = "Toys"}),\n'
        complete = {**field, KEYS: replace(read(KEYS), above, row + above)}
        self.check([(field, "core/log/sweep_keys.cc", "StopPolicy has no")] +
                   [(complete, source, None) for source in KEY_SOURCES])


if __name__ == "__main__":
    COMPILER, sys.argv[1:] = sys.argv[1:], []
    unittest.main()
