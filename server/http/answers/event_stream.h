#pragma once

#include <string>
#include <vector>

#include "core/log/event.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int kRetryMs = 2'000;      // how soon a browser comes back
inline constexpr int kEventsPerTurn = 256;  // read and written at once

// One event of docs/rest-api.md: its name and the text of its data.
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

// What every stream begins with.
std::string StreamGreeting();

}  // namespace attune::server
