#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cli/client/endpoint.h"
#include "cli/host.h"
#include "cli/json.h"
#include "rest/contract.h"
#include "server/folder/server_socket.h"

namespace httplib {
class Server;
}

namespace attune::cli {

// A server of docs/reference/rest-api.md with answers recorded beforehand, on a free port of this
// host. Its token is "secret".
class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  // The answer to GET `path`. A path is without /api/v1; it may have a query.
  void Answer(const std::string& path, Json body, int status = 200);
  void AnswerText(const std::string& path, std::string body,
                  std::map<std::string, std::string> headers = {});
  void AnswerPost(const std::string& path, Json body, int status);
  void AnswerDelete(const std::string& path, Json body, int status);

  // Adds an event to the log that /events tells.
  void Tell(const std::string& kind, Json data);
  // The same for a fact that is several events of one sequence number: the last has it as its id.
  void TellAsOne(const std::vector<std::pair<std::string, Json>>& events);
  // Runs once, when the next events stream is opened.
  void OnStream(std::function<void()> act);
  // Ends every open events stream, as a restart would.
  void BreakStreams();

  // What was asked, in order: "GET /sweeps?page_size=1", "POST /sweeps?file=…".
  std::vector<std::string> requests() const;
  std::string last_body() const;      // of the newest POST
  std::string last_event_id() const;  // the header of the newest request for events

  Endpoint endpoint() const { return {url(), "secret", "the test"}; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Runs on the data folder from now on: writes the token, and answers where it is.
  void WriteTo(const std::filesystem::path& data_dir);

  // No longer runs on that folder. From now on it is another program with the server's port.
  void Leave() { socket_.reset(); }

 private:
  struct Recorded {
    int status = 200;
    std::string body;
    std::string type = "application/json";
    std::map<std::string, std::string> headers;
  };
  struct Parts;

  std::unique_ptr<Parts> parts_;
  int port_ = 0;
  std::unique_ptr<server::ServerSocket> socket_;
};

// A server that a verb believes to have started in this process.
class FakeRunning final : public RunningServer {
 public:
  explicit FakeRunning(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}
  Endpoint endpoint() const override { return endpoint_; }
  std::string https_url() const override { return ""; }
  std::string rpc_target() const override { return ""; }
  tls::Join join() const override { return {"secret", ""}; }

 private:
  Endpoint endpoint_;
};

// A folder that is gone at the end of the test.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  const std::filesystem::path& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& text) const;  // its path

 private:
  std::filesystem::path path_;
};

// Answers of a server, and the same as JSON.
rest::SweepDetail MakeSweep(const std::string& id, const std::string& state);
rest::TrialDetail MakeTrial(int number, const std::string& state);
Json SweepJson(const std::string& id, const std::string& state);
Json TrialJson(int number, const std::string& state);
Json ProblemJson(int status, const std::string& title, const std::string& detail,
                 const std::vector<rest::Fault>& faults = {});

}  // namespace attune::cli
