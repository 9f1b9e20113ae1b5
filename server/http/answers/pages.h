#pragma once

#include <span>
#include <string_view>

#include "server/http/transport/message.h"

namespace attune::server {

// A file of the dashboard that is embedded in the program.
struct Asset {
  std::string_view path;  // /index.html, /assets/app-3f2a.js
  std::string_view mime;
  std::string_view etag;  // with or without quotes
  std::string_view body;
  bool gzip = false;  // `body` is compressed
};

// Serves the dashboard's files. A path without a file gets the main page, which interprets the path
// itself (/sweeps/s1/trials/17), unless it is in the folder of hashed files.
class Pages {
 public:
  // The assets must outlive the object.
  explicit Pages(std::span<const Asset> assets) : assets_(assets) {}

  Response Get(const Request& request) const;

 private:
  const Asset* Find(std::string_view path) const;

  std::span<const Asset> assets_;
};

}  // namespace attune::server
