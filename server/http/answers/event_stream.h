#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "server/http/backend/backend.h"
#include "server/http/transport/publisher.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int kEventsPerTurn = 256;  // read and written at once

// One event of docs/reference/rest-api.md: its name and the text of its data.
struct StreamEvent {
  std::string name;
  std::string data;
};

// What a fact means to the events stream; nothing for facts that no page shows. Where an attempt
// runs is looked up in `reader`.
std::vector<StreamEvent> Translate(const Event& event, Reader& reader);

// Its part of a text/event-stream. A fact may give several events: only the last carries the id, so
// that a client resumes with whole facts.
std::string EventText(const Event& event, Reader& reader);

// What the events streams say of the log. Any thread.
class EventStream final : public EventFeed {
 public:
  // Both outlive the object.
  EventStream(Backend& backend, Reader& reader) : backend_(backend), reader_(reader) {}

  EventSeq WaitForEvents(EventSeq seq, int timeout_ms) override;
  std::optional<Page> ReadAfter(EventSeq after, std::optional<SweepId> sweep) override;

 private:
  Backend& backend_;
  Reader& reader_;
};

}  // namespace attune::server
