#pragma once

#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int kTimelineDefault = 1'000;
inline constexpr int kTimelineMax = 5'000;
// Occupancies are computed from at most this many attempts, the newest ones.
inline constexpr size_t kOccupancyAttempts = 100'000;

// Handles requests about the slots that attempts have held. Any thread.
class Usage {
 public:
  // The arguments must outlive the object.
  Usage(Backend& backend, Reader& reader) : backend_(backend), reader_(reader) {}

  Response Timeline(const Request& request, const Target& target);
  Response Occupancies(const Request& request, const Target& target);

 private:
  Backend& backend_;
  Reader& reader_;
};

}  // namespace attune::server
