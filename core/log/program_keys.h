#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include "core/log/key_row.h"
#include "core/log/sweep_spec.h"

// The rows of the keys of the sweep file that say what a program needs on a host.
namespace attune {

inline constexpr size_t kMaxCodePatterns = 100;
inline constexpr size_t kMaxPatchedCode = 100;  // combinations of patches

inline const auto& Keys(std::type_identity<PatchedCode>) {
  static const KeyTable table(
      "code.patched[]", "A snapshot with patches that parameters choose", {},
      KeyRow<&PatchedCode::patches>({.name = "patches",
                                     .help = "The patches, in the order of application",
                                     .required = true}),
      KeyRow<&PatchedCode::digest>(
          {.name = "digest", .help = "The patched snapshot", .required = true}));
  return table;
}

inline const auto& Keys(std::type_identity<EnvironmentSpec>) {
  static const KeyTable table(
      "environment", "The packages of the program: a file of Python packages or a container",
      {"python", "container"},
      KeyRow<&EnvironmentSpec::python>(
          {.name = "python",
           .help =
               "A file of Python packages that hosts install: requirements as `pip` reads them, "
               "`uv.lock` or `pyproject.toml`. A relative path starts at the root of the code, "
               "or else at the sweep file's folder",
           .fallback_words = "none"}),
      KeyRow<&EnvironmentSpec::wheels>(
          {.name = "wheels",
           .help = "A folder of wheels from which hosts install without a network; its path is "
                   "relative as that of `python`",
           .fallback_words = "none: hosts use the package index",
           .needs = "python"}),
      KeyRow<&EnvironmentSpec::container>(
          {.name = "container",
           .help = "An image in which the program runs, such as `docker.io/pytorch/pytorch:2.8.0`",
           .fallback_words = "none"}),
      KeyRow<&EnvironmentSpec::engine>(
          {.name = "engine",
           .help = "The program that runs the container. `any`: the first of the others that the "
                   "host has",
           .needs = "container"}));
  return table;
}

inline const auto& Keys(std::type_identity<DataSpec>) {
  static const KeyTable table(
      "data[]", "A file that each host downloads once", {},
      KeyRow<&DataSpec::name>({.name = "name",
                               .help = "Workers find the file at the path in `ATTUNE_DATA_NAME`, "
                                       "with this name in upper case",
                               .required = true}),
      KeyRow<&DataSpec::url>(
          {.name = "url", .help = "An address with http, https or file", .required = true}),
      KeyRow<&DataSpec::sha256>({.name = "sha256",
                                 .help = "The SHA-256 of the file, as `sha256sum` prints it",
                                 .required = true}));
  return table;
}

inline const auto& Keys(std::type_identity<CodeSpec>) {
  static const KeyTable table(
      "code", "Files that Attune copies to the hosts", {},
      KeyRow<&CodeSpec::path>({.name = "path",
                               .help = "The folder with the files; a relative path starts at the "
                                       "sweep file's folder",
                               .fallback = std::string(".")}),
      KeyRow<&CodeSpec::include>(
          {.name = "include",
           .help = "Patterns, as in `.gitignore`, of files to copy although git ignores them",
           .fallback_words = "none",
           .most = kMaxCodePatterns,
           .items = "patterns",
           .example = "[build/train]"}),
      KeyRow<&CodeSpec::exclude>(
          {.name = "exclude",
           .help = "Patterns, as in `.gitignore`, of files that are not copied",
           .fallback_words = "none",
           .most = kMaxCodePatterns,
           .items = "patterns",
           .example = "[data/]"}),
      KeyRow<&CodeSpec::writable>(
          {.name = "writable",
           .help = "If true, each trial gets a copy of the files that it may change, instead of "
                   "links to them"}),
      KeyRow<&CodeSpec::digest>(
          {.name = "digest",
           .help = "The snapshot of the files. If the server has it, `path` is not read",
           .fallback_words = "set by the client that creates the sweep"}),
      KeyRow<&CodeSpec::commit>({.name = "commit",
                                 .help = "The git commit of the snapshot",
                                 .fallback_words = "set with `digest`",
                                 .needs = "digest"}),
      KeyRow<&CodeSpec::dirty>({.name = "dirty",
                                .help = "Whether the files of the snapshot differ from that commit",
                                .needs = "digest"}),
      KeyRow<&CodeSpec::patched>(
          {.name = "patched",
           .help = "The snapshots with the patches that parameters choose",
           .fallback_words = "set by the server, if a parameter has `patches`",
           .most = kMaxPatchedCode,
           .items = "snapshots",
           .needs = "digest",
           .sparse = true}));
  return table;
}

}  // namespace attune
