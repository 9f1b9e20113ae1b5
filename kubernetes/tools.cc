#include "kubernetes/tools.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>

#include "pilots/text.h"
#include "system/files.h"

namespace attune::kubernetes {
namespace {

constexpr std::string_view kAlreadyExists = "(AlreadyExists)";
constexpr std::string_view kExceededQuota = "exceeded quota";

// Parts of kubectl's messages for failures that may pass: the request itself is correct.
// The third is printed if the server cannot be asked for its types.
constexpr std::array<std::string_view, 20> kTemporaryErrors = {
    "Unable to connect to the server",
    "was refused - did you specify the right host or port",
    "the server doesn't have a resource type",
    "(ServiceUnavailable)",
    "(ServerTimeout)",
    "(Timeout)",
    "(TooManyRequests)",
    "(InternalError)",
    "the server is currently unable to handle the request",
    "connection refused",
    "connection reset",
    "i/o timeout",
    "TLS handshake timeout",
    "Client.Timeout",
    "context deadline exceeded",
    "etcdserver:",
    "no such host",
    "no route to host",
    ": EOF",
    "unexpected EOF"};

// What users can do about a message of kubectl that has both texts.
struct Advice {
  std::string_view text;
  std::string_view more;
  std::string_view next_step;
};
constexpr std::array<Advice, 5> kAdvice = {{
    {"(Forbidden)", kExceededQuota, "raise the quota, or lower --nodes"},
    {"(Forbidden)", "is forbidden: User",
     "the role in packaging/kubernetes/attune.yaml has all that is needed; ask an administrator to "
     "bind it to this user"},
    {"namespaces \"", "not found",
     "create the namespace with `kubectl create namespace NAME`, or name another one with "
     "--namespace"},
    {"context", "does not exist", "`kubectl config get-contexts` lists the contexts"},
    {"Unauthorized", "", "log in to the cluster again; `kubectl get jobs` must work"},
}};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Removes the name of the draft from a message, because users do not know that file.
std::string WithoutDraft(std::string message, const std::string& draft) {
  const std::string part = "error when creating \"" + draft + "\": ";
  if (const size_t at = message.find(part); at != std::string::npos) message.erase(at, part.size());
  return message;
}

// Whether kubectl's libraries logged this line, such as `E1130 12:34:58.517897 31149
// memcache.go:381]…`.
bool IsLogged(std::string_view line) {
  return line.size() > 5 && Contains("IWEF", line.substr(0, 1)) && line[5] == ' ' &&
         std::ranges::all_of(line.substr(1, 4), [](char c) { return c >= '0' && c <= '9'; });
}

// The part of kubectl's output that is for users: all lines that its libraries did not log. If
// there are no such lines, the whole output.
std::string MessageIn(const std::string& output) {
  std::string message;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (!IsLogged(line)) message += line + "\n";
  return message.empty() ? output : message;
}

Status StatusOf(const Result<std::string>& out) { return out.ok() ? Status() : out.error(); }

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

Result<std::string> Tools::Run(std::vector<std::string> argv) {
  // With --request-timeout, kubectl would not find the service account of its pod.
  std::vector<std::string> all = {"kubectl"};
  if (!location_.context.empty()) all.push_back("--context=" + location_.context);
  all.push_back("--namespace=" + location_.name_space);
  all.insert(all.end(), argv.begin(), argv.end());
  const Result<CommandResult> ran = commands_.Run(all);
  if (!ran.ok() && ran.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound,
                 ran.error().message +
                     "\ninstall kubectl (https://kubernetes.io/docs/tasks/tools/), and log in to a "
                     "cluster so that `kubectl get jobs` works"};
  if (!ran.ok()) return ran.error();
  if (ran->exit_code == 0) return ran->out;
  std::string message = pilots::Trim(ran->err.empty() ? ran->out : MessageIn(ran->err));
  if (message.empty())
    message = "`" + Join(all) + "` failed with exit code " + std::to_string(ran->exit_code);
  message = WithoutDraft(std::move(message), draft_.string());
  const bool temporary = pilots::ContainsAny(message, kTemporaryErrors);
  for (const Advice& advice : kAdvice) {
    if (!Contains(message, advice.text) || !Contains(message, advice.more)) continue;
    message += "\n" + std::string(advice.next_step);
    break;
  }
  return Error{temporary ? ErrorCode::kUnavailable : ErrorCode::kInvalid, message};
}

Result<Json> Tools::RunForJson(std::vector<std::string> argv) {
  argv.insert(argv.end(), {"--output=json"});
  const Result<std::string> out = Run(argv);
  if (!out.ok()) return out.error();
  Json json = ParseJson<Json>(*out);
  if (json.is_object()) return json;
  return Error{ErrorCode::kInternal, "`kubectl " + Join(argv) + "` printed no JSON object"};
}

Result<std::string> Tools::RunWithObject(std::vector<std::string> argv, const Json& object) {
  if (Status written = WriteWhole(draft_, object.dump() + "\n", kPrivate); !written.ok())
    return written.error();
  argv.push_back("--filename=" + draft_.string());
  Result<std::string> out = Run(std::move(argv));
  unlink(draft_.c_str());
  return out;
}

Result<std::string> Tools::CurrentContext() {
  if (!location_.context.empty()) return location_.context;
  const Result<std::string> out = Run({"config", "current-context"});
  if (out.ok()) return pilots::Trim(*out);
  if (Contains(out.error().message, "current-context is not set")) return std::string();
  return out.error();
}

Result<int> Tools::ServerMinorVersion() {
  const Result<Json> version = RunForJson({"version"});
  if (!version.ok()) return version.error();
  const std::string minor = TextAt(*version, {"serverVersion", "minor"});  // such as 32 or 27+
  int value = 0;
  std::from_chars(minor.data(), minor.data() + minor.size(), value);
  if (value > 0) return value;
  return Error{ErrorCode::kUnavailable, "the API server did not report its version"};
}

Result<Json> Tools::ReadObject(const std::filesystem::path& file) {
  Result<Json> object = RunForJson({"create", "--dry-run=client", "--filename=" + file.string()});
  if (!object.ok() && object.error().code == ErrorCode::kInternal)
    return Error{ErrorCode::kInvalid, "the file has several objects; write one Job"};
  return object;
}

Result<Json> Tools::Get(const std::string& object) { return RunForJson({"get", object}); }

Status Tools::CheckCreate(const Json& object) {
  const Result<std::string> out =
      RunWithObject({"create", "--dry-run=server", "--output=name"}, object);
  // The fleet's own pilots may use the quota now.
  if (out.ok() || Contains(out.error().message, kExceededQuota)) return {};
  return out.error();
}

Status Tools::Create(const Json& object) {
  const Result<std::string> out = RunWithObject({"create", "--output=name"}, object);
  if (out.ok() || Contains(out.error().message, kAlreadyExists)) return {};
  return out.error();
}

// This is not `kubectl apply`, because that copies the text of a Secret into an annotation.
Status Tools::CreateOrReplace(const Json& object) {
  Result<std::string> out = RunWithObject({"create", "--output=name"}, object);
  if (!out.ok() && Contains(out.error().message, kAlreadyExists))
    out = RunWithObject({"replace", "--output=name"}, object);
  return StatusOf(out);
}

Result<Json> Tools::ListJobsAndPods(const std::string& label) {
  return RunForJson({"get", "jobs,pods", "--selector=" + label});
}

Result<Json> Tools::ListEvents(const std::string& kind) {
  return RunForJson({"get", "events", "--field-selector=involvedObject.kind=" + kind});
}

Status Tools::DeleteJobs(const std::vector<std::string>& names) {
  std::vector<std::string> argv = {"delete", "jobs", "--cascade=foreground", "--wait=false",
                                   "--ignore-not-found"};
  argv.insert(argv.end(), names.begin(), names.end());
  return StatusOf(Run(std::move(argv)));
}

Status Tools::ForceDeletePods(const std::string& label) {
  return StatusOf(Run({"delete", "pods", "--selector=" + label, "--force", "--grace-period=0",
                       "--wait=false", "--ignore-not-found"}));
}

Status Tools::DeleteAllJobs(const std::string& label) {
  return StatusOf(
      Run({"delete", "jobs", "--selector=" + label, "--cascade=foreground", "--ignore-not-found"}));
}

Status Tools::DeleteSecret(const std::string& name) {
  return StatusOf(Run({"delete", "secret", name, "--ignore-not-found"}));
}

Result<std::string> Tools::Logs(const std::string& pod) { return Run({"logs", pod}); }

}  // namespace attune::kubernetes
