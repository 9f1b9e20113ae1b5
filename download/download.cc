#include "download/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "download/curl.h"
#include "download/url.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::download {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr long kProtocols = CURLPROTO_HTTP | CURLPROTO_HTTPS | CURLPROTO_FILE;
constexpr long kRedirectionProtocols = CURLPROTO_HTTP | CURLPROTO_HTTPS;
constexpr long kRedirectionsMax = 10;
constexpr int kDoublingsMax = 10;                       // of the backoff
constexpr std::chrono::milliseconds kTickInterval{50};  // while nothing is transferred
// Other programs may fill the disk, so its free space is checked again after this many bytes.
constexpr uint64_t kSpaceCheckBytes = 16 << 20;

struct Job {
  const File& file;
  const Options& options;
  const Callbacks& callbacks;
  const Curl& curl;
  const fs::path partial = PartialPath(file.path);
  const Clock::time_point began = Clock::now();

  Error Failure(ErrorCode code, const std::string& why) const {
    return {code, WithoutSecrets(file.url) + ": " + why};
  }
  Error Failure(const Error& error) const { return Failure(error.code, error.message); }

  bool IsCancelled() const { return callbacks.tick && !callbacks.tick(); }
  Error Cancelled() const { return Failure(ErrorCode::kUnavailable, "the download was cancelled"); }

  bool IsLate() const { return options.timeout && Clock::now() - began > *options.timeout; }
  Error Late(uint64_t bytes) const {
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began);
    return Failure(ErrorCode::kUnavailable,
                   "not done after " + std::to_string(passed.count()) + " s; " +
                       std::to_string(bytes) +
                       " bytes have arrived, and the next download continues from there");
  }
};

// The incomplete file of a download.
class Partial {
 public:
  explicit Partial(const Job& job)
      : job_(job),
        fd_(open(job.partial.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                 0666)) {}

  bool is_open() const { return fd_.valid(); }

  uint64_t bytes() const {
    struct stat file {};
    fstat(fd_.get(), &file);
    return static_cast<uint64_t>(file.st_size);
  }

  uint64_t received() const { return received_; }  // bytes that were appended

  Status Append(std::string_view data) {
    received_ += data.size();
    return WriteAt(fd_.get(), data, 0) ? Status() : Refuse(errno);  // O_APPEND writes at the end
  }

  Status Clear() { return ftruncate(fd_.get(), 0) == 0 ? Status() : Refuse(errno); }

  // Renames it to its final name, durably.
  Status Commit() {
    const Status published = Publish(fd_.get(), job_.partial, job_.file.path);
    if (published.ok()) return {};
    Remove();
    return job_.Failure(published.error());
  }

  void Remove() { unlink(job_.partial.c_str()); }

  // The error of this errno. Removes the incomplete file, because the disk may be full.
  Error Refuse(int number) {
    const std::string progress = fd_.valid() ? ", after " + std::to_string(bytes()) + " bytes" : "";
    Remove();
    const Error error = SystemError(job_.partial.string(), number);
    return job_.Failure(error.code, error.message + progress);
  }

  // kStorageFull: the disk has no space for `missing` more bytes. The file stays, so that the next
  // download continues from it.
  Status CheckSpace(uint64_t missing) const {
    const uint64_t reserve = job_.options.disk_free_bytes_min;
    if (reserve == 0) return {};
    std::error_code unknown;
    const uint64_t available = fs::space(job_.partial, unknown).available;
    if (unknown || (available >= missing && available - missing >= reserve)) return {};
    return job_.Failure(ErrorCode::kStorageFull,
                        "needs " + std::to_string(missing) + " more bytes, but " +
                            job_.partial.parent_path().string() + " has " +
                            std::to_string(available) + " free and must keep " +
                            std::to_string(reserve) + " free");
  }

 private:
  const Job& job_;
  UniqueFd fd_;
  uint64_t received_ = 0;
};

