#include "pilots/hours.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "base/result.h"
#include "json/parse.h"
#include "system/files.h"

namespace attune::pilots {
namespace {

using Json = nlohmann::json;

void Add(Amount& sum, const Amount& size, std::chrono::seconds time) {
  const double hours = static_cast<double>(time.count()) / 3600;
  sum.nodes += size.nodes * hours;
  sum.cpus += size.cpus * hours;
  sum.gpus += size.gpus * hours;
}

Json ToJson(const Amount& amount) { return {amount.nodes, amount.cpus, amount.gpus}; }

bool ReadAmount(const Json& json, const char* key, Amount& amount) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array() || found->size() != 3) return false;
  for (const Json& value : *found)
    if (!value.is_number()) return false;
  amount = {(*found)[0].get<double>(), (*found)[1].get<double>(), (*found)[2].get<double>()};
  return true;
}

}  // namespace

// Rounding errors of the sums must not make the difference negative.
Amount Hours::idle() const {
  return {std::max(0.0, held.nodes - in_use.nodes - unseen.nodes),
          std::max(0.0, held.cpus - in_use.cpus - unseen.cpus),
          std::max(0.0, held.gpus - in_use.gpus - unseen.gpus)};
}

Result<HoursBook> HoursBook::Open(const std::filesystem::path& folder) {
  HoursBook book(folder / "hours.json");
  if (Status read = book.Read(); !read.ok()) return read.error();
  return book;
}

Status HoursBook::Read() {
  std::ifstream in(file_);
  if (!in) return {};  // no hours were counted yet
  const Json json = ParseJson<Json>(in);
  const Error corrupt{
      ErrorCode::kCorrupt,
      file_.string() + " is damaged; delete it to count the hours of pilots from zero"};
  if (!json.is_object() || !ReadAmount(json, "held", hours_.held) ||
      !ReadAmount(json, "in_use", hours_.in_use) || !ReadAmount(json, "unseen", hours_.unseen) ||
      !json.contains("pilots") || !json["pilots"].is_object())
    return corrupt;
  for (const auto& [name, pilot] : json["pilots"].items()) {
    CountedPilot counted;
    if (!pilot.is_object() || !pilot.contains("seconds") || !pilot["seconds"].is_number_integer() ||
        !ReadAmount(pilot, "size", counted.size))
      return corrupt;
    counted.time = std::chrono::seconds(pilot["seconds"].get<int64_t>());
    pilots_[name] = counted;
  }
  return {};
}

Status HoursBook::Count(const std::vector<Job>& jobs, const std::vector<Host>& hosts,
                        const Resources& node) {
  std::set<std::string> listed;
  for (const Job& job : jobs) {
    listed.insert(job.name);
    if (job.ran == std::chrono::seconds(0)) continue;
    CountedPilot& counted = pilots_[job.name];
    if (job.ran == counted.time) continue;
    int joined = 0;
    Amount joined_size;
    Amount used;
    for (const Host& host : hosts) {
      if (host.pilot != job.name) continue;
      ++joined;
      joined_size.cpus += host.total.cpus;
      joined_size.gpus += host.total.gpus;
      used.nodes += host.free == host.total ? 0 : 1;
      used.cpus += host.total.cpus - host.free.cpus;
      used.gpus += host.total.gpus - host.free.gpus;
    }
    // A pilot whose executors have all left keeps its size.
    if (joined > 0 || counted.size.nodes == 0) {
      const int missing = std::max(0, job.nodes - joined);
      counted.size = {static_cast<double>(job.nodes), joined_size.cpus + missing * node.cpus,
                      joined_size.gpus + missing * node.gpus};
    }
    const std::chrono::seconds passed = job.ran - std::exchange(counted.time, job.ran);
    written_ = false;
    if (passed < std::chrono::seconds(0)) continue;  // the engine restarted the job
    Add(hours_.held, counted.size, passed);
    const bool unseen = passed > kUnseenAfter;
    Add(unseen ? hours_.unseen : hours_.in_use, unseen ? counted.size : used, passed);
  }
  std::erase_if(pilots_, [&](const auto& pilot) {
    if (listed.contains(pilot.first)) return false;
    written_ = false;
    return true;
  });
  const bool due = std::chrono::steady_clock::now() - written_at_ >= kWritePeriod;
  return due ? Write() : Status();
}

Status HoursBook::Write() {
  if (written_) return {};
  Json pilots = Json::object();
  for (const auto& [name, counted] : pilots_)
    pilots[name] = {{"seconds", counted.time.count()}, {"size", ToJson(counted.size)}};
  const Json json = {{"held", ToJson(hours_.held)},
                     {"in_use", ToJson(hours_.in_use)},
                     {"unseen", ToJson(hours_.unseen)},
                     {"pilots", std::move(pilots)}};
  if (Status status = WriteWhole(file_, json.dump() + "\n", kPrivate); !status.ok()) return status;
  written_ = true;
  written_at_ = std::chrono::steady_clock::now();
  return {};
}

}  // namespace attune::pilots
