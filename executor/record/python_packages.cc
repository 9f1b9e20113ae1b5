#include "executor/record/python_packages.h"

#include <string_view>
#include <system_error>

#include "executor/processes/environment.h"
#include "json/parse.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kInterpretersMax = 64;

// Prints a line with JSON, and ends without the exit handlers of modules that the site loads. The
// current folder is not searched, because it may have a module with a name of the standard library.
// It reads only the head of METADATA, because each.metadata takes several times as long.
constexpr char kList[] = R"(
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import json, os, re
packages = {}
try:
    from importlib.metadata import distributions
    found = distributions()
except ImportError:
    found = []
for each in found:
    try:
        text = each.read_text("METADATA") or each.read_text("PKG-INFO") or each.read_text("")
        head = dict(re.findall("^(Name|Version): *(.*?) *$", text.split("\n\n")[0], re.M))
        packages.setdefault(re.sub("[-_.]+", "-", head["Name"]).lower(), head["Version"])
    except Exception:
        pass
sys.stdout.write("\n" + json.dumps({
    "executable": sys.executable, "version": sys.version.split()[0], "packages": packages, "folders": sys.path}))
sys.stdout.flush()
os._exit(0)
)";

struct Answer {
  Python python;
  std::vector<std::string> folders;
};

std::optional<Answer> ReadAnswer(const std::string& output) {
  // npos + 1 is 0, the start of an output of one line.
  const std::string_view line = std::string_view(output).substr(output.rfind('\n') + 1);
  const Json json = ParseJson<Json>(line);
  if (!json.is_object()) return std::nullopt;
  try {
    return Answer{.python = {.executable = json.at("executable"),
                             .version = json.at("version"),
                             .packages = json.at("packages")},
                  .folders = json.at("folders")};
  } catch (const Json::exception&) {
    return std::nullopt;  // not the answer to kList
  }
}

}  // namespace

std::optional<Python> PythonPackages::List(const fs::path& interpreter,
                                           const gang::Program& program, const std::string& folder,
                                           ChildPrograms& children) {
  const Key key{interpreter, program.environment, folder};
  const auto known = known_.find(key);
  if (known != known_.end()) {
    std::vector<std::string> files;
    for (const auto& [file, time] : known->second.files) files.push_back(file);
    if (TimesOf(files) == known->second.files) return known->second.python;
    known_.erase(known);
  }
  const std::optional<std::string> output =
      children.Output({.program = interpreter,
                       .argv = {interpreter.string(), "-B", "-c", kList},
                       .environment = gang::ProgramEnvironment(program.environment),
                       .working_directory = program.working_directory},
                      timeout_);
  if (!output) return std::nullopt;
  std::optional<Answer> answer = ReadAnswer(*output);
  if (!answer) return std::nullopt;
  std::vector<std::string> files = std::move(answer->folders);
  files.push_back(answer->python.executable);
  files.push_back(interpreter);
  if (known_.size() >= kInterpretersMax) known_.clear();
  known_[key] = {answer->python, TimesOf(files)};
  return std::move(answer->python);
}

PythonPackages::FileTimes PythonPackages::TimesOf(const std::vector<std::string>& files) {
  FileTimes times;
  for (const std::string& file : files) {
    std::error_code failed;
    const fs::file_time_type time = fs::last_write_time(file, failed);
    times[file] = failed ? std::nullopt : std::optional(time);
  }
  return times;
}

}  // namespace attune::agent
