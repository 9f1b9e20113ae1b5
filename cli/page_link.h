#pragma once

#include <filesystem>
#include <string>

#include "cli/output.h"

namespace attune::cli {

// The text to print about the dashboard of a server. On a terminal, a link that logs in one browser
// within ten minutes; otherwise only the address, because logs must not contain such a link.
std::string PageLink(const std::string& url, const std::filesystem::path& data_dir,
                     const Output& output);

}  // namespace attune::cli
