#include "system/system_error.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/result.h"

namespace attune {
namespace {

TEST(SystemError, DistinguishesFullDiskFromShortageAndRefusal) {
  EXPECT_EQ(SystemError("cannot write x", ENOSPC).code, ErrorCode::kStorageFull);
  EXPECT_EQ(SystemError("cannot write x", EDQUOT).code, ErrorCode::kStorageFull);
  EXPECT_EQ(SystemError("cannot open x", EMFILE).code, ErrorCode::kUnavailable);
  EXPECT_EQ(SystemError("cannot open x", EACCES).code, ErrorCode::kDenied);
}

}  // namespace
}  // namespace attune
