#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace attune::inline sdk {

class Context;

// Options of Download().
struct DownloadOptions {
  // Limit for the whole call, including the wait for another process that downloads the file.
  std::chrono::milliseconds timeout = std::chrono::hours(24);

  // A connection that receives nothing for this long, rounded to seconds, is closed.
  std::chrono::milliseconds stall_timeout = std::chrono::minutes(1);

  // Number of consecutive attempts without new data, if the server is unreachable, busy, or breaks
  // off. `backoff` is the delay before the second attempt; it doubles before each further one.
  int tries = 5;
  std::chrono::milliseconds backoff{500};
};

// Ensures that `path` is a file with the SHA-256 `sha256`, given as 64 hex digits. If the file
// exists, the call does not use the network. Otherwise it downloads the file from `url` (http,
// https, or file).
//
// If several processes of a host need the file, one downloads it, and the others wait and use it.
// The lock is a FileLock on `path` + ".lock". The file appears complete, checked and synced, or not
// at all. Data of an interrupted download stays in `path` + ".partial". The next download continues
// from it if the server supports that. Missing folders are created.
//
// Throws attune::Error if the file does not exist at the URL, if the server or the disk refuses, if
// no more data arrives (see DownloadOptions), if `path` cannot be locked, or if the hash differs.
// An existing file with another hash is not replaced, because it may belong to someone else.
//
// If ranks are forked, a call before Main() downloads the file, or reads its hash, only once for
// each host.
void Download(const std::string& url, std::string_view sha256, const std::filesystem::path& path,
              const DownloadOptions& options = {});

// The same in training code, for long downloads. The sweep's `stall_timeout` does not apply during
// the download. Afterwards the rank may be silent for Context::kSetupSilence until its next
// heartbeat.
void Download(Context& context, const std::string& url, std::string_view sha256,
              const std::filesystem::path& path, const DownloadOptions& options = {});

}  // namespace attune::inline sdk
