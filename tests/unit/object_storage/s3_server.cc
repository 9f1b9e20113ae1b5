#include "tests/unit/object_storage/s3_server.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <utility>

#include "object_storage/rclone.h"
#include "system/processes.h"
#include "system/sockets.h"

namespace attune::object_storage {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// What `scripts/setup tests` installs for these tests.
fs::path Wheels() { return fs::path(ATTUNE_SOURCE_DIR) / ".deps/python-storage"; }

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Environment TestEnvironment() {
  std::string rclone = Variable("ATTUNE_RCLONE");
  if (rclone.empty() && fs::exists(Wheels() / "bin/rclone")) rclone = Wheels() / "bin/rclone";
  return {"PATH=" + Variable("PATH"), "HOME=/nonexistent", "ATTUNE_RCLONE=" + rclone,
          "AWS_ACCESS_KEY_ID=test-access-key", "AWS_SECRET_ACCESS_KEY=test-secret-key"};
}

std::string S3Server::WhyMissing() {
  static const std::string why = [] {
    const Result<Rclone> rclone = FindRclone(TestEnvironment());
    if (!rclone.ok()) return rclone.error().message;
    return Shared() == nullptr ? std::string("moto is not installed; run `scripts/setup tests`")
                               : std::string();
  }();
  return why;
}

S3Server* S3Server::Shared() {
  static const std::unique_ptr<S3Server> shared = [] {
    std::unique_ptr<S3Server> server(new S3Server(Wheels()));
    if (server->port_.empty()) server.reset();
    return server;
  }();
  return shared.get();
}

S3Server::S3Server(const std::string& wheels) {
  auto [ours, theirs] = std::move(SocketPair(SOCK_STREAM).value());
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    DieWithParent(parent);
    dup2(theirs.get(), STDIN_FILENO);
    dup2(theirs.get(), STDOUT_FILENO);
    execl(ATTUNE_PYTHON, ATTUNE_PYTHON, "-B", ATTUNE_S3_SERVER, wheels.c_str(), nullptr);
    _exit(127);
  }
  stream_ = std::move(ours);
  theirs.reset();
  port_ = ReadLine();
}

S3Server::~S3Server() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

// The next line; empty if the server has ended.
std::string S3Server::ReadLine() {
  size_t end = 0;
  while ((end = received_.find('\n')) == received_.npos) {
    std::array<char, 4096> bytes;
    const ssize_t count = recv(stream_.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return "";
    received_.append(bytes.data(), static_cast<size_t>(count));
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

std::string S3Server::Command(const std::string& json) {
  const std::string line = json + '\n';
  send(stream_.get(), line.data(), line.size(), MSG_NOSIGNAL);
  return ReadLine();
}

std::string S3Server::NewBucketName() {
  static int count = 0;
  return "test-" + std::to_string(++count) + "-bucket";
}

void S3Server::MakeBucket(const std::string& name) { Command(Json{"bucket", name}.dump()); }

void S3Server::Put(const std::string& bucket, const std::string& key, const std::string& text) {
  Command(Json{"put", bucket, key, text}.dump());
}

void S3Server::BeginUpload(const std::string& bucket, const std::string& key) {
  Command(Json{"begin", bucket, key}.dump());
}

std::vector<std::string> S3Server::Keys(const std::string& bucket) {
  return Json::parse(Command(Json{"keys", bucket}.dump()));
}

std::vector<std::string> S3Server::UnfinishedUploads(const std::string& bucket) {
  return Json::parse(Command(Json{"parts", bucket}.dump()));
}

void S3Server::Fail(const std::string& kind, const std::string& pattern, int count) {
  Command(Json{"fault", kind, pattern, count}.dump());
}

std::vector<std::string> S3Server::Requests(const std::string& pattern) {
  const std::vector<std::string> all = Json::parse(Command(Json{"requests"}.dump()));
  std::vector<std::string> matching;
  for (const std::string& each : all) {
    if (std::regex_search(each, std::regex(pattern))) matching.push_back(each);
  }
  return matching;
}

void S3Server::Await(const std::string& pattern) { Command(Json{"await", pattern}.dump()); }

}  // namespace attune::object_storage
