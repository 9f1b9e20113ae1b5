#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "object_storage/process.h"
#include "object_storage/settings.h"

namespace attune::object_storage {

// The kind of the error that rclone reported in this message:
//
// - kDenied: credentials are missing, wrong or expired, or lack a permission.
// - kStorageFull: a quota or a disk is full.
// - kInvalid: there is no such bucket, or a setting such as the region is wrong.
// - kNotFound: there is no such object or folder.
// - kUnavailable: any other error, such as the network, a status 5xx or throttling.
ErrorCode CodeOf(std::string_view message, int exit_code);

// The error of an rclone that failed, with its last message that says why, without secrets.
Error RcloneError(const ProcessEnd& end, const Environment& environment);

}  // namespace attune::object_storage
