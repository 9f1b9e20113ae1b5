#include "tests/unit/cli/fake_server.h"

#include <httplib.h>
#include <stdlib.h>

#include <atomic>
#include <fstream>
#include <thread>

namespace attune::cli {
namespace {

const std::string kBase = "/api/v1";

std::string WithoutBase(const std::string& target) {
  return target.starts_with(kBase) ? target.substr(kBase.size()) : target;
}

}  // namespace

struct FakeServer::Parts {
  httplib::Server http;
  std::thread thread;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Recorded> gets;
  std::map<std::string, Recorded> posts;
  std::map<std::string, Recorded> deletes;
  std::vector<std::string> requests;
  std::string last_body;
  std::string last_event_id;
  std::vector<std::string> events;  // by seq - 1, as the stream writes them
  std::function<void()> on_stream;
  int generation = 0;  // of streams; a new one ends those before it
  bool ending = false;

  bool Admit(const httplib::Request& request, httplib::Response& response) const {
    if (request.get_header_value("Authorization") == "Bearer secret") return true;
    response.status = 401;
    response.set_content(ProblemJson(401, "Unauthorized", "wrong token").dump(),
                         "application/problem+json");
    return false;
  }

  void Reply(const std::map<std::string, Recorded>& answers, const httplib::Request& request,
             httplib::Response& response) {
    const std::lock_guard lock(mutex);
    requests.push_back(request.method + ' ' + WithoutBase(request.target));
    if (request.method == "POST") last_body = request.body;
    auto found = answers.find(WithoutBase(request.target));
    if (found == answers.end()) found = answers.find(WithoutBase(request.path));
    if (found == answers.end()) {
      response.status = 404;
      response.set_content(ProblemJson(404, "Not Found", "no such sweep").dump(),
                           "application/problem+json");
      return;
    }
    response.status = found->second.status;
    for (const auto& [name, value] : found->second.headers) response.set_header(name, value);
    response.set_content(found->second.body, found->second.type);
  }

  void Stream(const httplib::Request& request, httplib::Response& response) {
    const std::lock_guard lock(mutex);
    last_event_id = request.get_header_value("Last-Event-ID");
    auto next =
        std::make_shared<size_t>(last_event_id.empty() ? events.size() : std::stoul(last_event_id));
    auto greeted = std::make_shared<bool>(false);
    const int mine = generation;
    response.set_chunked_content_provider(
        "text/event-stream", [this, next, greeted, mine](size_t, httplib::DataSink& sink) {
          const std::string text = *greeted ? Next(*next, mine) : "retry: 10\n\n";
          if (!*greeted) Greet();
          *greeted = true;
          return !text.empty() && sink.write(text.data(), text.size());
        });
  }

  void Greet() {
    std::function<void()> act;
    {
      const std::lock_guard lock(mutex);
      act.swap(on_stream);
    }
    if (act) act();
  }

  // The events from `next` on, once there are any; nothing when the stream shall end.
  std::string Next(size_t& next, int mine) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ending || generation != mine || events.size() > next; });
    if (ending || generation != mine) return "";
    std::string text;
    while (next < events.size()) text += events[next++];
    return text;
  }
};

FakeServer::FakeServer() : parts_(std::make_unique<Parts>()) {
  Parts& parts = *parts_;
  const std::string any = kBase + "/.*";
  parts.http.Get(kBase + "/events", [&parts](const auto& request, auto& response) {
    if (parts.Admit(request, response)) parts.Stream(request, response);
  });
  parts.http.Get(any, [&parts](const auto& request, auto& response) {
    if (parts.Admit(request, response)) parts.Reply(parts.gets, request, response);
  });
  parts.http.Post(any, [&parts](const auto& request, auto& response) {
    if (parts.Admit(request, response)) parts.Reply(parts.posts, request, response);
  });
  parts.http.Delete(any, [&parts](const auto& request, auto& response) {
    if (parts.Admit(request, response)) parts.Reply(parts.deletes, request, response);
  });
  parts.http.Get("/version", [](const auto&, auto& response) {
    response.set_content(
        R"({"version": "9.8.7", "api": "v1", "time": "2001-01-01T00:00:00.000000Z"})",
        "application/json");
  });
  parts.http.set_tcp_nodelay(true);
  port_ = parts.http.bind_to_any_port("127.0.0.1");
  parts.thread = std::thread([&parts] { parts.http.listen_after_bind(); });
  while (!parts.http.is_running()) std::this_thread::yield();
}

FakeServer::~FakeServer() {
  {
    const std::lock_guard lock(parts_->mutex);
    parts_->ending = true;
    parts_->changed.notify_all();
  }
  parts_->http.stop();
  parts_->thread.join();
}

void FakeServer::Answer(const std::string& path, Json body, int status) {
  const std::lock_guard lock(parts_->mutex);
  parts_->gets[path] = {.status = status, .body = body.dump()};
}

