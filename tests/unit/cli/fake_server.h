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

// A server with the REST API and prepared answers, on a free port of this host. Its token is
// "secret".
class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  // Sets the answer to GET `path`, which has no /api/v1 and may have a query.
  void Answer(const std::string& path, Json body, int status = 200);
  void AnswerText(const std::string& path, std::string body,
                  std::map<std::string, std::string> headers = {},
                  const std::string& type = "text/plain");
  void AnswerPost(const std::string& path, Json body, int status);
  void AnswerDelete(const std::string& path, Json body, int status);

  // Adds an event to the events stream.
  void Tell(const std::string& kind, Json data);
  // Adds several events with the same sequence number. Only the last one has it as its id.
  void TellAsOne(const std::vector<std::pair<std::string, Json>>& events);
  // Runs once, when the next events stream is opened.
  void OnStream(std::function<void()> act);
  // Ends every open events stream, as a restart would.
  void BreakStreams();

  // The requests so far, in order: "GET /sweeps?page_size=1", "POST /sweeps?file=…".
  std::vector<std::string> requests() const;
  std::string last_body() const;      // of the last POST
  std::string last_event_id() const;  // in the last request for events

  Endpoint endpoint() const { return {url(), "secret", "the test"}; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // From now on, runs on the data folder: writes the token there and answers with the address.
  void WriteTo(const std::filesystem::path& data_dir);

  // Leaves the data folder. From now on, this stands for another program on the server's port.
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

// A fake of a server in this process.
class FakeRunning final : public RunningServer {
 public:
  explicit FakeRunning(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}
  Endpoint endpoint() const override { return endpoint_; }
  std::string https_url() const override { return ""; }
  std::string rpc_target() const override { return ""; }
  tls::Join join() const override { return {"secret", ""}; }
  Status WaitForStorage(SweepId, const std::stop_token&) override { return {}; }

 private:
  Endpoint endpoint_;
};

// A folder that is deleted at the end of the test.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  const std::filesystem::path& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& text) const;  // returns the path

 private:
  std::filesystem::path path_;
};

// Answers of a server, as structs and as JSON.
rest::SweepDetail MakeSweep(const std::string& id, const std::string& state);
rest::TrialDetail MakeTrial(int number, const std::string& state);
Json SweepJson(const std::string& id, const std::string& state);
Json TrialJson(int number, const std::string& state);
Json ProblemJson(int status, const std::string& title, const std::string& detail,
                 const std::vector<rest::Fault>& faults = {});

}  // namespace attune::cli