// One request and its response.
class Request {
 public:
  Request(const Job& job, Partial& partial)
      : job_(job),
        partial_(partial),
        offset_(partial.bytes()),
        handle_(job.curl.easy_init(), job.curl.easy_cleanup) {
    Set(CURLOPT_URL, job.file.url.c_str());
    Set(CURLOPT_PROTOCOLS, kProtocols);
    Set(CURLOPT_REDIR_PROTOCOLS, kRedirectionProtocols);
    Set(CURLOPT_FOLLOWLOCATION, 1L);
    Set(CURLOPT_MAXREDIRS, kRedirectionsMax);
    Set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
    Set(CURLOPT_USERAGENT, "attune");
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_ERRORBUFFER, error_text_.data());
    Set(CURLOPT_WRITEFUNCTION, OnBody);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, OnProgress);
    Set(CURLOPT_XFERINFODATA, this);
    if (!job.curl.certificates.empty()) Set(CURLOPT_CAINFO, job.curl.certificates.c_str());
    // A server without range support responds with the whole file, which works too.
    if (offset_ > 0) Set(CURLOPT_RANGE, (std::to_string(offset_) + "-").c_str());
  }

  // Returns nullopt if the response is complete, otherwise the reason for a retry. An error: a
  // retry is useless.
  Result<std::optional<std::string>> Perform() {
    const CURLcode code = setup_ == CURLE_OK ? job_.curl.easy_perform(handle_.get()) : setup_;
    if (is_cancelled_) return job_.Cancelled();
    if (code != CURLE_OK && job_.IsLate()) return job_.Late(partial_.bytes());
    if (code == CURLE_OK && status() == 200) StartOver();  // an empty file has no body
    if (!written_.ok()) return written_.error();
    switch (code) {
      case CURLE_OK:
        return RetryReason(status());
      case CURLE_ABORTED_BY_CALLBACK:
        return std::optional("received nothing for " +
                             std::to_string(job_.options.stall_timeout.count()) + " ms");
      case CURLE_RANGE_ERROR:
      case CURLE_BAD_DOWNLOAD_RESUME:
        return std::optional<std::string>();  // shorter than the partial file; the hash will differ
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
        return std::optional(Text(code));
      case CURLE_PEER_FAILED_VERIFICATION:
        return job_.Failure(ErrorCode::kUnavailable,
                            Text(code) + "; SSL_CERT_FILE can name the certificates to trust");
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_URL_MALFORMAT:
        return job_.Failure(ErrorCode::kInvalid, Text(code));
      default:
        return job_.Failure(ErrorCode::kUnavailable, Text(code));
    }
  }

  // Whether the partial file begins with data of an earlier response.
  bool continues_partial() const { return offset_ > 0; }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    if (setup_ == CURLE_OK) setup_ = job_.curl.easy_setopt(handle_.get(), option, value);
  }

  std::string Text(CURLcode code) const {
    return error_text_[0] != '\0' ? error_text_.data() : job_.curl.easy_strerror(code);
  }

  // The HTTP status; 0 for a file.
  long status() const {
    long status = 0;
    job_.curl.easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  // Whether the body of a response with this status belongs to the file.
  static bool HasFile(long status) { return status == 0 || status == 200 || status == 206; }

  Result<std::optional<std::string>> RetryReason(long status) const {
    const std::string text = "HTTP status " + std::to_string(status);
    const auto refused = [&](const std::string& why) {
      return job_.Failure(ErrorCode::kUnavailable, text + ": " + why);
    };
    switch (status) {
      case 0:
      case 200:
      case 206:
      case 416:  // no bytes after the partial file; the hash decides
        return std::optional<std::string>();
      case 401:
        return refused("the server wants a login; write it to ~/.netrc");
      case 404:
      case 410:
        return refused("there is no such file; correct the URL");
      case 408:
      case 425:
      case 429:
      case 500:
      case 502:
      case 503:
      case 504:
        return std::optional(text);
      default:
        return refused("the server refuses the file");
    }
  }

  // The server sends the whole file, although only the rest was requested.
  void StartOver() {
    if (std::exchange(offset_, 0) > 0) written_ = partial_.Clear();
  }

  static size_t OnBody(char* data, size_t, size_t bytes, void* self) {
    auto& request = *static_cast<Request*>(self);
    const long status = request.status();
    if (!HasFile(status)) return bytes;  // the body of an error response
    if (status == 200) request.StartOver();
    if (request.written_.ok()) request.written_ = request.CheckSpace(bytes);
    if (request.written_.ok()) request.written_ = request.partial_.Append({data, bytes});
    return request.written_.ok() ? bytes : 0;
  }

  // Checks the space for the whole file at first, then for each part.
  Status CheckSpace(size_t bytes) {
    if (!is_begun_) {
      curl_off_t length = 0;  // negative: unknown
      job_.curl.easy_getinfo(handle_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
      is_begun_ = true;
      return partial_.CheckSpace(length > 0 ? static_cast<uint64_t>(length) : bytes);
    }
    unchecked_bytes_ += bytes;
    if (unchecked_bytes_ < kSpaceCheckBytes) return {};
    unchecked_bytes_ = 0;
    return partial_.CheckSpace(bytes);
  }

  // Called at least once a second.
  static int OnProgress(void* self, curl_off_t all, curl_off_t received, curl_off_t, curl_off_t) {
    auto& request = *static_cast<Request*>(self);
    const Job& job = request.job_;
    request.is_cancelled_ = job.IsCancelled();
    const auto now = Clock::now();
    if (std::exchange(request.received_, received) != received) request.last_progress_ = now;
    if (request.is_begun_ && job.callbacks.progress) {
      const uint64_t rest = all > 0 ? static_cast<uint64_t>(all) : 0;
      job.callbacks.progress(request.partial_.bytes(), rest > 0 ? request.offset_ + rest : 0);
    }
    const bool is_stalled = now - request.last_progress_ > job.options.stall_timeout;
    return request.is_cancelled_ || is_stalled || job.IsLate() ? 1 : 0;
  }

  const Job& job_;
  Partial& partial_;
  uint64_t offset_;  // of the first requested byte
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle_;
  CURLcode setup_ = CURLE_OK;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  bool is_begun_ = false;         // the file begins to arrive
  uint64_t unchecked_bytes_ = 0;  // since the last check of the free space
  curl_off_t received_ = 0;       // bytes
  Clock::time_point last_progress_ = Clock::now();
  Status written_;
  bool is_cancelled_ = false;
};

// Returns false if the download is cancelled or late before the pause is over.
bool Pause(const Job& job, std::chrono::milliseconds pause) {
  const auto end = Clock::now() + pause;
  for (auto now = Clock::now(); now < end; now = Clock::now()) {
    if (job.IsCancelled() || job.IsLate()) return false;
    std::this_thread::sleep_for(std::min<Clock::duration>(kTickInterval, end - now));
  }
  return true;
}

// Requests the file until a response is complete. Returns whether the file was received in one
// part, in this response.
Result<bool> Receive(const Job& job, Partial& partial) {
  uint64_t most_bytes = partial.bytes();
  for (int failures = 0;;) {
    Request request(job, partial);
    const Result<std::optional<std::string>> failure = request.Perform();
    if (!failure.ok()) return failure.error();
    if (!failure->has_value()) return !request.continues_partial();
    if (partial.bytes() > most_bytes) failures = 0;
    most_bytes = std::max(most_bytes, partial.bytes());
    if (++failures >= job.options.tries) {
      return job.Failure(ErrorCode::kUnavailable,
                         **failure + " (tries: " + std::to_string(failures) + ")");
    }
    const int doublings = std::min(failures - 1, kDoublingsMax);
    if (!Pause(job, job.options.backoff * (1 << doublings)))
      return job.IsLate() ? job.Late(partial.bytes()) : job.Cancelled();
  }
}

Result<Downloaded> Fetch(const Job& job) {
  Partial partial(job);
  if (!partial.is_open()) return partial.Refuse(errno);
  for (bool is_second = false;; is_second = true) {
    const Result<bool> in_one_part = Receive(job, partial);
    if (!in_one_part.ok()) return in_one_part.error();
    const Result<std::string> found =
        Sha256::HexOfFile(job.partial, [&] { return !job.IsCancelled(); });
    if (!found.ok()) return job.Failure(found.error());
    const uint64_t bytes = partial.bytes();
    if (*found == job.file.sha256) {
      if (Status published = partial.Commit(); !published.ok()) return published.error();
      return Downloaded{.bytes = bytes, .received = partial.received()};
    }
    if (Status cleared = partial.Clear(); !cleared.ok()) return cleared.error();
    // The parts may belong to different files; download everything once more.
    if (!*in_one_part && !is_second) continue;
    partial.Remove();
    return job.Failure(ErrorCode::kCorrupt,
                       "the downloaded file (" + std::to_string(bytes) +
                           " bytes) has the SHA-256 " + *found + " instead of " + job.file.sha256 +
                           "; the file has changed on the server, or the hash is wrong");
  }
}

}  // namespace

fs::path PartialPath(const fs::path& path) { return path.string() + ".partial"; }

Result<bool> IsDownloaded(const fs::path& path, const std::string& sha256,
                          const std::function<bool()>& tick) {
  std::error_code absent;
  if (!fs::exists(path, absent)) return false;
  const Result<std::string> found = Sha256::HexOfFile(path, tick);
  if (!found.ok()) return found.error();
  if (*found == sha256) return true;
  return Error{ErrorCode::kConflict,
               path.string() + " is there, but is a different file: its SHA-256 is " + *found +
                   " instead of " + sha256 +
                   "; delete it to download the file again, or correct the hash"};
}

Result<Downloaded> DownloadFile(const File& file, const Options& options,
                                const Callbacks& callbacks) {
  const Result<bool> exists = IsDownloaded(file.path, file.sha256, callbacks.tick);
  if (!exists.ok()) return exists.error();
  if (*exists) {
    std::error_code unknown;
    return Downloaded{.bytes = fs::file_size(file.path, unknown)};
  }
  const Result<const Curl*> curl = SharedCurl();
  if (!curl.ok()) return curl.error();
  return Fetch({file, options, callbacks, **curl});
}

}  // namespace attune::download
