#include "attune/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "attune/context.h"
#include "attune/error.h"
#include "attune/file_lock.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr long kRedirectionsMax = 10;

// How often a download in training code announces a silence.
constexpr std::chrono::minutes kAnnounceInterval{1};

// Removes parts that may be secret, such as a password or a signature.
std::string WithoutSecrets(std::string url) {
  url.erase(std::min(url.find('?'), url.size()));
  const std::size_t host = url.find("://");
  if (host == std::string::npos) return url;
  const std::string_view authority = std::string_view(url).substr(0, url.find('/', host + 3));
  const std::size_t at = authority.rfind('@');
  if (at != std::string_view::npos && at > host) url.erase(host + 3, at - host - 2);
  return url;
}

std::string CheckedHash(std::string_view sha256) {
  std::string lower(sha256);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!IsSha256(lower)) {
    throw Error("Download: \"" + lower + "\" is not a SHA-256 of 64 hex digits; `sha256sum FILE` " +
                "prints the hash of a file");
  }
  return lower;
}

fs::path WithSuffix(const fs::path& path, const char* ending) { return path.string() + ending; }

struct Job {
  const std::string& url;
  const std::string sha256;
  const fs::path& path;
  const DownloadOptions& options;
  const std::function<void()> tick;  // called many times a second during the download
  const fs::path partial = WithSuffix(path, ".partial");
  const Clock::time_point began = Clock::now();

  std::chrono::milliseconds left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout -
                                                                 (Clock::now() - began));
  }

  [[noreturn]] void Fail(const std::string& why) const {
    throw Error("Download: " + WithoutSecrets(url) + ": " + why);
  }
};

std::string HashOf(const fs::path& file, const Job& job) {
  return trainable::OrThrow(Sha256::HexOfFile(file, job.tick), "Download");
}

// Whether the file exists already. Throws attune::Error if the path has a different file.
bool IsDownloaded(const Job& job) {
  if (!fs::exists(job.path)) return false;
  const std::string found = HashOf(job.path, job);
  if (found == job.sha256) return true;
  throw Error("Download: " + job.path.string() +
              " is there, but is a different file: its SHA-256 is " + found + " instead of " +
              job.sha256 + "; delete it to download the file again, or correct the hash");
}

// The incomplete file of a download.
class Partial {
 public:
  explicit Partial(const Job& job) : job_(job) {
    fd_.reset(open(job.partial.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!fd_.valid()) Refuse(errno);
  }

  std::int64_t bytes() const {
    struct stat file {};
    fstat(fd_.get(), &file);
    return file.st_size;
  }

  // Returns an errno, or 0.
  int Append(const char* data, std::size_t bytes) {
    return WriteAt(fd_.get(), {data, bytes}, 0) ? 0 : errno;  // O_APPEND writes at the end
  }

  int Clear() { return ftruncate(fd_.get(), 0) == 0 ? 0 : errno; }

  // Renames it to its final name, durably.
  void Commit() {
    if (const Status published = Publish(fd_.get(), job_.partial, job_.path); !published.ok()) {
      unlink(job_.partial.c_str());
      job_.Fail(published.error().message);
    }
  }

  // Throws an error, after removing the incomplete file, because the disk may be full.
  [[noreturn]] void Refuse(int error) const {
    const std::string progress = fd_.valid() ? ", after " + std::to_string(bytes()) + " bytes" : "";
    unlink(job_.partial.c_str());
    job_.Fail(job_.partial.string() + ": " + std::strerror(error) + progress);
  }

 private:
  const Job& job_;
  UniqueFd fd_;
};

// One request and its response.
class Request {
 public:
  Request(const Job& job, Partial& partial)
      : job_(job),
        partial_(partial),
        offset_(partial.bytes()),
        curl_(curl_easy_init(), &curl_easy_cleanup) {
    Set(CURLOPT_URL, job.url.c_str());
    Set(CURLOPT_PROTOCOLS_STR, "http,https,file");
    Set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 1L);
    Set(CURLOPT_MAXREDIRS, kRedirectionsMax);
    Set(CURLOPT_USERAGENT, "attune");
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_ERRORBUFFER, error_text_.data());
    Set(CURLOPT_WRITEFUNCTION, OnBody);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, OnProgress);
    Set(CURLOPT_XFERINFODATA, this);
    // A server without range support responds with the whole file, which works too.
    if (offset_ > 0) Set(CURLOPT_RANGE, (std::to_string(offset_) + "-").c_str());
  }

  // Returns nullopt if the response is complete, otherwise the reason for a retry. Throws
  // attune::Error if a retry is useless.
  std::optional<std::string> Perform() {
    const CURLcode code = curl_easy_perform(curl_.get());
    if (failed_) std::rethrow_exception(failed_);
    if (code != CURLE_OK && job_.left().count() < 0) {
      job_.Fail("not done after " + std::to_string(job_.options.timeout.count() / 1000) + " s; " +
                std::to_string(partial_.bytes()) +
                " bytes have arrived, and the next call continues from there");
    }
    if (code == CURLE_OK && status() == 200) StartOver();  // an empty file has no body
    if (disk_error_ != 0) partial_.Refuse(disk_error_);
    if (code == CURLE_ABORTED_BY_CALLBACK) {
      return "received nothing for " + std::to_string(job_.options.stall_timeout.count()) + " ms";
    }
    switch (code) {
      case CURLE_OK:
        return RetryReason(status());
      case CURLE_RANGE_ERROR:
      case CURLE_BAD_DOWNLOAD_RESUME:
        return std::nullopt;  // the file is shorter than the partial one; the hash will differ
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
      case CURLE_COULDNT_CONNECT:
      case CURLE_PARTIAL_FILE:
      case CURLE_OPERATION_TIMEDOUT:
      case CURLE_GOT_NOTHING:
      case CURLE_RECV_ERROR:
      case CURLE_SEND_ERROR:
      case CURLE_SSL_CONNECT_ERROR:
      case CURLE_HTTP2:
      case CURLE_HTTP2_STREAM:
        return error_text_[0] != '\0' ? error_text_.data() : curl_easy_strerror(code);
      default:
        job_.Fail(error_text_[0] != '\0' ? error_text_.data() : curl_easy_strerror(code));
    }
  }

  // Whether the partial file begins with data of an earlier download.
  bool continues_partial() const { return offset_ > 0; }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    if (const CURLcode code = curl_easy_setopt(curl_.get(), option, value); code != CURLE_OK) {
      job_.Fail(std::string("libcurl: ") + curl_easy_strerror(code));
    }
  }

  // The HTTP status; 0 for a file.
  long status() const {
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  std::optional<std::string> RetryReason(long status) const {
    switch (status) {
      case 0:
      case 200:
      case 206:
      case 416:  // no bytes after the partial file; the hash decides
        return std::nullopt;
      case 408:
      case 425:
      case 429:
      case 500:
      case 502:
      case 503:
      case 504:
        return "HTTP status " + std::to_string(status);
      default:
        job_.Fail("HTTP status " + std::to_string(status) +
                  (status == 404 || status == 410 ? ": there is no such file; correct the URL"
                                                  : ": the server refuses the file"));
    }
  }

  // The server sends the whole file, although only the rest was requested.
  void StartOver() {
    if (std::exchange(offset_, 0) > 0) disk_error_ = partial_.Clear();
  }

  static std::size_t OnBody(char* data, std::size_t, std::size_t bytes, void* self) {
    auto& request = *static_cast<Request*>(self);
    const long status = request.status();
    if (status != 0 && status != 200 && status != 206)
      return bytes;  // the body of an error response
    if (status == 200) request.StartOver();
    if (request.disk_error_ == 0) request.disk_error_ = request.partial_.Append(data, bytes);
    return request.disk_error_ == 0 ? bytes : 0;
  }

  // Called at least once a second. Exceptions must not pass through libcurl.
  static int OnProgress(void* self, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
    auto& request = *static_cast<Request*>(self);
    try {
      request.job_.tick();
    } catch (...) {
      request.failed_ = std::current_exception();
    }
    const auto now = Clock::now();
    if (std::exchange(request.received_, received) != received) request.last_progress_ = now;
    const bool stalled = now - request.last_progress_ > request.job_.options.stall_timeout;
    return request.failed_ || stalled || request.job_.left().count() < 0 ? 1 : 0;
  }

  const Job& job_;
  Partial& partial_;
  std::int64_t offset_;  // offset of the first requested byte
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  curl_off_t received_ = 0;  // bytes
  Clock::time_point last_progress_ = Clock::now();
  int disk_error_ = 0;
  std::exception_ptr failed_;
};

