#pragma once

#include <atomic>
#include <memory>

#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

// Begins events streams and limits their number. The transport writes them. Any thread.
class Events {
 public:
  // The reader must outlive the object.
  Events(Reader& reader, int streams_max) : reader_(reader), streams_max_(streams_max) {}

  Response Stream(const Request& request, const Target& target);

 private:
  Reader& reader_;
  const int streams_max_;
  // Open streams; a stream may outlive the object.
  const std::shared_ptr<std::atomic<int>> streams_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace attune::server
