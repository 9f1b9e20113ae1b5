#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace attune::object_storage {

enum class Provider { kS3, kGoogle, kAzure, kFolder };

// Where objects are stored, without credentials:
//
//   s3://BUCKET/PREFIX?endpoint=URL&region=NAME&provider=NAME
//   gs://BUCKET/PREFIX?endpoint=URL
//   az://CONTAINER/PREFIX?endpoint=URL
//   file:///FOLDER
//
// The prefix and the part after `?` are optional.
struct Address {
  Provider provider = Provider::kS3;
  std::string bucket;  // the bucket or container; empty for a folder
  // The path inside the bucket, without slashes at its ends; for a folder its absolute path.
  std::string prefix;
  std::string endpoint;     // URL of the service; empty: the environment's, or the provider's
  std::string region;       // S3 only; empty: the environment's
  std::string s3_provider;  // S3 only: rclone's name of the product, such as Minio; empty: derived

  bool operator==(const Address&) const = default;
};

// Whether `text` has a scheme, such as s3://. Otherwise it is the path of a folder.
bool HasScheme(std::string_view text);

// kInvalid: the message names the address without its secrets.
Result<Address> ParseAddress(std::string_view text);

// The address for messages and for the log. It can be parsed again, except for the settings after
// `?`, which it does not contain.
std::string ToString(const Address& address);

}  // namespace attune::object_storage
