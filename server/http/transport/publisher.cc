#include "server/http/transport/publisher.h"

#include <algorithm>
#include <vector>

namespace attune::server {
namespace {

constexpr int kAwaitMs = 500;                          // one wait for the feed
constexpr uint64_t kFarBehind = 4'096;                 // events
constexpr std::chrono::milliseconds kCatchUpTime{20};  // per round, for streams far behind
constexpr std::string_view kHeartbeat = ":\n\n";

}  // namespace

Publisher::Publisher(EventFeed& feed, Deliver deliver, OnEvent on_event)
    : feed_(feed),
      deliver_(std::move(deliver)),
      on_event_(std::move(on_event)),
      awaiting_([this] { WaitForFeed(); }),
      publishing_([this] { PublishPages(); }) {}

Publisher::~Publisher() { Stop(); }

void Publisher::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  stopped_.notify_all();
  if (awaiting_.joinable()) awaiting_.join();
  if (publishing_.joinable()) publishing_.join();
}

void Publisher::AddStream(StreamId stream, EventSeq after, std::optional<SweepId> sweep) {
  const std::lock_guard lock(mutex_);
  streams_[stream] = {.after = after, .sweep = sweep, .written = Clock::now()};
  changed_.notify_all();
}

void Publisher::RequestNext(StreamId stream) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  found->second.wants = true;
  changed_.notify_all();
}

void Publisher::RemoveStream(StreamId stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

void Publisher::WatchNextEvent() {
  const std::lock_guard lock(mutex_);
  watched_ = true;
  changed_.notify_all();
}

// Waits for the feed only while there are streams or a watch.
void Publisher::WaitForFeed() {
  EventSeq seen{0};
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || watched_ || !streams_.empty(); });
      if (stopping_) return;
    }
    const auto begun = Clock::now();
    const EventSeq last = feed_.WaitForEvents(seen, kAwaitMs);
    bool watched = false;
    {
      std::unique_lock lock(mutex_);
      if (last > seen) {
        durable_ = std::max(durable_, last);
        watched = std::exchange(watched_, false);
        changed_.notify_all();
      } else if (Clock::now() - begun < std::chrono::milliseconds(kAwaitMs / 2)) {
        // The wait ended early without an event, so the server is stopping. Waits for Stop.
        stopped_.wait_for(lock, std::chrono::milliseconds(kAwaitMs), [&] { return stopping_; });
      }
      seen = last;
      if (watched)
        stopped_.wait_for(lock, std::chrono::milliseconds(kGatherMs), [&] { return stopping_; });
    }
    if (watched) on_event_();
  }
}

void Publisher::PublishPages() {
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
        turns.push_back({.stream = id,
                         .position = {stream.after, stream.sweep},
                         .silent = due <= now,
                         .behind = stream.after.value + kFarBehind < durable_.value,
                         .read = stream.read});
        stream.read = now;
      } else {
        wake = std::min(wake, due);
      }
    }
    if (turns.empty()) {
      changed_.wait_until(lock, wake);
      continue;
    }
    lock.unlock();
    std::ranges::sort(turns, {},
                      [](const Turn& turn) { return std::pair(turn.behind, turn.read); });
    std::map<Position, std::optional<EventFeed::Page>> known;
    bool more = false;
    for (size_t i = 0; i < turns.size(); ++i) {
      const Turn& turn = turns[i];
      if (turn.behind && Clock::now() - now > kCatchUpTime) {
        Postpone(std::span(turns).subspan(i));
        more = true;
        break;
      }
      const auto [page, absent] = known.try_emplace(turn.position);
      if (absent) page->second = feed_.ReadAfter(turn.position.first, turn.position.second);
      more |= page->second && page->second->more;
      DeliverPage(turn, page->second);
    }
    lock.lock();
    if (!more)
      stopped_.wait_for(lock, std::chrono::milliseconds(kGatherMs), [&] { return stopping_; });
  }
}

// Leaves these turns to the next round.
void Publisher::Postpone(std::span<const Turn> turns) {
  const std::lock_guard lock(mutex_);
  for (const Turn& turn : turns) {
    const auto found = streams_.find(turn.stream);
    if (found == streams_.end()) continue;
    found->second.fresh = found->second.wants = true;
    found->second.read = turn.read;
  }
}

void Publisher::DeliverPage(const Turn& turn, const std::optional<EventFeed::Page>& page) {
  const bool writes = page && (turn.silent || !page->text.empty());
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(turn.stream);
    if (found == streams_.end()) return;  // the stream was removed meanwhile
    Stream& stream = found->second;
    if (page) stream.after = std::max(stream.after, page->seen);
    if (page && !writes) stream.wants = true;  // only facts that the stream does not show
    if (writes) stream.written = Clock::now();
  }
  if (!page) {
    deliver_(turn.stream, std::nullopt);
  } else if (writes) {
    deliver_(turn.stream, page->text.empty() ? std::string(kHeartbeat) : page->text);
  }
}

std::string StreamGreeting() { return "retry: " + std::to_string(kRetryMs) + "\n\n"; }

}  // namespace attune::server
