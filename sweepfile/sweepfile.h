#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/log/sweep_spec.h"

namespace attune::sweepfile {

// One fault of a sweep file, with its place.
struct Fault {
  std::string path;        // scheduler.reduction_facter, tags[1]; empty: the whole file
  std::string pointer;     // the same as a JSON pointer (RFC 6901): /scheduler/reduction_facter
  std::string message;     // the fault, and what to write instead
  std::string suggestion;  // the name that was probably meant; empty: none
  int line = 1;            // from 1
  int column = 1;          // from 1, in characters

  bool operator==(const Fault&) const = default;
};

// A snapshot of the files that the key `code` describes.
struct Snapshot {
  std::string digest;
  std::string commit;  // empty: unknown
  bool dirty = false;
};

struct ParseOptions {
  // The name of the file in messages. It is also the default name of the sweep: the stem, or the
  // folder's name if the stem is "sweep".
  std::string file = "sweep.yaml";

  // The absolute directory for relative paths in the file. Empty: all paths must be absolute.
  std::string directory;

  // How a client can set the directory, for messages: "the query `directory`". Empty: it cannot.
  std::string directory_from;

  // The snapshot that the client has taken, if the file has `code`.
  std::optional<Snapshot> snapshot = {};

  // REQUIRES: not null. Their tables give the keys of `searcher` and `scheduler`.
  const Algorithms* algorithms = nullptr;

  // Returns why a program cannot be found, such as "no such file", or an empty text. It is called
  // for command[0] if that is a path. The parser itself does not access the disk. Null: no check.
  std::function<std::string(const std::string& path)> program_fault;
};

// A spec, or the faults of the file in order. Faults that may be consequences of others are left
// out. If there are more than kMaxFaults (faults.h), the last one is a note with the number of the
// others.
struct Parsed {
  std::optional<SweepSpec> spec;
  std::vector<Fault> faults;
};

// Reads a sweep file in YAML 1.2 or JSON (docs/reference/sweep-file.md). It never throws. A text
// that exceeds a limit of document.h is a fault.
Parsed ParseSweep(std::string_view text, const ParseOptions& options);

// Converts an error whose message begins with a key of this file ("warm_start: there is no sweep
// s9") to a fault with its place. Nullopt if it names no key, or if the text cannot be read.
std::optional<Fault> FaultOf(const Error& error, std::string_view text);

// Changes a spec by a JSON Merge Patch (RFC 7396) of its sweep file, in JSON or YAML: {stop:
// {max_trials: 40}}. Null removes a key. If the patch names another searcher or scheduler, options
// that the new one does not have are removed. Faults have their places in the patch. Initial points
// cannot be changed. Whether a running sweep allows a change is checked elsewhere
// (core/brain/edit.h).
Parsed PatchSweep(const SweepSpec& spec, std::string_view patch, const ParseOptions& options);

// A key of a sweep file and its new value.
struct Setting {
  std::vector<std::string> path;  // {"parameters", "lr", "max"}
  std::string value;              // YAML; null removes the key
};

// Applies settings to a sweep file, in order, and reads the result. Each setting replaces the whole
// value of its key. If they name another searcher or scheduler, options that the new one does not
// have are removed. Faults in settings name the key; their line and column have no meaning.
Parsed ParseEdited(std::string_view text, std::span<const Setting> settings,
                   const ParseOptions& options);

// The fault without its place: "unknown key; did you mean reduction_factor?".
std::string Sentence(const Fault& fault);

// The fault with its place:
// "sweep.yaml:12:3: scheduler.reduction_facter: unknown key; did you mean reduction_factor?".
std::string FormatFault(std::string_view file, const Fault& fault);

// The whole file with every default, for users. Reading it gives an equal spec.
std::string ResolvedYaml(const SweepSpec& spec);

}  // namespace attune::sweepfile
