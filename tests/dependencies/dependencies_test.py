#!/usr/bin/env python3
"""Runs the checks of dependencies.py on small source trees, each with one fault or none."""

import json
import tempfile
import unittest
from pathlib import Path

import dependencies


def faults_in(files: dict[str, str], rule) -> list[str]:
    """Returns the faults that `rule` finds in a repository of these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return list(rule(Path(folder)))


class Includes(unittest.TestCase):
    def fault(self, file: str, include: str) -> str:
        """Returns the only fault of `file` if it includes `include`, or "" if there is none."""
        text = f"#pragma once\n\n#include {include}\n"
        faults = faults_in({file: text}, dependencies.include_faults)
        self.assertLessEqual(len(faults), 1)
        return faults[0] if faults else ""

    def test_allowed_dependencies_pass(self):
        for file, include in (
            ("core/a.h", '"core/b.h"'),
            ("core/a.h", "<string>"),
            ("core/log/a.h", '"base/result.h"'),
            ("system/a.cc", '"base/result.h"'),
            ("trainable/checkpoints/a.cc", '"system/files.h"'),
            ("searchers/a.cc", '"core/log/a.h"'),
            ("server/conductor/a.cc", '"server/store/a.h"'),
            ("server/rpc/a.cc", '"attune/v1/executor.grpc.pb.h"'),
            ("server/server.cc", '"server/rpc/a.h"'),
            ("executor/gang/a.cc", "<sys/epoll.h>"),
            ("cli/commands/run.cc", '"server/server.h"'),
            ("trainable/base/a.cc", '"attune/config.h"'),
            ("trainable/distributed/a.cc", "<torch/torch.h>"),
            ("examples/mnist/a.cc", '"attune/main.h"'),
            ("tests/unit/core/a_test.cc", "<gmock/gmock.h>"),
        ):
            with self.subTest(file=file, include=include):
                self.assertEqual(self.fault(file, include), "")

    def test_forbidden_dependencies_are_faults(self):
        for file, include in (
            ("core/a.h", '"searchers/random.h"'),
            ("base/a.h", '"core/base/ids.h"'),
            ("base/a.h", "<thread>"),
            ("system/a.cc", "<spdlog/spdlog.h>"),
            ("system/a.cc", "<grpcpp/grpcpp.h>"),
            ("core/brain/a.cc", '"system/files.h"'),
            ("schedulers/a.cc", '"system/random_word.h"'),
            ("trainable/include/attune/a.h", '"base/result.h"'),
            ("searchers/a.cc", '"core/state/state.h"'),
            ("core/log/a.h", '"core/algorithms/a.h"'),
            ("core/state/a.h", '"core/brain/a.h"'),
            ("searchers/a.cc", '"schedulers/asha.h"'),
            ("sweepfile/a.cc", '"server/server.h"'),
            ("server/store/a.cc", '"server/conductor/a.h"'),
            ("server/http/a.cc", '"server/rpc/a.h"'),
            ("executor/gang/a.cc", '"core/base/ids.h"'),
            ("executor/gang/a.cc", '"executor/agent/a.h"'),
            ("executor/agent/a.cc", '"core/base/ids.h"'),
            ("executor/transfer/a.cc", '"executor/agent/a.h"'),
            ("executor/health/a.cc", '"executor/agent/a.h"'),
            ("trainable/worker/a.cc", '"core/base/ids.h"'),
            ("trainable/distributed/a.cc", '"trainable/worker/worker.h"'),
            ("trainable/channel/a.cc", '"trainable/checkpoints/manifest.h"'),
            ("cli/a.cc", '"attune/main.h"'),
            ("examples/mnist/a.cc", '"trainable/channel/channel.h"'),
            ("trainable/include/attune/a.h", '"trainable/channel/channel.h"'),
        ):
            with self.subTest(file=file, include=include):
                self.assertIn(include.strip('"<>'), self.fault(file, include))

    def test_forbidden_libraries_are_faults(self):
        for file, include in (
            ("core/a.h", "<nlohmann/json.hpp>"),
            ("trainable/channel/a.cc", "<grpcpp/grpcpp.h>"),
            ("trainable/distributed/a.cc", "<google/protobuf/message.h>"),
            ("examples/mnist/a.cc", '"attune/v1/executor.pb.h"'),
            ("executor/gang/a.cc", "<grpcpp/grpcpp.h>"),
            ("executor/health/a.cc", "<grpcpp/grpcpp.h>"),
            ("server/http/a.cc", "<torch/types.h>"),
        ):
            with self.subTest(file=file, include=include):
                self.assertNotEqual(self.fault(file, include), "")

    def test_pure_modules_may_not_use_clock_disk_thread_or_system(self):
        for include in ("<chrono>", "<fstream>", "<mutex>", "<random>", "<unistd.h>", "<sys/stat.h>"):
            for module in ("core/base", "core/brain", "searchers", "schedulers"):
                with self.subTest(module=module, include=include):
                    self.assertIn("pure", self.fault(f"{module}/a.cc", include))

    def test_headers_may_not_include_all_of_libtorch(self):
        self.assertIn("header", self.fault("trainable/distributed/a.h", "<torch/torch.h>"))

    def test_unknown_modules_and_libraries_are_faults(self):
        self.assertIn("unknown", self.fault("cli/a.cc", '"attic/a.h"'))
        self.assertIn("unknown", self.fault("cli/a.cc", "<boost/asio.hpp>"))
        self.assertIn("MODULES", self.fault("attic/a.cc", "<string>"))

    def test_includes_must_start_at_the_root(self):
        self.assertIn("root", self.fault("core/a.cc", '"a.h"'))

    def test_a_fault_names_both_files_and_the_line(self):
        fault = self.fault("core/a.h", '"server/server.h"')
        self.assertTrue(fault.startswith("core/a.h:3: includes server/server.h"), fault)

    def test_ignores_build_folders_and_installed_dependencies(self):
        ignored = ("build", "build-asan", ".deps", "web/node_modules")
        files = {f"{folder}/a.cc": '#include "core/a.h"\n' for folder in ignored}
        self.assertEqual(faults_in(files, dependencies.include_faults), [])


class Readmes(unittest.TestCase):
    def test_each_folder_of_sources_needs_a_readme(self):
        files = {"core/README.md": "# core\n", "core/a.h": "", "server/http/a.h": ""}
        faults = faults_in(files, dependencies.readme_faults)
        self.assertEqual([fault.split(":")[0] for fault in faults],
                         ["server/README.md", "server/http/README.md"])

    def test_empty_folders_and_subfolders_described_above_need_no_readme(self):
        files = {"tests/README.md": "# tests\n", "tests/unit/core/a_test.cc": ""}
        self.assertEqual(faults_in(files, dependencies.readme_faults), [])

    def test_the_longest_allowed_readme_passes_and_one_line_more_fails(self):
        longest = "line\n" * dependencies.README_LINES_MAX
        self.assertEqual(faults_in({"core/README.md": longest}, dependencies.readme_faults), [])
        too_long = {"core/README.md": longest + "one more\n"}
        self.assertEqual(len(faults_in(too_long, dependencies.readme_faults)), 1)


class Presets(unittest.TestCase):
    def faults(self, only: str) -> list[str]:
        partial = {"name": "partial", "cacheVariables": {"ATTUNE_ONLY": only}}
        return faults_in(
            {
                "CMakePresets.json": json.dumps({"configurePresets": [partial, {"name": "all"}]}),
                "server/server.cc": '#include "tls/join.h"\n#include "web/page.h"\n',
                "tls/join.h": "#include <string>\n",
                "tests/unit/cli/a_test.cc": '#include "cli/a.h"\n',
            },
            dependencies.preset_faults,
        )

    def test_a_preset_without_an_included_module_is_a_fault(self):
        (fault,) = self.faults("server;tests")
        self.assertRegex(fault, r"\bpartial\b.*\bserver\b.*\btls\b")

    def test_a_preset_with_all_included_modules_passes(self):
        self.assertEqual(self.faults("server;tls;tests"), [])


if __name__ == "__main__":
    unittest.main()
