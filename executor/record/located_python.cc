#include "executor/record/located_python.h"

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "executor/gang/preparation.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kScriptsMax = 4;  // scripts whose interpreters are scripts; the kernel allows 4
constexpr std::streamsize kLineBytesMax = 4096;

bool IsPythonFile(const fs::path& file) {
  std::error_code failed;
  return gang::HasNameOfPython(file) || gang::HasNameOfPython(fs::canonical(file, failed));
}

std::string ReadLine(std::ifstream& file) {
  std::string line(kLineBytesMax, '\0');
  file.getline(line.data(), kLineBytesMax);
  line.resize(std::char_traits<char>::length(line.c_str()));
  return line;
}

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The interpreter in the second line of a script of pip or uv whose path of Python is too long for
// the kernel or has a space: '''exec' "/long path/python" "$0" "$@"
std::string InterpreterInExec(const std::string& line) {
  constexpr std::string_view kExec = "'''exec' ";
  if (!line.starts_with(kExec)) return "";
  const size_t start = kExec.size();
  if (start == line.size()) return "";
  const char quote = line[start];
  if (quote != '"' && quote != '\'') return line.substr(start, line.find(' ', start) - start);
  return line.substr(start + 1, line.find(quote, start + 1) - start - 1);
}

// The interpreter that a script names: a path, or a name in PATH; "" if it is not a script.
std::string InterpreterOf(const fs::path& script) {
  std::ifstream file(script, std::ios::binary);
  const std::string line = ReadLine(file);
  if (!line.starts_with("#!")) return "";
  const std::vector<std::string> words = WordsOf(line.substr(2));
  if (words.empty()) return "";
  const std::string name = fs::path(words[0]).filename();
  if (name == "sh") return InterpreterInExec(ReadLine(file));
  if (name != "env") return words[0];
  for (size_t i = 1; i < words.size(); ++i) {  // without the options and variables of env
    if (!words[i].starts_with('-') && words[i].find('=') == std::string::npos) return words[i];
  }
  return "";
}

}  // namespace

std::optional<fs::path> LocatePython(const gang::Program& program) {
  if (program.command.empty()) return std::nullopt;
  std::string name = program.command.front();
  for (int scripts = 0; scripts <= kScriptsMax && !name.empty(); ++scripts) {
    const Result<fs::path> file = gang::LocateProgram(program, name);
    if (!file.ok()) return std::nullopt;
    if (IsPythonFile(*file)) return *file;
    if (program.command.size() > 1 && program.command[1] == "run") return std::nullopt;
    name = InterpreterOf(*file);
  }
  return std::nullopt;
}

}  // namespace attune::agent
