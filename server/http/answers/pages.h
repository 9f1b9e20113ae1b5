#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/http/transport/message.h"

namespace attune::server {

// The file of the dashboard that becomes a report (answers/report_file.h).
inline constexpr std::string_view kReportTemplate = "/report.html";

// A file of the dashboard that is embedded in the program.
struct Asset {
  std::string_view path;  // /index.html, /assets/app-3f2a.js
  std::string_view mime;
  std::string_view etag;  // with or without quotes
  std::string_view body;
  bool gzip = false;  // `body` is compressed
};

// Serves the dashboard's files, except the template of reports. A path without a file gets the main
// page, which interprets the path itself (/sweeps/s1/trials/17), unless it is in the folder of
// hashed files.
class Pages {
 public:
  // The assets must outlive the object.
  explicit Pages(std::span<const Asset> assets) : assets_(assets) {}

  Response Get(const Request& request) const;

  // The content of a file, not compressed; nullopt: there is no such file, or it is damaged.
  std::optional<std::string> Content(std::string_view path) const;

 private:
  const Asset* Find(std::string_view path) const;

  std::span<const Asset> assets_;
};

}  // namespace attune::server
