#include "server/http/transport/publisher.h"

#include <algorithm>
#include <vector>

#include "server/http/answers/event_stream.h"

namespace attune::server {
namespace {

constexpr int kAwaitMs = 500;  // one wait of the backend's
constexpr std::string_view kHeartbeat = ":\n\n";

}  // namespace

Publisher::Publisher(Backend& backend, Reader& reader, Deliver deliver, Happened happened)
    : backend_(backend),
      reader_(reader),
      deliver_(std::move(deliver)),
      happened_(std::move(happened)),
      awaiting_([this] { Await(); }),
      publishing_([this] { Publish(); }) {}

Publisher::~Publisher() { Stop(); }

void Publisher::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (awaiting_.joinable()) awaiting_.join();
  if (publishing_.joinable()) publishing_.join();
}

void Publisher::Follow(StreamId stream, EventSeq after, std::optional<SweepId> sweep) {
  const std::lock_guard lock(mutex_);
  streams_[stream] = {.after = after, .sweep = sweep, .written = Clock::now()};
  changed_.notify_all();
}

void Publisher::Next(StreamId stream) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  found->second.wants = true;
  changed_.notify_all();
}

void Publisher::Leave(StreamId stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

void Publisher::Watch() {
  const std::lock_guard lock(mutex_);
  watched_ = true;
  changed_.notify_all();
}

// Asks the backend only while anybody listens.
void Publisher::Await() {
  EventSeq seen{0};
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || watched_ || !streams_.empty(); });
      if (stopping_) return;
    }
    const auto begun = Clock::now();
    const EventSeq last = backend_.WaitForEvents(seen, kAwaitMs);
    bool watched = false;
    {
      std::unique_lock lock(mutex_);
      if (last > seen) {
        durable_ = std::max(durable_, last);
        watched = std::exchange(watched_, false);
        changed_.notify_all();
      } else if (Clock::now() - begun < std::chrono::milliseconds(kAwaitMs / 2)) {
        // Nothing came and yet the wait was cut short: the backend stops, and we shall.
        changed_.wait_for(lock, std::chrono::milliseconds(kAwaitMs), [&] { return stopping_; });
      }
      seen = last;
      if (watched)
        changed_.wait_for(lock, std::chrono::milliseconds(kGatherMs), [&] { return stopping_; });
    }
    if (watched) happened_();
  }
}

void Publisher::Publish() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::vector<Turn> turns;
    const auto now = Clock::now();
    auto wake = now + std::chrono::milliseconds(kHeartbeatMs);
    for (auto& [id, stream] : streams_) {
      if (!stream.wants) continue;
      const auto due = stream.written + std::chrono::milliseconds(kHeartbeatMs);
      if (stream.fresh || stream.after < durable_ || due <= now) {
        stream.fresh = stream.wants = false;
        turns.push_back({id, {stream.after, stream.sweep}, due <= now});
      } else {
        wake = std::min(wake, due);
      }
    }
    if (turns.empty()) {
      changed_.wait_until(lock, wake);
      continue;
    }
    lock.unlock();
    std::map<Place, std::optional<Text>> known;
    bool more = false;
    for (const Turn& turn : turns) {
      const auto [text, absent] = known.try_emplace(turn.place);
      if (absent) text->second = Read(turn.place);
      more |= text->second && text->second->more;
      Hand(turn, text->second);
    }
    lock.lock();
    if (!more)
      changed_.wait_for(lock, std::chrono::milliseconds(kGatherMs), [&] { return stopping_; });
  }
}

void Publisher::Hand(const Turn& turn, const std::optional<Text>& text) {
  const bool writes = text && (turn.silent || !text->text.empty());
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(turn.stream);
    if (found == streams_.end()) return;  // it has left
    Stream& stream = found->second;
    if (text) stream.after = std::max(stream.after, text->seen);
    if (text && !writes) stream.wants = true;  // facts that no page shows
    if (writes) stream.written = Clock::now();
  }
  if (!text) {
    deliver_(turn.stream, std::nullopt);
  } else if (writes) {
    deliver_(turn.stream, text->text.empty() ? std::string(kHeartbeat) : text->text);
  }
}

std::optional<Publisher::Text> Publisher::Read(const Place& place) {
  const auto& [after, sweep] = place;
  const auto page = reader_.EventsAfter(after, sweep, kEventsPerTurn);
  if (!page.ok()) return std::nullopt;  // the client comes back and is told why
  Text text{.seen = page->seen, .more = std::ssize(page->events) == kEventsPerTurn};
  for (const Event& event : page->events) text.text += EventText(event, reader_);
  return text;
}

}  // namespace attune::server
