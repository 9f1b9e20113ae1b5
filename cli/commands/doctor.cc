#include <algorithm>
#include <chrono>
#include <sstream>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/doctor/checks.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

constexpr int kHealthColumns = 9;       // "warning" and two spaces
constexpr int kCheckColumns = 12;       // "open-files" and two spaces
constexpr int kColumnsElsewhere = 100;  // if stdout is no terminal
constexpr int kRemedyColumnsMin = 40;

Colour ColourOfHealth(Health health) {
  switch (health) {
    case Health::kOk:
      return Colour::kGreen;
    case Health::kWarning:
      return Colour::kYellow;
    case Health::kMissing:
      break;
  }
  return Colour::kRed;
}

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The message's first line says what is wrong, and the others what to do.
void SetFault(const Error& error, ServerFacts& facts) {
  const size_t line_end = std::min(error.message.find('\n'), error.message.size());
  facts.fault = error.message.substr(0, line_end);
  facts.remedy = error.message.substr(std::min(line_end + 1, error.message.size()));
  if (facts.remedy.empty()) facts.remedy = "choose a running server with --server URL";
}

ServerFacts AskServer(const ServerChoice& choice) {
  ServerFacts facts{.is_named = !choice.server.empty()};
  const Result<Endpoint> endpoint = ServerOf(choice);
  if (!endpoint.ok()) {
    // Without a name there may just be no server yet.
    if (facts.is_named || endpoint.error().code != ErrorCode::kUnavailable)
      SetFault(endpoint.error(), facts);
    return facts;
  }
  facts.url = endpoint->url;
  Api api(*endpoint);
  const double asked = SecondsNow();
  const auto answer = api.Version();
  const double answered = SecondsNow();
  if (!answer.ok()) {
    SetFault(answer.error(), facts);
    return facts;
  }
  facts.version = answer->version;
  if (const std::optional<double> time = ParseTime(answer->time)) {
    facts.clock_ahead_seconds = (asked + answered) / 2 - *time;
    facts.clock_error_seconds = (answered - asked) / 2;
  }
  return facts;
}

// Breaks the text at spaces into lines of at most `columns`.
std::vector<std::string> WrapText(const std::string& text, size_t columns) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > columns) {
      lines.push_back(word);
    } else {
      lines.back() += ' ' + word;
    }
  }
  return lines;
}

void PrintFindings(const std::vector<Finding>& findings, Output& out) {
  const Style style = out.style();
  const int width = out.width() > 0 ? out.width() : kColumnsElsewhere;
  const auto columns = static_cast<size_t>(std::max(width - kHealthColumns, kRemedyColumnsMin));
  for (const Finding& finding : findings) {
    out.Print(
        style.Paint(ColourOfHealth(finding.health), Pad(ToText(finding.health), kHealthColumns)) +
        Pad(finding.name, kCheckColumns) + finding.detail);
    for (const std::string& line : WrapText(finding.remedy, columns))
      out.Print(std::string(kHealthColumns, ' ') + line);
  }
}

Json FindingsJson(const std::vector<Finding>& findings, bool is_ready) {
  Json checks = Json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"name", finding.name},
                      {"status", std::string(ToText(finding.health))},
                      {"detail", finding.detail},
                      {"remedy", finding.remedy.empty() ? Json(nullptr) : Json(finding.remedy)}});
  }
  return {{"ready", is_ready}, {"checks", std::move(checks)}};
}

std::string CountsOf(const std::vector<Finding>& findings) {
  const auto count = [&](Health health) {
    return std::ranges::count(findings, health, &Finding::health);
  };
  return std::to_string(count(Health::kOk)) + " ok, " +
         FormatCount(count(Health::kWarning), "warning") + ", " +
         std::to_string(count(Health::kMissing)) + " missing";
}

ExitCode Diagnose(const ClientFlags& flags, Console& console) {
  flags.output.Apply(console);
  console.host.log_to(console.err, LogLevel::kWarning);
  const std::vector<Finding> findings =
      Examine(console.host.inspect(flags.server.data_dir), AskServer(flags.server));
  const bool is_ready =
      std::ranges::none_of(findings, [](const Finding& f) { return f.health == Health::kMissing; });
  if (flags.output.json()) {
    console.out.Print(Dump(FindingsJson(findings, is_ready), 2));
  } else {
    PrintFindings(findings, console.out);
    console.err.Print(CountsOf(findings));
  }
  return is_ready ? ExitCode::kSuccess : ExitCode::kFailure;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Action& chosen) {
  AddCommand<ClientFlags>(app, chosen, "doctor", "Check this host and print how to fix problems",
                          Diagnose);
}

}  // namespace attune::cli