void Fetch(const Job& job) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) job.Fail(std::string("libcurl: ") + curl_easy_strerror(ready));

  Partial partial(job);
  bool may_be_other_file = partial.bytes() > 0;
  std::int64_t most_bytes = partial.bytes();  // the largest size of the partial file so far
  for (int failures = 0;;) {
    Request request(job, partial);
    const std::optional<std::string> failure = request.Perform();
    may_be_other_file = may_be_other_file && request.continues_partial();
    if (!failure) {
      const std::string found = HashOf(job.partial, job);
      if (found == job.sha256) break;
      const std::int64_t bytes = partial.bytes();
      if (const int error = partial.Clear(); error != 0) partial.Refuse(error);
      // Data of an earlier download may belong to another file; download everything once more.
      if (std::exchange(may_be_other_file, false)) continue;
      unlink(job.partial.c_str());
      job.Fail("the downloaded file (" + std::to_string(bytes) + " bytes) has the SHA-256 " +
               found + " instead of " + job.sha256 +
               "; the file has changed on the server, or the hash is wrong");
    }
    if (partial.bytes() > most_bytes) failures = 0;
    most_bytes = std::max(most_bytes, partial.bytes());
    if (++failures >= job.options.tries) {
      job.Fail(*failure + " (tries: " + std::to_string(failures) + "). If this persists, " +
               "put the file at " + job.path.string() + " yourself");
    }
    job.tick();
    std::this_thread::sleep_for(job.options.backoff * (1 << std::min(failures - 1, 10)));
  }
  partial.Commit();
}

void ObtainFile(const Job& job) {
  if (IsDownloaded(job)) return;
  std::error_code failed;
  if (job.path.has_parent_path()) fs::create_directories(job.path.parent_path(), failed);
  if (failed) job.Fail(job.path.parent_path().string() + ": " + failed.message());
  const FileLock lock(WithSuffix(job.path, ".lock"), job.left(), job.tick);
  if (IsDownloaded(job)) return;  // another process has downloaded it
  std::cerr << "attune: downloading " + WithoutSecrets(job.url) + " to " + job.path.string() + "\n";
  Fetch(job);
}

}  // namespace

void Download(const std::string& url, std::string_view sha256, const fs::path& path,
              const DownloadOptions& options) {
  ObtainFile({url, CheckedHash(sha256), path, options, [] {}});
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
  ObtainFile({url, CheckedHash(sha256), path, options, tick});
}

}  // namespace attune::inline sdk
