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

// One thing that is wrong with a sweep file, and where.
struct Fault {
  std::string path;        // scheduler.reduction_facter, tags[1]; empty: the whole file
  std::string pointer;     // the same as a JSON pointer (RFC 6901): /scheduler/reduction_facter
  std::string message;     // what is wrong, and what to write instead
  std::string suggestion;  // the name that was probably meant; empty: none
  int line = 1;            // from 1
  int column = 1;          // from 1, in characters

  bool operator==(const Fault&) const = default;
};

struct ParseOptions {
  // How messages name the file, and where a sweep without `name` gets one: the file's stem, or the
  // folder's name when the stem is "sweep".
  std::string file = "sweep.yaml";

  // Absolute: what relative paths in the file mean. Empty: the file must use absolute ones.
  std::string directory;

  // How whoever sends a file may give the directory, for messages: "the query `directory`". Empty:
  // in no way.
  std::string directory_from;

  // REQUIRES: not null. Their tables give the keys of `searcher` and `scheduler`.
  const Algorithms* algorithms = nullptr;

  // Why a program cannot be found, such as "no such file", or an empty text. Asked for command[0]
  // where that is a path; empty: nothing is asked. The parser itself touches no disk.
  std::function<std::string(const std::string& path)> program_fault;
};

// A spec, or the faults of the file in its order, but those that may be consequences of others. Of
// more than kMaxFaults (faults.h), the last says how many there are beside those that are listed.
struct Parsed {
  std::optional<SweepSpec> spec;
  std::vector<Fault> faults;
};

// Reads a sweep file: YAML 1.2, and so JSON. The format is docs/reference/sweep-file.md. Never
// throws; a text over a limit of document.h is a fault.
Parsed ParseSweep(std::string_view text, const ParseOptions& options);

// An error that names a key of this file first ("warm_start: there is no sweep s9"), with its
// place. Nullopt where it names none, or the text is no document.
std::optional<Fault> FaultOf(const Error& error, std::string_view text);

// The spec with changes: a JSON Merge Patch (RFC 7396) of its sweep file, {stop: {max_trials: 40}};
// null takes a key away. Where it names another searcher or scheduler, options that this one does
// not have are taken away too. JSON or YAML; faults stand at their places in the patch. All but the
// initial points can be changed here; whether a sweep that has begun may is for others to say.
Parsed PatchSweep(const SweepSpec& spec, std::string_view patch, const ParseOptions& options);

// A key of a sweep file and its new value.
struct Setting {
  std::vector<std::string> path;  // {"parameters", "lr", "max"}
  std::string value;              // YAML; null takes the key away
};

// Reads a sweep file after settings, in order. Each replaces the whole value of its key. If they
// name another searcher or scheduler, options that this one does not have are taken away too.
// Faults name the key; line and column of a setting mean nothing.
Parsed ParseEdited(std::string_view text, std::span<const Setting> settings,
                   const ParseOptions& options);

// unknown key; did you mean reduction_factor?
std::string Sentence(const Fault& fault);

// sweep.yaml:12:3: scheduler.reduction_facter: unknown key; did you mean reduction_factor?
std::string FormatFault(std::string_view file, const Fault& fault);

// The whole file with every default, for people. Reading it again gives an equal spec.
std::string ResolvedYaml(const SweepSpec& spec);

}  // namespace attune::sweepfile
