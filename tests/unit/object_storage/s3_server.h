#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "object_storage/settings.h"
#include "system/unique_fd.h"

namespace attune::object_storage {

// s3_server.py: moto with faults in front of it. The tests share one process, because it takes a
// second to start.
class S3Server {
 public:
  // Null if moto or rclone is not installed; then WhyMissing() says why.
  static S3Server* Shared();
  static std::string WhyMissing();

  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  std::string endpoint() const { return "http://127.0.0.1:" + port_; }

  static std::string NewBucketName();  // another at each call, and not the beginning of another
  void MakeBucket(const std::string& name);
  void Put(const std::string& bucket, const std::string& key, const std::string& text);
  void BeginUpload(const std::string& bucket, const std::string& key);  // in parts
  std::vector<std::string> Keys(const std::string& bucket);
  std::vector<std::string> UnfinishedUploads(const std::string& bucket);

  // The next `count` requests that match the pattern get the fault; see s3_server.py.
  void Fail(const std::string& kind, const std::string& pattern, int count = 1'000'000);
  // The requests since the last call that match the pattern, such as "PUT /bucket/key".
  std::vector<std::string> Requests(const std::string& pattern);
  void Await(const std::string& pattern);

 private:
  explicit S3Server(const std::string& wheels);
  std::string ReadLine();
  std::string Command(const std::string& json);

  pid_t pid_ = 0;
  UniqueFd stream_;
  std::string received_;
  std::string port_;
};

// The environment of tests: PATH and HOME of this process, an rclone, and credentials that moto
// accepts. HOME has no credentials.
Environment TestEnvironment();

}  // namespace attune::object_storage
