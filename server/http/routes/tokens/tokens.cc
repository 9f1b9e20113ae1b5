#include "server/http/routes/tokens/tokens.h"

#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "json/parse.h"
#include "rest/contract.h"
#include "server/http/answers/answers.h"
#include "server/http/transport/problem.h"
#include "server/store/format_time.h"

namespace attune::server {
namespace {

constexpr int kCreated = 201;

// The refusal of a request about tokens; nullopt if it may continue.
std::optional<Response> RefuseUnlessAdmin(const Request& request, const NamedTokens* tokens) {
  if (!request.is_admin)
    return Problem(rest::ProblemType::kDenied,
                   "only tokens of role admin may see and change tokens; ask the administrator of "
                   "the server");
  if (tokens == nullptr)
    return Problem(Error{ErrorCode::kUnavailable, "this server keeps no tokens except its own"});
  return std::nullopt;
}

rest::AccessToken RenderToken(const NamedToken& token) {
  rest::AccessToken rendered{
      .name = token.name, .role = std::string(ToString(token.role)), .expired = token.HasExpired()};
  if (token.expires)
    rendered.expires = FormatTime(Time{token.expires->time_since_epoch().count() * 1'000'000});
  return rendered;
}

}  // namespace

Response Tokens::List(const Request& request, const Target&) {
  if (auto refusal = RefuseUnlessAdmin(request, tokens_)) return *std::move(refusal);
  const auto tokens = tokens_->List();
  if (!tokens.ok()) return Problem(tokens.error());
  rest::AccessTokenList list;
  for (const NamedToken& token : *tokens) list.tokens.push_back(RenderToken(token));
  return Render(list);
}

Response Tokens::Create(const Request& request, const Target&) {
  if (auto refusal = RefuseUnlessAdmin(request, tokens_)) return *std::move(refusal);
  const rest::Json json = ParseJson<rest::Json>(request.body);
  if (json.is_discarded())
    return Problem(rest::ProblemType::kMalformedBody, "the body is not JSON");
  const auto asked = rest::Parse<rest::NewToken>(json);
  if (!asked.ok()) return Problem(rest::ProblemType::kInvalidDocument, asked.error().message);
  const std::string role = asked->role.value_or("viewer");
  if (role != ToString(Role::kAdmin) && role != ToString(Role::kViewer))
    return Problem(rest::ProblemType::kInvalidDocument,
                   "role: '" + role + "' is not a role of people; use admin or viewer");
  const int64_t seconds = asked->expires_in.value_or(0);
  if (seconds < 0 || seconds > kTokenLifeMax.count())
    return Problem(rest::ProblemType::kInvalidDocument,
                   "expires_in: " + std::to_string(seconds) + " is not from 0 to " +
                       std::to_string(kTokenLifeMax.count()) + " seconds; 0 means no end");
  NamedToken token{.name = asked->name,
                   .role = role == ToString(Role::kAdmin) ? Role::kAdmin : Role::kViewer};
  if (seconds > 0)
    token.expires =
        std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()) +
        std::chrono::seconds(seconds);
  const auto secret = tokens_->Create(token.name, token.role, token.expires);
  if (!secret.ok()) {
    if (secret.error().code == ErrorCode::kInvalid)
      return Problem(rest::ProblemType::kInvalidDocument, "name: " + secret.error().message);
    return Problem(secret.error());
  }
  return Render(rest::CreatedToken{{RenderToken(token)}, *secret}, kCreated);
}

Response Tokens::Revoke(const Request& request, const Target& target) {
  if (auto refusal = RefuseUnlessAdmin(request, tokens_)) return *std::move(refusal);
  const Status removed = tokens_->Remove(target.token);
  if (!removed.ok()) return Problem(removed.error());
  return Render(rest::RevokedToken{
      .name = target.token,
      .effect = "revoked; its requests get 401, its browsers are logged out, its executors leave"});
}

}  // namespace attune::server
