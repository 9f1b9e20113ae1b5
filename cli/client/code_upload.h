#pragma once

#include <filesystem>

#include "base/result.h"
#include "cli/client/http_client.h"
#include "code/collect.h"
#include "rest/contract.h"

namespace attune::cli {

// A snapshot that the server has.
struct SentCode {
  std::string digest;
  code::Collected collected;
  uint64_t sent_bytes = 0;  // of files that the server did not have
};

// Whether the text of a sweep file names what the server requires. A server must not get other
// files.
bool NamesRequired(const std::string& sweep_file, const rest::RequiredCode& required);

// Takes a snapshot of the files that the server requires for a sweep file in `directory`, and sends
// what the server does not have. An interrupted upload continues at the next call. Errors: those of
// code::Collect and HttpClient; kConflict: the files changed, or another client disturbs the
// upload.
Result<SentCode> SendCode(HttpClient& client, const rest::RequiredCode& required,
                          const std::filesystem::path& directory);

}  // namespace attune::cli
