#include "server/http/transport/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace attune::server {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header
constexpr size_t kChunk = 1 << 16;

z_stream StreamOver(std::string_view bytes) {
  ATTUNE_CHECK(bytes.size() <= std::numeric_limits<uInt>::max());
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  return stream;
}

}  // namespace

std::string Gzip(std::string_view bytes, GzipEffort effort) {
  z_stream stream = StreamOver(bytes);
  const int level = effort == GzipEffort::kFast ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION;
  ATTUNE_CHECK(deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) ==
               Z_OK);
  std::string packed(deflateBound(&stream, stream.avail_in), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ATTUNE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::optional<std::string> Gunzip(std::string_view bytes) {
  z_stream stream = StreamOver(bytes);
  ATTUNE_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK);
  std::string plain;
  int code = Z_OK;
  while (code == Z_OK) {
    plain.resize(stream.total_out + kChunk);
    stream.next_out = reinterpret_cast<Bytef*>(plain.data() + stream.total_out);
    stream.avail_out = kChunk;
    code = inflate(&stream, Z_NO_FLUSH);
  }
  plain.resize(stream.total_out);
  inflateEnd(&stream);
  if (code != Z_STREAM_END) return std::nullopt;
  return plain;
}

}  // namespace attune::server
