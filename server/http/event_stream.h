#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "server/http/backend.h"
#include "server/http/message.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int kHeartbeatMs = 15'000;  // a comment at least this often
inline constexpr int kRetryMs = 2'000;       // how soon a browser comes back
inline constexpr int kStreamWaitMs = 500;    // one wait: how soon a stream sees its reader gone
inline constexpr int kEventsPerTurn = 256;   // read and written at once

// One event of docs/rest-api.md: its name and the text of its data.
struct StreamEvent {
  std::string name;
  std::string data;
};

// What a fact means to the events stream; nothing for facts that no page shows. Where an attempt
// runs is looked up in `reader`.
std::vector<StreamEvent> Translate(const Event& event, Reader& reader);

// A text/event-stream from one place in the log on. A fact may give several events: only the last
// carries the id, so that a client resumes with whole facts.
class EventStream {
 public:
  // The backend and the reader outlive the stream. nullopt: the events of all sweeps.
  EventStream(Backend& backend, Reader& reader, EventSeq after, std::optional<SweepId> sweep)
      : backend_(backend), reader_(reader), after_(after), sweep_(sweep) {}

  // Writes what is new, or waits a little for it. False: the stream is over.
  bool Turn(Sink& sink);

 private:
  using Clock = std::chrono::steady_clock;

  bool Write(Sink& sink, const std::string& text);
  bool Wait(Sink& sink);

  Backend& backend_;
  Reader& reader_;
  EventSeq after_;
  std::optional<SweepId> sweep_;
  bool greeted_ = false;
  Clock::time_point written_;
};

}  // namespace attune::server
