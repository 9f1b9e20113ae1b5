#pragma once

#include <filesystem>

#include "executor/gang/spec.h"
#include "executor/transfer/fetcher.h"

namespace attune::agent {

// Copies of data files: a folder with
//
//   NAME     the file, which nobody may write, named after its URL
//   .stamp   the stamp of the file, to find changes without reading it
//   others   links to the file, for URLs with other names
//
// The folder cannot be written either, so that trials do not unpack archives there.
extern const CopyKind kData;

// A file for the ranks of the gang. While it is missing, lines in the log of the first rank on this
// host say why the gang has not started.
WantedCopy WantedData(const gang::GangSpec& spec, const gang::DataFile& file);

// The path of the file in its copy.
std::filesystem::path PathOfData(const std::filesystem::path& copy, const gang::DataFile& file);

}  // namespace attune::agent
