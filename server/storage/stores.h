#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "object_storage/store.h"
#include "server/folder/secrets.h"

namespace attune::server {

// Credentials and settings of object stores: names and values, sorted by name.
using Variables = object_storage::Variables;

// The secrets that are variables of stores (object_storage::IsStoreVariable).
Variables StoreVariablesOf(const Secrets& secrets);

// The environment of this process.
object_storage::Environment OwnEnvironment();

// Opens object stores by their addresses. The environment of each has the variables, too. A store
// is opened again when these have changed. Any thread.
class Stores {
 public:
  using Store = std::shared_ptr<const object_storage::ObjectStore>;

  Stores(std::function<Variables()> variables, object_storage::Environment environment,
         const object_storage::StoreOptions& options)
      : variables_(std::move(variables)), environment_(std::move(environment)), options_(options) {}

  // Does not connect. Errors: those of object_storage::ParseAddress() and ObjectStore::Open().
  Result<Store> Open(const std::string& address);

  // The present variables.
  Variables variables() const { return variables_(); }

 private:
  const std::function<Variables()> variables_;
  const object_storage::Environment environment_;
  const object_storage::StoreOptions options_;

  std::mutex mutex_;
  Variables known_;                    // those of `open_`; under mutex_, like the next member
  std::map<std::string, Store> open_;  // by address
};

// Where a copy is, for people: s3://bucket/prefix/checkpoints/s1-…/17/2-900-…
std::string UrlOf(const std::string& address, const std::string& path);

}  // namespace attune::server
