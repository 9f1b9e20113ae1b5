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
#include "system/sha256.h"

namespace attune::server {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr int kReadAgainSeconds = 1;

// The host of HOST:PORT: 127.0.0.1, example.org, [::1].
std::string_view HostOf(std::string_view authority) {
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

std::optional<std::string> CookieOf(const Request& request, std::string_view name) {
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

std::optional<std::string> BearerOf(const Request& request) {
  const std::string header = request.Header("Authorization").value_or("");
  if (header.size() > kBearer.size() &&
      EqualsIgnoringCase(header.substr(0, kBearer.size()), kBearer))
    return header.substr(kBearer.size());
  return std::nullopt;
}

Response UnreadableTokensProblem(const Error& error) {
  Response refusal =
      Problem(rest::ProblemType::kUnavailable, error.message + "; send the request again later");
  refusal.Set("Retry-After", std::to_string(kReadAgainSeconds));
  return refusal;
}

}  // namespace

bool IsApi(std::string_view path) { return path == "/api" || path.starts_with("/api/"); }

Access::Access(Options options)
    : options_(std::move(options)),
      admin_{.name = std::string(kAdmin),
             .role = Role::kAdmin,
             .sha256 = Sha256::HexOf(options_.secret)} {
  ATTUNE_CHECK(!options_.secret.empty() && options_.sessions != nullptr);
}

void Access::SetPort(int port) { cookie_ = "attune_session_" + std::to_string(port); }

bool Access::ShowsToken(const Request& head) const {
  const auto token = TokenOf(head);
  return token.ok() && *token && (*token)->role != Role::kExecutor;
}

std::optional<Response> Access::Refuse(Request& request) const {
  const std::string host = request.Header("Host").value_or("");
  if (!KnownHost(HostOf(host)))
    return Problem(
        rest::ProblemType::kForeignHost,
        "'" + host + "' is not a name of this server; open it at " +
            (request.secure ? options_.certificate->Name() : options_.host + " or localhost"));
  if (const auto origin = request.Header("Origin")) {
    const size_t scheme = origin->find("://");
    const bool is_same_origin =
        scheme != std::string::npos &&
        EqualsIgnoringCase(std::string_view(*origin).substr(scheme + 3), host) &&
        (!request.secure ||
         EqualsIgnoringCase(std::string_view(*origin).substr(0, scheme), "https"));
    if (!is_same_origin)
      return Problem(
          rest::ProblemType::kForeignOrigin,
          "pages of " + *origin +
              " may not use this server; open the dashboard at the server's own address");
  }
  if (!IsApi(request.path)) return std::nullopt;
  const auto known = TokenOf(request);
  if (!known.ok()) return UnreadableTokensProblem(known.error());
  const std::optional<NamedToken>& token = *known;
  if (!token) {
    Response refusal = Problem(
        rest::ProblemType::kUnauthenticated,
        "the token is missing or wrong; send the token of the data folder (DATA-DIR/token) or "
        "your own as 'Authorization: Bearer TOKEN'; in a browser, open the link that `attune "
        "login` prints");
    refusal.Set("WWW-Authenticate", "Bearer realm=\"attune\"");
    return refusal;
  }
  if (token->role == Role::kExecutor)
    return Problem(rest::ProblemType::kDenied, "the token of " + token->name +
                                                   " has the role executor, which may only join as "
                                                   "an executor; use a token with another role");
  if (token->role == Role::kViewer && request.method != "GET" && request.method != "HEAD")
    return Problem(rest::ProblemType::kReadOnlyToken,
                   "the token of " + token->name +
                       " has the role viewer, which may only read; ask the administrator of the "
                       "server for another token");
  request.actor = token->name;
  request.is_admin = token->role == Role::kAdmin;
  return std::nullopt;
}

Response Access::Login(const Request& request) const {
  std::optional<NamedToken> token;
  if (const auto code = request.Query("code")) {
    if (options_.sessions->TakeCode(*code)) token = admin_;
    if (!token)
      return Problem(rest::ProblemType::kUnauthenticated,
                     "the link was used before or is older than ten minutes: `attune login` prints "
                     "another");
  } else {
    const auto shown = request.Query("token");
    const auto known = FindToken(shown ? *shown : BearerOf(request).value_or(""));
    if (!known.ok()) return UnreadableTokensProblem(known.error());
    if (!*known || (*known)->role == Role::kExecutor)
      return Problem(rest::ProblemType::kUnauthenticated,
                     "the token is not one of this server's; open the link that `attune login` "
                     "prints");
    token = *known;
  }
  const auto secret =
      options_.sessions->Create({.token_name = token->name, .token_sha256 = token->sha256});
  if (!secret.ok()) return Problem(secret.error());
  Response response{.status = 303};
  response.Set("Location", "/")
      .Set("Set-Cookie", Cookie(*secret, request))
      .Set("Cache-Control", "no-store")
      .Set("Referrer-Policy", "no-referrer");
  return response;
}

Response Access::Logout(const Request& request) const {
  if (const auto secret = CookieOf(request, cookie_)) options_.sessions->Remove(*secret);
  Response response{.status = 204};
  response.Set("Set-Cookie", Cookie("", request) + "; Max-Age=0").Set("Cache-Control", "no-store");
  return response;
}

std::string Access::Cookie(const std::string& value, const Request& request) const {
  return cookie_ + "=" + value + "; Path=/; HttpOnly; SameSite=Strict" +
         (request.secure ? "; Secure" : "");
}

bool Access::KnownHost(std::string_view name) const {
  if (EqualsIgnoringCase(name, "localhost") || name == "127.0.0.1" || name == "[::1]") return true;
  if (EqualsIgnoringCase(name, options_.host) || name == "[" + options_.host + "]") return true;
  if (options_.certificate && options_.certificate->IsFor(name)) return true;
  // If the server listens on all addresses, any IP address may be its own. DNS rebinding needs a
  // name, so an address is safe.
  const bool everywhere = options_.host == "0.0.0.0" || options_.host == "::";
  return everywhere && (IsAddress(name) || EqualsIgnoringCase(name, MachineName()));
}

Result<std::optional<NamedToken>> Access::FindToken(std::string_view secret) const {
  if (SecretsMatch(secret, options_.secret)) return std::optional(admin_);
  if (options_.others == nullptr || secret.empty()) return std::optional<NamedToken>();
  return options_.others->Find(secret);
}

Result<std::optional<NamedToken>> Access::FindOfSession(std::string_view secret) const {
  const auto session = options_.sessions->Find(secret);
  if (!session.ok()) return session.error();
  if (!*session) return std::optional<NamedToken>();
  const std::string& digest = (*session)->token_sha256;
  if (SecretsMatch(digest, admin_.sha256)) return std::optional(admin_);
  if (options_.others == nullptr) return std::optional<NamedToken>();
  return options_.others->FindDigest(digest);
}

Result<std::optional<NamedToken>> Access::TokenOf(const Request& request) const {
  if (const auto secret = BearerOf(request)) return FindToken(*secret);
  if (const auto secret = CookieOf(request, cookie_)) return FindOfSession(*secret);
  return std::optional<NamedToken>();
}

}  // namespace attune::server
