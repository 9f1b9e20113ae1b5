#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace attune::inline sdk {

class Context;

// Of Download().
struct DownloadOptions {
  // For all of it, also for waiting until another process has downloaded the file.
  std::chrono::milliseconds timeout = std::chrono::hours(24);

  // A connection that brings nothing for this long, to a second, is given up.
  std::chrono::milliseconds stall_timeout = std::chrono::minutes(1);

  // How often in a row a server that is away, busy or breaks off is asked without bringing
  // anything new; and how long before the second time, twice as long before each further one.
  int tries = 5;
  std::chrono::milliseconds backoff{500};
};

// Makes sure that `path` is the file whose SHA-256, in 64 hex digits, is `sha256`: at once, where
// it is there, without asking the network; else by downloading it from `url` (http, https, or
// file).
//
// Of all processes of a host that want it one downloads, and the others wait and use the file: the
// lock is a FileLock on `path` + ".lock". The file is there complete, checked and synced, or not at
// all. What came before a connection broke off, or the process was killed, stays in `path` +
// ".partial", and the next one goes on from there where the server can. Missing folders are made.
//
// Throws attune::Error when there is no such file, when the server or the disk refuses, when
// nothing more comes (see DownloadOptions), when `path` cannot be locked, and when the hash is
// another one. That goes for a file that was there already: it is not replaced, since it may be
// anybody's.
//
// Before Main() it is done, and the file's hash read, once a host where ranks are forked.
void Download(const std::string& url, std::string_view sha256, const std::filesystem::path& path,
              const DownloadOptions& options = {});

// The same in training code, for long ones: the sweep's `stall_timeout` does not count meanwhile,
// and until the rank says something again it may be silent for Context::kSetupSilence.
void Download(Context& context, const std::string& url, std::string_view sha256,
              const std::filesystem::path& path, const DownloadOptions& options = {});

}  // namespace attune::inline sdk
