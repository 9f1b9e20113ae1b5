#include "server/http/access/access.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "core/log/event.h"
#include "server/http/transport/problem.h"
#include "system/secret.h"

namespace attune::server {
namespace {

constexpr std::string_view kCookie = "attune_token";
constexpr std::string_view kBearer = "Bearer ";

bool SameName(std::string_view a, std::string_view b) {
  const CaseInsensitive before;
  return !before(a, b) && !before(b, a);
}

// Without the port: 127.0.0.1, example.org, [::1].
std::string_view NameOf(std::string_view authority) {
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket))
    authority = authority.substr(0, colon);
  return authority;
}

bool IsAddress(std::string_view name) {
  if (name.size() > 2 && name.front() == '[' && name.back() == ']')
    name = name.substr(1, name.size() - 2);
  const std::string text(name);
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

std::string MachineName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

std::optional<std::string> Cookie(const Request& request, std::string_view name) {
  const auto header = request.Header("Cookie");
  std::string_view rest = header ? *header : std::string_view();
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('='))
      return std::string(pair.substr(name.size() + 1));
  }
  return std::nullopt;
}

// The secret that a request shows.
std::optional<std::string> Shown(const Request& request) {
  const std::string header = request.Header("Authorization").value_or("");
  if (header.size() > kBearer.size() && SameName(header.substr(0, kBearer.size()), kBearer))
    return header.substr(kBearer.size());
  return Cookie(request, kCookie);
}

}  // namespace

bool IsApi(std::string_view path) { return path == "/api" || path.starts_with("/api/"); }

Access::Access(std::string host, std::shared_ptr<const Certificate> certificate, std::string secret,
               const NamedTokens* others)
    : host_(std::move(host)),
      certificate_(std::move(certificate)),
      secret_(std::move(secret)),
      others_(others) {
  ATTUNE_CHECK(!secret_.empty());
}

std::optional<Response> Access::Refuse(Request& request) const {
  const std::string host = request.Header("Host").value_or("");
  if (!KnownHost(NameOf(host)))
    return Problem(rest::ProblemType::kForeignHost,
                   "'" + host + "' is not a name of this server: ask for it at " +
                       (request.secure ? certificate_->Name() : host_ + " or localhost"));
  if (const auto origin = request.Header("Origin")) {
    const size_t scheme = origin->find("://");
    const bool own =
        scheme != std::string::npos &&
        SameName(std::string_view(*origin).substr(scheme + 3), host) &&
        (!request.secure || SameName(std::string_view(*origin).substr(0, scheme), "https"));
    if (!own)
      return Problem(rest::ProblemType::kForeignOrigin,
                     "a page of " + *origin + " may not use this server");
  }
  if (!IsApi(request.path)) return std::nullopt;
  const auto token = Known(Shown(request).value_or(""));
  if (!token) {
    Response refusal =
        Problem(rest::ProblemType::kUnauthenticated,
                "the token, of the data folder (DATA-DIR/token) or a person's own, is missing or "
                "wrong: send it as 'Authorization: Bearer TOKEN', or open the address that attune "
                "prints");
    refusal.Set("WWW-Authenticate", "Bearer realm=\"attune\"");
    return refusal;
  }
  if (token->role == Role::kViewer && request.method != "GET" && request.method != "HEAD")
    return Problem(rest::ProblemType::kReadOnlyToken,
                   "the token of " + token->name +
                       " is a viewer's, who may look and change nothing: ask whoever runs the "
                       "server for another");
  request.actor = token->name;
  return std::nullopt;
}

Response Access::Login(const Request& request) const {
  const std::string secret = request.Query("token").value_or("");
  if (!Known(secret))
    return Problem(rest::ProblemType::kUnauthenticated,
                   "the token is not this server's: open the address that attune prints");
  Response response{.status = 303};
  response.Set("Location", "/")
      .Set("Set-Cookie", std::string(kCookie) + "=" + secret +
                             "; Path=/; HttpOnly; SameSite=Strict" +
                             (request.secure ? "; Secure" : ""))
      .Set("Cache-Control", "no-store")
      .Set("Referrer-Policy", "no-referrer");
  return response;
}

bool Access::KnownHost(std::string_view name) const {
  if (SameName(name, "localhost") || name == "127.0.0.1" || name == "[::1]") return true;
  if (SameName(name, host_) || name == "[" + host_ + "]") return true;
  if (certificate_ && certificate_->IsFor(name)) return true;
  // Listening everywhere: any address may be ours, and an address is no name that can be rebound.
  const bool everywhere = host_ == "0.0.0.0" || host_ == "::";
  return everywhere && (IsAddress(name) || SameName(name, MachineName()));
}

std::optional<NamedToken> Access::Known(std::string_view secret) const {
  if (SameSecret(secret, secret_))
    return NamedToken{.name = std::string(kAdmin), .role = Role::kAdmin, .sha256 = {}};
  return others_ == nullptr || secret.empty() ? std::nullopt : others_->Find(secret);
}

}  // namespace attune::server
