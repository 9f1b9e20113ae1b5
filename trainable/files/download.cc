#include "attune/download.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <functional>
#include <iostream>
#include <optional>

#include "attune/context.h"
#include "attune/error.h"
#include "attune/file_lock.h"
#include "download/download.h"
#include "download/url.h"
#include "system/sha256.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// How often a download in training code announces a silence.
constexpr std::chrono::minutes kAnnounceInterval{1};

std::string CheckedHash(std::string_view sha256) {
  std::string lower(sha256);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!IsSha256(lower)) {
    throw Error("Download: \"" + lower + "\" is not a SHA-256 of 64 hex digits; `sha256sum FILE` " +
                "prints the hash of a file");
  }
  return lower;
}

// One call of Download(). `tick` is called at least once a second.
class FileDownload {
 public:
  FileDownload(download::File file, const DownloadOptions& options, std::function<void()> tick)
      : file_(std::move(file)), options_(options), tick_(std::move(tick)) {}

  void Run() {
    if (IsDownloaded()) return;
    const fs::path folder = file_.path.parent_path();
    std::error_code failed;
    if (!folder.empty()) fs::create_directories(folder, failed);
    if (failed) throw Error("Download: " + folder.string() + ": " + failed.message());
    const FileLock lock(file_.path.string() + ".lock", TimeLeft(), tick_);
    if (IsDownloaded()) return;  // another process has downloaded it
    std::cerr << "attune: downloading " + download::WithoutSecrets(file_.url) + " to " +
                     file_.path.string() + "\n";
    Finish(download::DownloadFile(file_,
                                  {.timeout = TimeLeft(),
                                   .stall_timeout = options_.stall_timeout,
                                   .tries = options_.tries,
                                   .backoff = options_.backoff},
                                  {.tick = [this] { return Tick(); }}));
  }

 private:
  std::chrono::milliseconds TimeLeft() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(options_.timeout -
                                                                 (Clock::now() - began_));
  }

  // Keeps an exception, because the download library does not throw.
  bool Tick() {
    try {
      tick_();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    return !thrown_;
  }

  // Throws attune::Error if the path has a different file.
  bool IsDownloaded() {
    return Finish(download::IsDownloaded(file_.path, file_.sha256, [this] { return Tick(); }));
  }

  template <typename T>
  T Finish(Result<T> result) const {
    if (thrown_) std::rethrow_exception(thrown_);
    if (!result.ok() && result.error().code == ErrorCode::kUnavailable) {
      throw Error("Download: " + result.error().message + ". If this persists, put the file at " +
                  file_.path.string() + " yourself");
    }
    return trainable::OrThrow(std::move(result), "Download");
  }

  const download::File file_;
  const DownloadOptions& options_;
  const std::function<void()> tick_;
  const Clock::time_point began_ = Clock::now();
  std::exception_ptr thrown_;
};

}  // namespace

void Download(const std::string& url, std::string_view sha256, const fs::path& path,
              const DownloadOptions& options) {
  FileDownload({url, CheckedHash(sha256), path}, options, [] {}).Run();
}

void Download(Context& context, const std::string& url, std::string_view sha256,
              const fs::path& path, const DownloadOptions& options) {
  std::optional<Clock::time_point> announced;
  // Announces a silence. A plain heartbeat would end the silence of Setup().
  const auto tick = [&] {
    if (announced && Clock::now() - *announced < kAnnounceInterval) return;
    announced = Clock::now();
    context.Heartbeat(Context::kSetupSilence);
  };
  FileDownload({url, CheckedHash(sha256), path}, options, tick).Run();
}

}  // namespace attune::inline sdk
