#include "server/masked_log.h"

#include <algorithm>
#include <string>

namespace attune::server {

Result<Backend::LogSlice> ReadMasked(const LogRange& wanted, const SecretMask& mask,
                                     const ReadLogRange& read) {
  // A secret may begin this many bytes before the part, or end this many bytes after it.
  const int64_t margin = std::max<int64_t>(static_cast<int64_t>(mask.longest_bytes()) - 1, 0);
  const int64_t from =
      wanted.offset < 0 ? wanted.offset - margin : std::max<int64_t>(wanted.offset - margin, 0);
  const uint32_t limit = wanted.limit_bytes + static_cast<uint32_t>(2 * margin);
  auto slice = read({from, limit});
  if (!slice.ok() || margin == 0) return slice;

  const auto log_bytes = static_cast<int64_t>(slice->file_bytes);
  const int64_t offset = wanted.offset < 0 ? log_bytes + wanted.offset : wanted.offset;
  const auto gap = static_cast<int64_t>(slice->gap_begin);
  const bool has_gap = slice->gap_begin < slice->gap_end;
  if (has_gap && static_cast<int64_t>(slice->offset) < gap && offset >= gap) {
    // The margin lies before the gap, so the slice ends there.
    slice = read({gap, limit});
    if (!slice.ok()) return slice;
  }

  mask.Apply(slice->data);
  const auto begin = static_cast<int64_t>(slice->offset);
  const int64_t end = begin + std::ssize(slice->data);
  const int64_t first = std::clamp(offset, begin, end);
  const bool whole = end >= log_bytes || (has_gap && end == gap);
  const int64_t known = whole ? end : std::max(end - margin, first);
  const int64_t last = std::min(first + int64_t{wanted.limit_bytes}, known);
  slice->data =
      slice->data.substr(static_cast<size_t>(first - begin), static_cast<size_t>(last - first));
  slice->offset = static_cast<uint64_t>(first);
  return slice;
}

}  // namespace attune::server
