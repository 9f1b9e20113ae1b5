#include "executor/transfer/piece_copies.h"

#include <algorithm>
#include <stop_token>
#include <system_error>
#include <utility>

#include "checkpoints/manifest.h"
#include "checkpoints/removal.h"
#include "code/tree.h"
#include "logging/log.h"
#include "system/pause.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using checkpoints::Downloaded;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kReadPause{250};  // before a read is retried

Downloaded DownloadCheckpoint(const checkpoints::DownloadSource& source, const fs::path& copy,
                              uint64_t disk_free_bytes_min) {
  return checkpoints::Download(source, copy, {}, disk_free_bytes_min);
}

// Nobody writes to copies of checkpoints, and resuming compares their hashes.
Status TrustCheckpoint(const fs::path&, const std::string&, const std::stop_token&) { return {}; }

Status VerifyCode(const fs::path& copy, const std::string& digest, const std::stop_token&) {
  return code::VerifyCopy(copy, digest);
}

// One download.
class PieceDownload {
 public:
  PieceDownload(const PieceKind& kind, PieceSource& source, gang::RemoteFiles& files,
                std::chrono::milliseconds retry_timeout, const FetchContext& context)
      : kind_(kind),
        source_(source),
        files_(files),
        retry_timeout_(retry_timeout),
        context_(context),
        had_stored_copy_(files.stored.has_value()) {}

  Transfer Run(const std::string& digest, const fs::path& copy) {
    Downloaded done = Download(digest, copy);
    // Files from other executors or from a store, or those of an interrupted download, may be
    // damaged.
    bool resumed = done.fetched < done.bytes;
    std::string damage;
    while (HasFailed(done.status, ErrorCode::kCorrupt) && (resumed || !directly_from_.empty())) {
      damage = done.status.error().message;
      is_store_damaged_ |= is_file_of_store_;
      if (!files_.servers.empty())
        files_.servers.clear();
      else if (!resumed && !is_file_of_executor_)
        files_.stored.reset();
      logging::Warn("{}; fetching it again {}", damage,
                    files_.stored ? "from its copy" : "through the server");
      resumed = false;
      directly_from_.clear();
      direct_bytes_ = 0;
      done = Download(digest, copy);
    }
    if (!done.status.ok() && !damage.empty() && damage != done.status.error().message)
      done.status =
          Error{done.status.error().code, done.status.error().message + "; before: " + damage};
    const bool is_corrupt = HasFailed(done.status, ErrorCode::kCorrupt);
    is_store_damaged_ |= is_corrupt && had_stored_copy_;
    Transfer transfer{.status = done.status,
                      .is_final = (is_final_ || is_corrupt) && !is_store_damaged_,
                      .bytes = done.bytes,
                      .fetched = done.fetched};
    if (direct_bytes_ > 0) {
      transfer.route =
          fmt::format(", {:.1f} MB directly from {}", Megabytes(direct_bytes_), directly_from_);
    }
    return transfer;
  }

  // Whether the copy in the store is damaged, or may be. REQUIRES: Run() has returned.
  bool is_store_damaged() const { return is_store_damaged_; }

 private:
  Downloaded Download(const std::string& digest, const fs::path& copy) {
    heard_ = Clock::now();
    const auto read = [this](const std::string& file, uint64_t offset, std::string memory) {
      return Read(file, offset, std::move(memory));
    };
    const std::string name =
        files_.code.empty() ? gang::ToString(files_.name) : gang::ToString(files_);
    return kind_.download({.name = name, .digest = digest, .read = read}, copy,
                          context_.disk_free_bytes_min);
  }

  Result<checkpoints::Piece> Read(const std::string& file, uint64_t offset, std::string memory) {
    for (;;) {
      if (context_.stop.stop_requested()) return UnreadableError("no gang needs it any more");
      PieceSource::Answer answer = source_.Read(files_, file, offset, std::exchange(memory, {}));
      is_final_ = answer.is_final;
      if (answer.piece.ok()) RememberSource(answer, file, offset);
      if (!answer.directly_from.empty()) {
        directly_from_ = answer.directly_from;
        if (file != kind_.index_file) direct_bytes_ += answer.piece->data.size();
      }
      if (answer.piece.ok()) heard_ = Clock::now();
      if (answer.piece.ok() || answer.is_final || Clock::now() - heard_ >= retry_timeout_)
        return std::move(answer.piece);
      PauseUnlessStopped(std::min(kReadPause, retry_timeout_), context_.stop);
    }
  }

  // A damaged file shows that the store is damaged only if no other executor sent a part of it.
  void RememberSource(const PieceSource::Answer& answer, const std::string& file, uint64_t offset) {
    if (file != file_ || offset == 0) {
      file_ = file;
      is_file_of_store_ = is_file_of_executor_ = false;
    }
    is_file_of_executor_ |= !answer.directly_from.empty() && !answer.is_from_store;
    is_file_of_store_ = (is_file_of_store_ || answer.is_from_store) && !is_file_of_executor_;
  }

  const PieceKind& kind_;
  PieceSource& source_;
  gang::RemoteFiles& files_;
  const std::chrono::milliseconds retry_timeout_;
  const FetchContext& context_;
  const bool had_stored_copy_;
  bool is_store_damaged_ = false;
  std::string file_;                  // the last one that was read
  bool is_file_of_store_ = false;     // the store sent it or a part of it
  bool is_file_of_executor_ = false;  // another executor sent it or a part of it
  Clock::time_point heard_;           // the last answer from the source
  bool is_final_ = false;             // the last error is permanent
  uint64_t direct_bytes_ = 0;         // bytes that came directly
  std::string directly_from_;         // the last executor or store that sent some
};

}  // namespace

const PieceKind kCheckpoints{
    .copies = {.verify = TrustCheckpoint, .remove = checkpoints::RemoveFolder},
    .download = DownloadCheckpoint,
    .index_file = checkpoints::kManifestFile};
const PieceKind kCode{.copies = {.verify = VerifyCode, .remove = code::RemoveCopy},
                      .download = code::DownloadCopy,
                      .index_file = code::kManifestPart};

WantedCopy WantedFromPieces(const PieceKind& kind, PieceSource& source, gang::RemoteFiles files,
                            const std::string& digest, std::chrono::milliseconds retry_timeout,
                            std::function<void()> store_is_damaged) {
  const std::string name = gang::ToString(files);
  return {.name = name,
          .digest = digest,
          .download = [&kind, &source, files = std::move(files), digest, retry_timeout,
                       store_is_damaged = std::move(store_is_damaged)](
                          const fs::path& copy, const FetchContext& context) mutable {
            PieceDownload download(kind, source, files, retry_timeout, context);
            Transfer transfer;
            {
              const std::stop_callback cancel(context.stop, [&] { source.Cancel(); });
              transfer = download.Run(digest, copy);
            }
            source.Close();
            if (download.is_store_damaged() && store_is_damaged) store_is_damaged();
            return transfer;
          }};
}

}  // namespace attune::agent
