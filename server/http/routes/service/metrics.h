#pragma once

#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

// The server's metrics in Prometheus' text format.
class MetricsPage {
 public:
  // All arguments must outlive the object.
  MetricsPage(Backend& backend, Reader& reader, const std::string& version)
      : backend_(backend), reader_(reader), version_(version) {}

  Response Get(const Request&, const Target&);

 private:
  Backend& backend_;
  Reader& reader_;
  const std::string& version_;
};

}  // namespace attune::server
