#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "checkpoints/download.h"
#include "executor/gang/spec.h"
#include "executor/transfer/fetcher.h"
#include "executor/transfer/piece_source.h"

namespace attune::agent {

// A kind of copies whose files a PieceSource reads.
struct PieceKind {
  CopyKind copies;
  checkpoints::Downloaded (*download)(const checkpoints::DownloadSource& source,
                                      const std::filesystem::path& copy,
                                      uint64_t disk_free_bytes_min);
  std::string_view index_file;  // describes the others; does not count as transferred
};
extern const PieceKind kCheckpoints;
extern const PieceKind kCode;

// If the source does not answer, reads are retried for this long.
inline constexpr std::chrono::milliseconds kRetryTimeout{20'000};

// A checkpoint on another host, or a snapshot of code. An interrupted download resumes at the byte
// where it stopped. Only one download at a time may use the source, which must outlive it.
//
// Executors send files directly without encryption, and a store may have other contents. If such a
// file does not match the manifest, it is downloaded again from the next source.
//
// `store_is_damaged` is called at the end of a download if its copy in an object store is damaged,
// or may be: the server may read the same copy. Then an error is not final, because the next
// download will not use that copy.
WantedCopy WantedFromPieces(const PieceKind& kind, PieceSource& source, gang::RemoteFiles files,
                            const std::string& digest,
                            std::chrono::milliseconds retry_timeout = kRetryTimeout,
                            std::function<void()> store_is_damaged = {});

}  // namespace attune::agent
