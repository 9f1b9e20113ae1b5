#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attune::cli {

// Reads `text/event-stream` (HTML Living Standard §9.2.6) from chunks that may be cut anywhere.
class SseParser {
 public:
  struct Message {
    std::string id;    // resumes a stream after this message; may be empty
    std::string kind;  // "message" by default
    std::string data;
  };

  // Returns the messages that end in this chunk.
  std::vector<Message> Feed(std::string_view chunk);

  // Milliseconds to wait before reconnecting; nullopt until the server sends that.
  std::optional<int> retry_ms() const { return retry_ms_; }

 private:
  void TakeLine(std::string_view line, std::vector<Message>& messages);

  std::string line_;
  bool after_return_ = false;  // a line feed directly after a carriage return is part of it
  std::string id_;
  std::string kind_;
  std::string data_;
  bool has_data_ = false;
  std::optional<int> retry_ms_;
};

}  // namespace attune::cli
