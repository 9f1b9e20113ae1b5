#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace attune::download {

// A file to download.
struct File {
  std::string url;             // http, https or file
  std::string sha256;          // 64 lower-case digits
  std::filesystem::path path;  // where the complete file appears
};

struct Options {
  std::optional<std::chrono::milliseconds> timeout;  // of the whole call; nullopt: no limit

  // A connection that receives nothing for this long, rounded to seconds, is closed.
  std::chrono::milliseconds stall_timeout = std::chrono::minutes(1);

  // Number of consecutive attempts without new data, if the server is unreachable, busy, or breaks
  // off. `backoff` is the delay before the second attempt; it doubles before each further one.
  int tries = 5;
  std::chrono::milliseconds backoff{500};

  // A download stops before it would leave less of the disk free; 0: it may fill the disk.
  uint64_t disk_free_bytes_min = 0;
};

// Called on the calling thread; both may be empty.
struct Callbacks {
  // Called at least once a second; false cancels the download.
  std::function<bool()> tick;
  // Called often, with the bytes on disk and the bytes of the whole file; 0: not known.
  std::function<void(uint64_t bytes_done, uint64_t bytes_all)> progress;
};

struct Downloaded {
  uint64_t bytes = 0;
  uint64_t received = 0;  // by this call; an earlier call received the others
};

// Whether the file exists with this hash. kConflict: the path has a different file. kUnavailable:
// `tick` cancelled the reading of the file. Other codes: see SystemError().
Result<bool> IsDownloaded(const std::filesystem::path& path, const std::string& sha256,
                          const std::function<bool()>& tick = {});

// Downloads the file, unless IsDownloaded(). It appears complete, checked and synced, or not at
// all. Data of an interrupted download stays in PartialPath(path), and the next download continues
// from it if the server supports that. One call at a time may download to a path. Its folder must
// exist.
//
// A login for a host can be in ~/.netrc. Environment variables such as https_proxy name proxies.
// SSL_CERT_FILE can name the file with certificates of authorities.
//
// Messages begin with the URL without its secrets.
//
// - kInvalid: the URL or its protocol is not supported.
// - kUnavailable: no complete file was received, or `tick` cancelled the download. The message has
//   the HTTP status, if there is one.
// - kCorrupt: the hash differs, also after a second download from the first byte if the first one
//   was received in several parts. Nothing is left on the disk.
// - kStorageFull, kDenied: errors of the file system; kConflict: see IsDownloaded().
Result<Downloaded> DownloadFile(const File& file, const Options& options,
                                const Callbacks& callbacks = {});

// The path of the incomplete file.
std::filesystem::path PartialPath(const std::filesystem::path& path);

}  // namespace attune::download
