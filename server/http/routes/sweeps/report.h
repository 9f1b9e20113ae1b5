#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "server/http/answers/pages.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

// The limits of a report.
struct ReportLimits {
  int64_t trials = 10'000;  // a sweep with more is refused
  // The size of the file. Curves get what the rest leaves, and at least `curve_bytes_min`.
  size_t bytes = 5'000'000;
  size_t curve_bytes_min = 200'000;
  size_t metrics = 10;                // metrics with curves
  size_t points_min = 4;              // of a curve
  int trial_pages = 100;              // the best trials, which have pages
  size_t trial_page_bytes = 500'000;  // of all pages of trials
};

// Makes reports: a sweep's pages with the answers that they read, in one HTML file. Any thread.
class Reports {
 public:
  // Answers a request to the API.
  using Ask = std::function<Response(const Request&)>;

  // The pointers must outlive the object. `pages` may be null.
  Reports(Reader& reader, const Pages* pages, std::string version, Ask ask,
          const ReportLimits& limits = {})
      : reader_(reader),
        pages_(pages),
        version_(std::move(version)),
        ask_(std::move(ask)),
        limits_(limits) {}

  Response Get(const Request& request, const Target& target);

 private:
  Response Record(const Request& request, SweepId id, std::string page);

  Reader& reader_;
  const Pages* pages_;
  const std::string version_;
  const Ask ask_;
  const ReportLimits limits_;
};

}  // namespace attune::server
