#include "server/storage/stores.h"

#include <unistd.h>

#include "base/result.h"
#include "object_storage/address.h"
#include "object_storage/settings.h"

namespace attune::server {
namespace {

// Requests for new sweeps may name any address.
constexpr size_t kOpenMax = 64;

}  // namespace

Variables StoreVariablesOf(const Secrets& secrets) {
  Variables variables;
  const auto names = secrets.Names();
  if (!names.ok()) return variables;
  for (const std::string& name : *names) {
    if (!object_storage::IsStoreVariable(name)) continue;
    auto value = secrets.Find(name);
    if (value.ok() && *value) variables.emplace_back(name, **std::move(value));
  }
  return variables;
}

object_storage::Environment OwnEnvironment() {
  object_storage::Environment environment;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    environment.emplace_back(*variable);
  return environment;
}

Result<Stores::Store> Stores::Open(const std::string& address) {
  Variables variables = variables_();
  const std::lock_guard lock(mutex_);
  if (variables != known_) {
    open_.clear();
    known_ = std::move(variables);
  }
  if (const auto known = open_.find(address); known != open_.end()) return known->second;
  auto opened = object_storage::ObjectStore::Open(address, environment_, known_, options_);
  if (!opened.ok()) return opened.error();
  if (open_.size() >= kOpenMax) open_.clear();  // stores in use stay open
  return open_[address] = std::make_shared<const object_storage::ObjectStore>(*std::move(opened));
}

std::string UrlOf(const std::string& address, const std::string& path) {
  const auto parsed = object_storage::ParseAddress(address);
  if (!parsed.ok()) return "";
  std::string url = object_storage::ToString(*parsed);
  if (!url.ends_with('/')) url += '/';
  return url + path;
}

}  // namespace attune::server
