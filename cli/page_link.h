#pragma once

#include <filesystem>
#include <string>

#include "cli/output.h"

namespace attune::cli {

// What to print about the page of a server: a link that logs one browser in, once and within ten
// minutes, if `output` is a terminal. Files and journals get the address alone.
std::string PageLink(const std::string& url, const std::filesystem::path& data_dir,
                     const Output& output);

}  // namespace attune::cli
