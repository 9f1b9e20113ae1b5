#pragma once

#include <span>
#include <string_view>

namespace attune {

// A file of the web page, compiled into the binary. All views live as long as the process.
struct WebAsset {
  std::string_view path;  // as in a URL, with the leading slash: "/index.html"
  std::string_view mime;  // value of Content-Type
  std::string_view etag;  // value of ETag, quoted; changes with the content
  std::string_view body;  // the bytes to send
  bool gzip;              // body is gzip-compressed: send Content-Encoding: gzip
};

// All files of the page, sorted by path; "/index.html" is always among them. Paths under "/assets/"
// carry a hash of their content in the name and may be cached for ever. Without ATTUNE_WEB the only
// file is an index.html that says that the page was not built.
//
// The page keeps its state in the URL: every path that is neither a file nor the API's is answered
// with "/index.html".
std::span<const WebAsset> WebAssets();

}  // namespace attune
