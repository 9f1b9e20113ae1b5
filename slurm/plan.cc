#include "slurm/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace attune::slurm {
namespace {

struct Bin {
  std::string name;   // of the executor; empty: it has not joined
  std::string pilot;  // empty: of none, or of one that is to be submitted
  Room free;
};

int64_t Share(int64_t room, int64_t need) {
  return need > 0 ? std::max<int64_t>(room, 0) / need : std::numeric_limits<int>::max();
}

// So many workers fit.
int64_t Fit(const Room& room, const Room& worker) {
  return std::min({Share(room.cpus, worker.cpus), Share(room.gpus, worker.gpus),
                   Share(room.memory_bytes, worker.memory_bytes)});
}

int64_t FitIn(const Bin& bin, const Wanted& wanted) {
  return wanted.barred.contains(bin.name) ? 0 : Fit(bin.free, wanted.worker);
}

void Take(Room& room, const Room& worker, int64_t workers) {
  room.cpus -= static_cast<int>(workers * worker.cpus);
  room.gpus -= static_cast<int>(workers * worker.gpus);
  room.memory_bytes -= workers * worker.memory_bytes;
}

// Whether a gang of so many finds room, which is taken then: on one, or on as few as it needs.
bool Place(const Wanted& wanted, int64_t workers, std::vector<Bin>& bins,
           std::set<std::string>& used) {
  std::vector<std::pair<int64_t, Bin*>> fits;
  int64_t sum = 0;
  for (Bin& bin : bins) {
    const int64_t fit = FitIn(bin, wanted);
    if (fit > 0) fits.emplace_back(fit, &bin);
    sum += fit;
  }
  if (sum < workers) return false;
  std::ranges::stable_sort(fits, std::greater(), &std::pair<int64_t, Bin*>::first);
  // The tightest of those where all fit.
  const auto whole = std::ranges::find_if(fits.rbegin(), fits.rend(),
                                          [&](const auto& fit) { return fit.first >= workers; });
  if (whole != fits.rend()) fits = {*whole};
  for (const auto& [fit, bin] : fits) {
    const int64_t here = std::min(fit, workers);
    if (here == 0) break;
    Take(bin->free, wanted.worker, here);
    used.insert(bin->pilot);
    workers -= here;
  }
  return true;
}

Room Less(const Room& room, const Room& part) {
  return {room.cpus - part.cpus, room.gpus - part.gpus, room.memory_bytes - part.memory_bytes};
}

int64_t Divided(int64_t workers, int64_t each) { return (workers + each - 1) / each; }

std::string Described(const Wanted& wanted) {
  std::string text = "a gang of " + std::to_string(wanted.min_workers) +
                     (wanted.min_workers == 1 ? " worker" : " workers") + " with " +
                     std::to_string(wanted.worker.cpus) + " CPUs";
  if (wanted.worker.gpus > 0) text += ", " + std::to_string(wanted.worker.gpus) + " GPUs";
  if (wanted.worker.memory_bytes > 0)
    text += ", " + std::to_string(wanted.worker.memory_bytes >> 20) + " MiB";
  return text + " each";
}

class Planner {
 public:
  Planner(const std::vector<Host>& hosts, const std::vector<Pilot>& pilots, const Room& node,
          const Limits& limits)
      : node_(node), limits_(limits) {
    std::map<std::string, int> joined;  // executors by pilot
    std::set<std::string> closing;
    for (const Pilot& pilot : pilots) {
      alive_ += pilot.nodes;
      if (pilot.closing && !pilot.ending) closing.insert(pilot.name);
      if (!pilot.ending && !pilot.closing) joined[pilot.name] = 0;
    }
    for (const Host& host : hosts) {
      if (closing.contains(host.pilot) && host.free != host.total)
        moving_.push_back({.gangs = 1, .worker = Less(host.total, host.free)});
      const auto pilot = joined.find(host.pilot);
      if (pilot != joined.end()) ++pilot->second;
      if ((pilot == joined.end() && !host.pilot.empty()) || !host.takes_gangs) continue;
      bins_.push_back({host.name, host.pilot, host.free});
      if (host.pilot.empty()) others_.emplace_back(host.name, host.total);
    }
    for (const Pilot& pilot : pilots) {
      if (pilot.ending || pilot.closing) continue;
      for (int i = joined[pilot.name]; i < pilot.nodes; ++i)
        bins_.push_back({"", pilot.name, node_});
    }
  }

