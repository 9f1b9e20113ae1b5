#pragma once

#include <span>
#include <string_view>

#include "server/http/transport/message.h"

namespace attune::server {

// One file of the web page, embedded in the program.
struct Asset {
  std::string_view path;  // /index.html, /assets/app-3f2a.js
  std::string_view mime;
  std::string_view etag;  // with or without quotes
  std::string_view body;
  bool gzip = false;  // `body` is packed
};

// The page's files. A path that is none of them and does not look like one is the page itself,
// which reads the path (/sweeps/s1/trials/17).
class Pages {
 public:
  // The assets outlive the object.
  explicit Pages(std::span<const Asset> assets) : assets_(assets) {}

  Response Get(const Request& request) const;

 private:
  const Asset* Find(std::string_view path) const;

  std::span<const Asset> assets_;
};

}  // namespace attune::server
