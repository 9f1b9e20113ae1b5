#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "object_storage/address.h"

namespace attune::object_storage {

using Environment = std::vector<std::string>;                        // NAME=value
using Variables = std::vector<std::pair<std::string, std::string>>;  // names and values

// Whether the name is that of a provider's variable, such as AWS_ACCESS_KEY_ID.
bool IsStoreVariable(std::string_view name);

// The environment with these variables. They replace others with the same names.
Environment WithVariables(Environment environment, const Variables& variables);

// How large files are sent in parts. Other files are sent whole.
struct PartSettings {
  uint64_t from_bytes = 64 << 20;  // size of the smallest file that is sent in parts
  uint64_t part_bytes = 16 << 20;  // of a part; services refuse less than 5 MiB
  int concurrency = 4;             // parts of a file that are sent at the same time
};

// The name of the remote that RcloneEnvironment() defines, as part of rclone's arguments.
inline constexpr std::string_view kRemote = "store:";

// The environment of an rclone that can reach the address as the remote kRemote.
//
// - It has all variables of `environment`, so that the credentials of each provider work. It lacks
//   rclone's own variables, because they change what a command does. Exceptions are RCLONE_CA_CERT
//   and the variables of the provider (RCLONE_S3_…, RCLONE_GCS_…, RCLONE_AZUREBLOB_…).
// - rclone reads no configuration file.
Environment RcloneEnvironment(const Address& address, const Environment& environment,
                              const PartSettings& parts);

// kInvalid: a variable is missing that the address needs.
Status CheckEnvironment(const Address& address, const Environment& environment);

// The address's place of the path below it, as an argument of rclone: store:bucket/prefix/path/
std::string RemotePath(const Address& address, std::string_view path);

// The text of an error without secrets: replaces the values of variables whose names say that they
// are secret, and cuts what follows `?` in URLs, which may be a signature.
std::string WithoutSecrets(std::string_view text, const Environment& environment);

}  // namespace attune::object_storage
