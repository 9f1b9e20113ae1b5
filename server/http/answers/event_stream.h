#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "server/http/backend/backend.h"
#include "server/http/transport/publisher.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int kEventsPerTurn = 256;  // read and written in one step

// One event of docs/reference/rest-api.md: its name and the text of its data.
struct StreamEvent {
  std::string name;
  std::string data;
};

// Converts an event of the log to events of the stream; none for facts that the dashboard does not
// show. Looks up an attempt's executor in `reader`.
std::vector<StreamEvent> Translate(const Event& event, Reader& reader);

// Converts an event to text of a text/event-stream. If it gives several stream events, only the
// last has the id, so that a client resumes after a complete fact.
std::string EventText(const Event& event, Reader& reader);

// The source of the events streams. Any thread.
class EventStream final : public EventFeed {
 public:
  // Both arguments must outlive the object.
  EventStream(Backend& backend, Reader& reader) : backend_(backend), reader_(reader) {}

  EventSeq WaitForEvents(EventSeq seq, int timeout_ms) override;
  std::optional<Page> ReadAfter(EventSeq after, std::optional<SweepId> sweep) override;

 private:
  Backend& backend_;
  Reader& reader_;
};

}  // namespace attune::server
