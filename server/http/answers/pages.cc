#include "server/http/answers/pages.h"

#include <algorithm>
#include <string>

#include "server/http/transport/gzip.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

constexpr std::string_view kIndex = "/index.html";
// The names of all files in this folder contain a hash of their contents.
constexpr std::string_view kHashedFolder = "/assets/";

bool AcceptsGzip(const Request& request) {
  return request.Header("Accept-Encoding").value_or("").find("gzip") != std::string::npos;
}

std::string QuoteEtag(std::string_view etag) {
  if (etag.starts_with('"')) return std::string(etag);
  return '"' + std::string(etag) + '"';
}

}  // namespace

const Asset* Pages::Find(std::string_view path) const {
  const auto found = std::ranges::find(assets_, path, &Asset::path);
  return found == assets_.end() ? nullptr : &*found;
}

std::optional<std::string> Pages::Content(std::string_view path) const {
  const Asset* asset = Find(path);
  if (asset == nullptr) return std::nullopt;
  return asset->gzip ? Gunzip(asset->body) : std::string(asset->body);
}

Response Pages::Get(const Request& request) const {
  const Asset* asset = request.path == kReportTemplate ? nullptr : Find(request.path);
  if (asset == nullptr && !request.path.starts_with(kHashedFolder)) asset = Find(kIndex);
  if (asset == nullptr)
    return Problem(rest::ProblemType::kNotFound,
                   assets_.empty() ? "this program was built without the dashboard"
                                   : "there is no file " + request.path);

  const std::string etag = QuoteEtag(asset->etag);
  Response response{.content_type = std::string(asset->mime)};
  response.Set("ETag", etag)
      .Set("Cache-Control", asset->path.starts_with(kHashedFolder)
                                ? "public, max-age=31536000, immutable"
                                : "no-cache")
      .Set("Vary", "Accept-Encoding")
      .Set("Content-Security-Policy",
           "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
           "frame-ancestors 'none'")
      .Set("Referrer-Policy", "no-referrer");
  if (request.Header("If-None-Match").value_or("").find(etag) != std::string::npos) {
    response.status = 304;
    return response;
  }
  if (!asset->gzip) {
    response.static_body = asset->body;
  } else if (AcceptsGzip(request)) {
    response.Set("Content-Encoding", "gzip");
    response.static_body = asset->body;
  } else if (auto plain = Gunzip(asset->body)) {
    response.body = *std::move(plain);
  } else {
    return Problem(rest::ProblemType::kInternal,
                   "the embedded file " + std::string(asset->path) + " is damaged");
  }
  return response;
}

}  // namespace attune::server
