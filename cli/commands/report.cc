#include <sys/stat.h>

#include <filesystem>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/text/numbers.h"
#include "system/files.h"

namespace attune::cli {
namespace {

constexpr char kStdout[] = "-";
constexpr mode_t kReadableAndWritable = 0666;  // less the umask, as for other new files

mode_t Umask() {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

struct ReportFlags : SweepOrNewestFlags {
  std::string file;

  void AddTo(CLI::App& command) {
    command.add_option("-o,--output", file, "New file, or - for stdout (default: such as s1.html)")
        ->type_name("FILE");
    output.fixed = true;
    SweepOrNewestFlags::AddTo(command);
  }
};

ExitCode Report(const ReportFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  const std::string file = flags.file.empty() ? *id + ".html" : flags.file;
  std::error_code ignored;
  if (file != kStdout && std::filesystem::exists(file, ignored))
    return Fail(console, {ErrorCode::kConflict,
                          file + " already exists; choose another name with -o, or remove it"});
  const Result<std::string> report = api.Report(*id);
  if (!report.ok()) return Fail(console, report.error());
  if (file == kStdout) {
    console.out.Write(*report);
    return ExitCode::kSuccess;
  }
  const Status written = WriteWhole(file, *report, kReadableAndWritable & ~Umask());
  if (!written.ok())
    return Fail(console, {ErrorCode::kUnavailable,
                          written.error().message + "; choose another file with -o"});
  console.err.Print("report of sweep " + *id + ": " +
                    FormatBytes(static_cast<double>(report->size())) +
                    "; a browser opens it without a server");
  console.out.Print(file);
  return ExitCode::kSuccess;
}

}  // namespace

void AddReportCommand(CLI::App& app, Action& chosen) {
  AddCommand<ReportFlags>(app, chosen, "report", "Save a sweep's pages as one HTML file", Report);
}

}  // namespace attune::cli