  Plan Make(const std::vector<Wanted>& wanted) {
    Submit(std::min<int64_t>(Divided(std::max(0, limits_.nodes_min - alive_), Size()), Left()));
    for (const Wanted& each : wanted) Serve(each);
    for (const Wanted& each : moving_) Serve(each);
    plan_.needed.erase("");
    return std::move(plan_);
  }

 private:
  int Size() const { return limits_.nodes_per_pilot; }
  // So many pilots more may there be.
  int64_t Left() const { return std::max(0, (limits_.nodes_max - alive_) / Size() - plan_.submit); }

  void Submit(int64_t pilots) {
    plan_.submit += static_cast<int>(pilots);
    for (int64_t i = 0; i < pilots * Size(); ++i) bins_.push_back({"", "", node_});
  }

  void Serve(const Wanted& wanted) {
    if (!wanted.lacking.empty()) {
      plan_.impossible.push_back({wanted.sweep, "its gangs run only where " + wanted.lacking +
                                                    " holds; pilots have that with --label"});
      return;
    }
    const int64_t each = Fit(node_, wanted.worker);
    int64_t possible = each * limits_.pilots_max() * Size();
    for (const auto& [name, other] : others_)
      if (!wanted.barred.contains(name)) possible += Fit(other, wanted.worker);
    if (possible < wanted.min_workers) return Refuse(wanted, each);
    const int64_t workers = std::min<int64_t>(wanted.workers, possible);
    for (int gang = 0; gang < wanted.gangs; ++gang) {
      if (!Place(wanted, workers, bins_, plan_.needed) && !Grow(wanted, workers, each)) return;
    }
  }

  // Pilots for one gang more; false: the limit does not allow it.
  bool Grow(const Wanted& wanted, int64_t workers, int64_t each) {
    if (each == 0) return false;
    int64_t there = 0;
    for (const Bin& bin : bins_) there += FitIn(bin, wanted);
    const int64_t more = Divided(Divided(workers - there, each), Size());
    if (more > Left()) return false;
    Submit(more);
    return Place(wanted, workers, bins_, plan_.needed);
  }

  void Refuse(const Wanted& wanted, int64_t each) {
    if (wanted.sweep.empty()) return;  // of a node that is larger than those to come
    const std::string have = std::to_string(node_.cpus) + " CPUs, " + std::to_string(node_.gpus) +
                             " GPUs and " + std::to_string(node_.memory_bytes >> 20) + " MiB";
    const std::string one = Size() == 1 ? "a pilot" : "a node of a pilot";
    const std::string many =
        Size() == 1 ? " pilots of " : " pilots of " + std::to_string(Size()) + " nodes with ";
    const std::string text =
        each == 0 ? Described(wanted) + ": not one fits into " + one + ", which has " + have +
                        (wanted.worker.gpus > node_.gpus ? "; --gres asks for GPUs" : "")
                  : Described(wanted) + " needs " +
                        std::to_string(Divided(Divided(wanted.min_workers, each), Size())) + many +
                        have + "; there can be " + std::to_string(limits_.pilots_max());
    plan_.impossible.push_back({wanted.sweep, text});
  }

  const Room node_;
  const Limits limits_;
  std::vector<std::pair<std::string, Room>> others_;  // executors that are no pilots
  std::vector<Wanted> moving_;                        // what runs on nodes that close
  std::vector<Bin> bins_;
  int alive_ = 0;  // nodes
  Plan plan_;
};

}  // namespace

Plan MakePlan(std::vector<Wanted> wanted, const std::vector<Host>& hosts,
              const std::vector<Pilot>& pilots, const Room& node, const Limits& limits) {
  std::ranges::stable_sort(wanted, std::greater(), [](const Wanted& each) {
    return std::tuple(int64_t{each.workers} * each.worker.gpus,
                      int64_t{each.workers} * each.worker.cpus,
                      each.workers * static_cast<double>(each.worker.memory_bytes));
  });
  return Planner(hosts, pilots, node, limits).Make(wanted);
}

}  // namespace attune::slurm
