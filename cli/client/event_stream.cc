#include "cli/client/event_stream.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/result.h"
#include "json/parse.h"

namespace attune::cli {
namespace {

constexpr int kGone = 410;

std::optional<uint64_t> SeqOf(std::string_view id) {
  uint64_t seq = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), seq);
  if (error != std::errc() || end != id.data() + id.size() || id.empty()) return std::nullopt;
  return seq;
}

}  // namespace

EventStream::EventStream(const Endpoint& endpoint, std::string sweep, std::optional<uint64_t> after,
                         Handler handler)
    : client_(endpoint),
      sweep_(std::move(sweep)),
      last_seq_(after),
      handler_(std::move(handler)),
      thread_([this] { Loop(); }) {}

EventStream::~EventStream() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    // Repeats the cancellation, because one that comes before the socket is open has no effect.
    while (!finished_) {
      client_.Cancel();
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
  }
  thread_.join();
}

void EventStream::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const bool retry = Connect();
    lock.lock();
    if (!retry) break;
    changed_.wait_for(lock, std::chrono::milliseconds(retry_ms_), [this] { return stopping_; });
  }
  finished_ = true;
  changed_.notify_all();
}

bool EventStream::Connect() {
  const auto stopping = [this] {
    const std::lock_guard lock(mutex_);
    return stopping_;
  };
  SseParser parser;
  Request request{.path = "/api/v1/events", .query = {{"sweep", sweep_}}};
  request.headers["Accept"] = "text/event-stream";
  if (last_seq_.has_value()) {
    request.headers["Last-Event-ID"] = std::to_string(*last_seq_);
    request.query["after"] = std::to_string(*last_seq_);
  }

  const Result<Reply> reply = client_.Stream(
      request, [&] { handler_.on_open(!last_seq_.has_value()); },
      [&](std::string_view chunk) {
        for (const SseParser::Message& message : parser.Feed(chunk)) Deliver(message);
        return !stopping();
      });
  if (stopping()) return false;
  if (parser.retry_ms().has_value()) {
    const std::lock_guard lock(mutex_);
    retry_ms_ = *parser.retry_ms();
  }
  if (!reply.ok()) {
    handler_.on_lost(reply.error());
    return true;
  }
  if (reply->ok()) {
    handler_.on_lost({ErrorCode::kUnavailable, "the server closed the event stream"});
    return true;
  }
  const Error error = ErrorOf(*reply);
  if (reply->status == kGone) last_seq_.reset();  // a backup was restored; start over
  if (reply->status == kGone || reply->status >= 500) {
    handler_.on_lost(error);
    return true;
  }
  handler_.on_refused(error);
  return false;
}

// Several events can have the same sequence number. Only the last of them has it as its id, so a
// stream that breaks between them repeats all of them.
void EventStream::Deliver(const SseParser::Message& message) {
  Json data = ParseJson<Json>(message.data);
  if (!data.is_object()) return;
  const std::optional<uint64_t> id = SeqOf(message.id);
  const Json& member = MemberOf(data, "seq");
  const uint64_t seq = member.is_number_unsigned() ? member.get<uint64_t>() : id.value_or(0);
  const bool is_duplicate = last_seq_.has_value() && seq != 0 && seq <= *last_seq_;
  if (id.has_value()) last_seq_ = std::max(*id, last_seq_.value_or(0));
  if (!is_duplicate) handler_.on_event({.seq = seq, .kind = message.kind, .data = std::move(data)});
}

}  // namespace attune::cli