void FakeServer::AnswerText(const std::string& path, std::string body,
                            std::map<std::string, std::string> headers, const std::string& type) {
  const std::lock_guard lock(parts_->mutex);
  parts_->gets[path] = {.body = std::move(body), .type = type, .headers = std::move(headers)};
}

void FakeServer::AnswerPost(const std::string& path, Json body, int status) {
  const std::lock_guard lock(parts_->mutex);
  parts_->posts[path] = {.status = status, .body = body.dump()};
}

void FakeServer::AnswerDelete(const std::string& path, Json body, int status) {
  const std::lock_guard lock(parts_->mutex);
  parts_->deletes[path] = {.status = status, .body = body.dump()};
}

void FakeServer::Tell(const std::string& kind, Json data) { TellAsOne({{kind, std::move(data)}}); }

void FakeServer::TellAsOne(const std::vector<std::pair<std::string, Json>>& events) {
  const std::lock_guard lock(parts_->mutex);
  std::string text;
  for (const auto& [kind, data] : events) {
    if (&kind == &events.back().first) {
      text += "id: " + std::to_string(parts_->events.size() + 1) + "\n";
    }
    text += "event: " + kind + "\ndata: " + data.dump() + "\n\n";
  }
  parts_->events.push_back(text);
  parts_->changed.notify_all();
}

void FakeServer::OnStream(std::function<void()> act) {
  const std::lock_guard lock(parts_->mutex);
  parts_->on_stream = std::move(act);
}

void FakeServer::BreakStreams() {
  const std::lock_guard lock(parts_->mutex);
  ++parts_->generation;
  parts_->changed.notify_all();
}

std::vector<std::string> FakeServer::requests() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->requests;
}

std::string FakeServer::last_body() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->last_body;
}

std::string FakeServer::last_event_id() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->last_event_id;
}

void FakeServer::WriteTo(const std::filesystem::path& data_dir) {
  socket_ = server::ServerSocket::Open(data_dir, {.http = url()}).value();
  std::ofstream(data_dir / "token") << "secret\n";
}

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "attune-cli-XXXXXX").string();
  path_ = mkdtemp(name.data());
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string ScratchFolder::Write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = path_ / name;
  std::ofstream(file) << text;
  return file.string();
}

rest::SweepDetail MakeSweep(const std::string& id, const std::string& state) {
  rest::SweepDetail sweep;
  sweep.id = id;
  sweep.name = "fashion-mnist";
  sweep.state = state;
  sweep.created = "2026-11-21T10:00:00.000000Z";
  if (state != "running") sweep.ended = "2026-11-21T10:02:13.000000Z";
  sweep.metric = {.name = "accuracy", .mode = "max"};
  sweep.metrics = {{sweep.metric, std::nullopt}};
  sweep.searcher = "random";
  sweep.scheduler = "asha";
  sweep.rungs = {1, 3, 9};
  sweep.max_step = 9;
  sweep.max_trials = 12;
  sweep.workers = 2;
  sweep.min_workers = 2;
  sweep.limits.max_time = 7200;
  sweep.trials = {.running = 1, .completed = 2, .stopped = 5};
  sweep.best = {.trial = 3,
                .step = 9,
                .value = 0.871,
                .values = {0.871},
                .config = {{"lr", 0.1}, {"width", 32}},
                .metrics = {{"accuracy", 0.871}, {"loss", 0.36}},
                .checkpoint = "/data/sweeps/s1/trials/3/checkpoints/step-9-attempt-1",
                .checkpoint_step = 9};
  sweep.file = "the text";
  return sweep;
}

rest::TrialDetail MakeTrial(int number, const std::string& state) {
  rest::TrialDetail trial;
  trial.sweep = "s1";
  trial.number = number;
  trial.state = state;
  if (state == "stopped")
    trial.reason = "stopped at step 3: accuracy 0.412 is rank 9 of 11 at rung 3; the best 3 go on";
  trial.config = {{"lr", 0.1}, {"width", 32}};
  trial.origin = "random";
  trial.created = "2026-11-21T10:00:00.000000Z";
  trial.attempt_count = 1;
  trial.step = 3;
  trial.milestone = 3;
  trial.seconds = 12.25;
  trial.metrics = {{"accuracy", 0.412}, {"loss", 1.7}};
  trial.best = 0.412;
  return trial;
}

Json SweepJson(const std::string& id, const std::string& state) {
  return rest::ToJson(MakeSweep(id, state));
}

Json TrialJson(int number, const std::string& state) {
  return rest::ToJson(MakeTrial(number, state));
}

Json ProblemJson(int status, const std::string& title, const std::string& detail,
                 const std::vector<rest::Fault>& faults) {
  rest::Problem problem{.type = "about:blank", .title = title, .status = status, .detail = detail};
  if (!faults.empty()) problem.errors = faults;
  return rest::ToJson(problem);
}

}  // namespace attune::cli
