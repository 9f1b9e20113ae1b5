#pragma once

#include <string_view>

#include "base/result.h"
#include "server/folder/code_storage.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Handles requests for snapshots of code. Any thread.
class Code {
 public:
  // `storage` must outlive the object; null: the server keeps no code.
  explicit Code(CodeStorage* storage) : storage_(storage) {}

  Response Get(const Request& request, const Target& target);
  Response GetManifest(const Request& request, const Target& target);
  Response GetPack(const Request& request, const Target& target);
  Response SendManifest(const Request& request, const Target& target);
  Response SendPack(const Request& request, const Target& target);

 private:
  Response GetPart(const Request& request, const Target& target, std::string_view part);
  static Response Answer(const Target& target, const Result<CodeStorage::Progress>& progress);

  CodeStorage* const storage_;
};

}  // namespace attune::server
