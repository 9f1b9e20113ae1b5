#include "cli/client/sse.h"

#include <charconv>

namespace attune::cli {

std::vector<SseParser::Message> SseParser::Feed(std::string_view chunk) {
  std::vector<Message> messages;
  for (const char c : chunk) {
    const bool second_half = after_return_ && c == '\n';
    after_return_ = c == '\r';
    if (second_half) continue;
    if (c != '\r' && c != '\n') {
      line_ += c;
      continue;
    }
    TakeLine(line_, messages);
    line_.clear();
  }
  return messages;
}

void SseParser::TakeLine(std::string_view line, std::vector<Message>& messages) {
  if (line.empty()) {
    if (has_data_) {
      messages.push_back({.id = id_, .kind = kind_.empty() ? "message" : kind_, .data = data_});
    }
    id_.clear();
    kind_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);

  if (field == "id") {
    id_ = value;
  } else if (field == "event") {
    kind_ = value;
  } else if (field == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (field == "retry") {
    int milliseconds = 0;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), milliseconds);
    if (error == std::errc() && end == value.data() + value.size()) retry_ms_ = milliseconds;
  }
}

}  // namespace attune::cli
