#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tests/unit/cli/command_line.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;

// The server does not start, so that the command ends.
class ServeStorage : public ::testing::Test {
 protected:
  ServeStorage() {
    host_.log_to = [](Output&, LogLevel) {};
    host_.start_server =
        [this](const ServeOptions& options) -> Result<std::unique_ptr<RunningServer>> {
      options_ = options;
      return Error{ErrorCode::kUnavailable, "it was started"};
    };
  }

  Ran Serve(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "serve");
    return RunAttune(flags, host_, interrupt_);
  }

  std::optional<ServeOptions> options_;
  Interrupt interrupt_;
  Host host_;
};

TEST_F(ServeStorage, AnAddressIsForSweeps) {
  Serve({"--storage-path", "s3://bucket/tune?region=eu-west-1"});
  EXPECT_EQ(options_->storage_address, "s3://bucket/tune?region=eu-west-1");
  EXPECT_TRUE(options_->storage_path.empty());
}

TEST_F(ServeStorage, AFolderIsForBestCheckpoints) {
  for (const std::string path : {"/mnt/best", "file:///mnt/best"}) {
    Serve({"--storage-path", path});
    EXPECT_EQ(options_->storage_path, "/mnt/best");
    EXPECT_EQ(options_->storage_address, "");
  }
}

TEST_F(ServeStorage, AnInvalidAddressIsRefused) {
  const Ran ran = Serve({"--storage-path", "ftp://bucket"});
  EXPECT_FALSE(options_);
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr("ftp://bucket"));
}

TEST_F(ServeStorage, BandwidthIsASize) {
  Serve({"--storage-bandwidth", "50MB"});
  EXPECT_EQ(options_->storage_bandwidth, 50'000'000);
  Serve({"--storage-bandwidth", "0"});
  EXPECT_EQ(options_->storage_bandwidth, std::nullopt) << "no limit";
  EXPECT_EQ(Serve({"--storage-bandwidth", "fast"}).code, ExitCode::kUsage);
}

}  // namespace
}  // namespace attune::cli
