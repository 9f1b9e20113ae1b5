#include "server/http/transport/framing.h"

#include <algorithm>
#include <utility>

#include "base/parse_number.h"

namespace attune::server {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr size_t kMaxChunkLineBytes = 256;  // the line with a chunk's size and extensions

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Whether [begin, end) contains a zero byte, or a line feed or carriage return that is not part of
// a pair.
bool HasBareEnd(std::string_view bytes, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (bytes[i] == '\0') return true;
    if (bytes[i] == '\n' && (i == 0 || bytes[i - 1] != '\r')) return true;
    if (bytes[i] == '\r' && i + 1 < bytes.size() && bytes[i + 1] != '\n') return true;
  }
  return false;
}

}  // namespace

Framing::State Framing::Read(std::string_view bytes) {
  if (state_ == State::kHead) state_ = ReadHead(bytes);
  if (state_ == State::kBody) state_ = ReadBody(bytes);
  return state_;
}

Framing::State Framing::Fail(rest::ProblemType type, std::string detail) {
  fault_ = {type, std::move(detail)};
  return State::kBad;
}

Framing::State Framing::ReadHead(std::string_view bytes) {
  const size_t blank = bytes.find("\r\n\r\n", scanned_ < 3 ? 0 : scanned_ - 3);
  const size_t most = std::min(bytes.size(), blank);
  if (HasBareEnd(bytes, scanned_ == 0 ? 0 : scanned_ - 1, most))
    return Fail(rest::ProblemType::kMalformedRequest,
                "a line of the request's head does not end with CR LF");
  if (most > kMaxHeadBytes)
    return Fail(rest::ProblemType::kHeadersTooLarge,
                "the request's head is longer than " + std::to_string(kMaxHeadBytes) + " bytes");
  scanned_ = bytes.size();
  if (blank == std::string_view::npos) return State::kHead;
  head_bytes_ = blank + 4;
  scanned_ = head_bytes_;

  std::string_view lines = bytes.substr(0, blank);
  const size_t first = std::min(lines.find(kLineEnd), lines.size());
  const std::string_view request_line = lines.substr(0, first);
  lines.remove_prefix(std::min(first + 2, lines.size()));
  const size_t method = std::min(request_line.find(' '), request_line.size());
  const std::string_view rest = request_line.substr(std::min(method + 1, request_line.size()));
  head_.method = request_line.substr(0, method);
  head_.path = rest.substr(0, rest.find(' '));
  while (!lines.empty()) {
    const size_t end = std::min(lines.find(kLineEnd), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 2, lines.size()));
    const size_t colon = line.find(':');
    // Other programs read a space before the colon, or a folded line, in different ways.
    if (colon == std::string_view::npos || colon == 0 ||
        line.substr(0, colon).find_first_of(" \t") != std::string_view::npos)
      return Fail(rest::ProblemType::kMalformedRequest, "a header of the request has no name");
    head_.headers.emplace(line.substr(0, colon), Trim(line.substr(colon + 1)));
  }
  if (auto fault = Interpret()) {
    fault_ = *std::move(fault);
    return State::kBad;
  }
  return State::kBody;
}

std::optional<Framing::Fault> Framing::Interpret() {
  const auto lengths = head_.headers.count("Content-Length");
  const auto codings = head_.headers.count("Transfer-Encoding");
  if (lengths + codings > 1)
    return Fault{rest::ProblemType::kMalformedRequest,
                 "the request gives the length of its body twice"};
  if (codings == 1) {
    if (!EqualsIgnoringCase(*head_.Header("Transfer-Encoding"), "chunked"))
      return Fault{rest::ProblemType::kUnknownEncoding,
                   "Transfer-Encoding: only chunked is supported"};
    chunked_ = true;
  }
  if (lengths == 1) {
    const auto length = ParseNumber<uint64_t>(*head_.Header("Content-Length"), 10);
    if (!length)
      return Fault{rest::ProblemType::kMalformedRequest, "Content-Length: not a number of bytes"};
    length_ = *length;
  }
  expects_continue_ = (chunked_ || length_ > 0) &&
                      EqualsIgnoringCase(head_.Header("Expect").value_or(""), "100-continue");
  return std::nullopt;
}

Framing::State Framing::ReadBody(std::string_view bytes) {
  if (chunked_) return ReadChunks(bytes);
  // A body that is too long is not read; only its head is answered.
  if (length_ > kMaxBodyBytes) return State::kBody;
  end_ = head_bytes_ + length_;
  return bytes.size() >= end_ ? State::kWhole : State::kBody;
}

Framing::State Framing::ReadChunks(std::string_view bytes) {
  for (;;) {
    const std::string_view left = bytes.substr(scanned_);
    const size_t line_end = left.find(kLineEnd);
    if (line_end == std::string_view::npos) {
      if (left.size() > kMaxChunkLineBytes)
        return Fail(rest::ProblemType::kMalformedRequest, "a chunk of the body has no size");
      return State::kBody;
    }
    if (last_chunk_) {
      if (line_end != 0)
        return Fail(rest::ProblemType::kMalformedRequest,
                    "trailer fields after a chunked body are not supported");
      end_ = scanned_ + 2;
      return State::kWhole;
    }
    const std::string_view line = left.substr(0, line_end);
    const auto size = ParseNumber<uint64_t>(Trim(line.substr(0, line.find(';'))), 16);
    if (!size || line_end > kMaxChunkLineBytes)
      return Fail(rest::ProblemType::kMalformedRequest, "a chunk of the body has no size");
    if (*size > kMaxBodyBytes || chunks_bytes_ + *size > kMaxBodyBytes ||
        scanned_ - head_bytes_ > kMaxChunkedBytes)
      return Fail(rest::ProblemType::kBodyTooLarge,
                  "the body is longer than " + std::to_string(kMaxBodyBytes) + " bytes");
    if (*size == 0) {
      last_chunk_ = true;
      scanned_ += line_end + 2;
      continue;
    }
    const size_t whole = line_end + 2 + *size + 2;
    if (left.size() < whole) return State::kBody;
    if (left.substr(whole - 2, 2) != kLineEnd)
      return Fail(rest::ProblemType::kMalformedRequest,
                  "a chunk of the body does not have the length that it announces");
    chunks_bytes_ += *size;
    scanned_ += whole;
  }
}

}  // namespace attune::server
