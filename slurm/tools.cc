#include "slurm/tools.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/result.h"
#include "pilots/text.h"
#include "slurm/text.h"

namespace attune::slurm {
namespace {

constexpr std::string_view kJobFormat = "%i|%j|%T|%e|%D|%M|%L|%N|%r";
constexpr std::string_view kPartitionFormat = "%R|%a|%l|%D|%c|%m|%G";

// Messages of the tools for failures that may pass: the request itself is correct.
constexpr std::array<std::string_view, 12> kTemporaryErrors = {
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Connection timed out",
    "Slurm backup controller in standby",
    "Resource temporarily unavailable",
    "Requested nodes are busy",
    "Slurm temporarily unable to accept job",
    "Zero Bytes were transmitted",
    "fetch config",
    "Job violates accounting/QOS policy",
    "Unexpected message received"};

std::string ErrorText(const CommandResult& result) {
  std::string words = pilots::Trim(result.err);
  if (words.empty()) words = pilots::Trim(result.out);
  return words.empty() ? "exit code " + std::to_string(result.exit_code) : words;
}

Error ExplainMissingSlurm(const Error& error) {
  if (error.code != ErrorCode::kNotFound) return error;
  return {error.code, error.message +
                          ": this machine cannot submit jobs to a Slurm cluster\n"
                          "run `attune slurm` on a login node, or run `module load slurm` first"};
}

// The number at the beginning of a text such as "16+", as sinfo prints it.
int LeadingNumber(const std::string& text) { return std::atoi(text.c_str()); }

}  // namespace

Result<std::string> Tools::Run(std::vector<std::string> argv) {
  const Result<CommandResult> ran = commands_.Run(argv);
  if (!ran.ok()) return ExplainMissingSlurm(ran.error());
  if (ran->exit_code == 0) return ran->out;
  const std::string words = ErrorText(*ran);
  return Error{
      pilots::ContainsAny(words, kTemporaryErrors) ? ErrorCode::kUnavailable : ErrorCode::kInvalid,
      words};
}

Result<std::string> Tools::Submit(const std::vector<std::string>& options,
                                  const std::filesystem::path& script) {
  std::vector<std::string> argv = {"sbatch", "--parsable"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back(script);
  const Result<std::string> out = Run(std::move(argv));
  if (!out.ok()) return out.error();
  // The output is ID;CLUSTER if there are several clusters.
  const std::string id = Split(pilots::Trim(*out), ';').front();
  if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos)
    return Error{ErrorCode::kInternal, "sbatch printed no job number: " + pilots::Trim(*out)};
  return id;
}

Status Tools::Check(const std::vector<std::string>& options) {
  std::vector<std::string> argv = {"sbatch", "--test-only"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back("--wrap=true");
  const Result<std::string> out = Run(std::move(argv));
  if (out.ok()) return {};
  // All nodes may be down or in use now.
  if (out.error().message.find("Requested nodes are busy") != std::string::npos) return {};
  return out.error();
}

Result<std::vector<pilots::Job>> Tools::Jobs(const std::string& name_prefix) {
  const Result<std::string> out = Run({"squeue", "-h", "-t", "all", "-u", std::to_string(geteuid()),
                                       "-o", std::string(kJobFormat)});
  if (!out.ok()) return out.error();
  std::vector<pilots::Job> jobs;
  for (const std::string& line : Split(*out, '\n')) {
    const std::vector<std::string> cells = Split(line, '|');
    if (cells.size() < 9 || !cells[1].starts_with(name_prefix)) continue;
    jobs.push_back({.id = pilots::Trim(cells[0]),
                    .name = cells[1],
                    .phase = PhaseOf(cells[2]),
                    .state = cells[2],
                    .cancelled = cells[2] == "CANCELLED",
                    .ends = cells[3],
                    .nodes = std::max(1, LeadingNumber(cells[4])),
                    .ran = ParseTimeLimit(cells[5]).value_or(std::chrono::seconds(0)),
                    .left = ParseTimeLimit(cells[6]),
                    .node = cells[7],
                    .reason = cells[8] == "None" ? "" : cells[8]});
  }
  return jobs;
}

Status Tools::RequestExit(const std::vector<std::string>& ids) {
  std::vector<std::string> argv = {"scancel", "--batch", "--signal=TERM"};
  argv.insert(argv.end(), ids.begin(), ids.end());
  const Result<std::string> out = Run(std::move(argv));
  return out.ok() ? Status() : out.error();
}

Status Tools::Cancel(const std::vector<std::string>& ids) {
  std::vector<std::string> argv = {"scancel"};
  argv.insert(argv.end(), ids.begin(), ids.end());
  const Result<std::string> out = Run(std::move(argv));
  return out.ok() ? Status() : out.error();
}

Result<Partition> Tools::FindPartition(const std::string& partition) {
  const Result<std::string> out = Run({"sinfo", "-h", "-e", "-o", std::string(kPartitionFormat)});
  if (!out.ok()) return out.error();
  Partition found{.name = partition};
  std::vector<std::string> others;
  for (const std::string& line : Split(*out, '\n')) {
    const std::vector<std::string> cells = Split(line, '|');
    if (cells.size() < 7) continue;
    if (cells[0] != partition) {
      if (std::ranges::find(others, cells[0]) == others.end()) others.push_back(cells[0]);
      continue;
    }
    found.up = cells[1] == "up";
    found.time_limit = ParseTimeLimit(pilots::Trim(cells[2]));  // nullopt for "infinite"
    found.nodes += LeadingNumber(cells[3]);
    const int cpus = LeadingNumber(cells[4]);
    const int64_t memory_bytes = static_cast<int64_t>(LeadingNumber(cells[5])) << 20;
    const int gpus = CountGpus(cells[6]);
    if (found.cpus == 0 || gpus > found.gpus) {
      found.cpus = cpus;
      found.memory_bytes = memory_bytes;
      found.gpus = gpus;
    } else if (gpus == found.gpus) {
      found.cpus = std::min(found.cpus, cpus);
      found.memory_bytes = std::min(found.memory_bytes, memory_bytes);
    }
  }
  if (found.nodes > 0) return found;
  std::string names;
  for (const std::string& other : others) names += (names.empty() ? "" : ", ") + other;
  return Error{ErrorCode::kNotFound, "Slurm has no partition `" + partition + "`; `sinfo` shows " +
                                         (names.empty() ? "no partitions" : names)};
}

}  // namespace attune::slurm
