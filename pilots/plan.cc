#include "pilots/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace attune::pilots {
namespace {

// A host to place workers on.
struct Bin {
  std::string name;   // the executor; empty: it has not joined
  std::string pilot;  // empty: no pilot, or a pilot that must still be submitted
  Resources free;
};

int64_t CountFitting(int64_t available, int64_t need) {
  return need > 0 ? std::max<int64_t>(available, 0) / need : std::numeric_limits<int>::max();
}

int64_t MaxWorkers(const Resources& available, const Resources& worker) {
  return std::min({CountFitting(available.cpus, worker.cpus),
                   CountFitting(available.gpus, worker.gpus),
                   CountFitting(available.memory_bytes, worker.memory_bytes)});
}

int64_t MaxWorkersIn(const Bin& bin, const GangDemand& demand) {
  return demand.excluded_executors.contains(bin.name) ? 0 : MaxWorkers(bin.free, demand.worker);
}

void TakeResources(Resources& available, const Resources& worker, int64_t workers) {
  available.cpus -= static_cast<int>(workers * worker.cpus);
  available.gpus -= static_cast<int>(workers * worker.gpus);
  available.memory_bytes -= workers * worker.memory_bytes;
}

// Places a gang with this many workers: on one host, or on as few hosts as possible. Takes their
// resources and adds their pilots to `used`. Returns false if the gang does not fit.
bool PlaceGang(const GangDemand& demand, int64_t workers, std::vector<Bin>& bins,
               std::set<std::string>& used) {
  std::vector<std::pair<int64_t, Bin*>> fits;
  int64_t sum = 0;
  for (Bin& bin : bins) {
    const int64_t fit = MaxWorkersIn(bin, demand);
    if (fit > 0) fits.emplace_back(fit, &bin);
    sum += fit;
  }
  if (sum < workers) return false;
  std::ranges::stable_sort(fits, std::greater(), &std::pair<int64_t, Bin*>::first);
  // Takes the host with the fewest free places where the whole gang fits.
  const auto whole = std::ranges::find_if(fits.rbegin(), fits.rend(),
                                          [&](const auto& fit) { return fit.first >= workers; });
  if (whole != fits.rend()) fits = {*whole};
  for (const auto& [fit, bin] : fits) {
    const int64_t placed = std::min(fit, workers);
    if (placed == 0) break;
    TakeResources(bin->free, demand.worker, placed);
    used.insert(bin->pilot);
    workers -= placed;
  }
  return true;
}

Resources Subtract(const Resources& total, const Resources& part) {
  return {total.cpus - part.cpus, total.gpus - part.gpus, total.memory_bytes - part.memory_bytes};
}

int64_t DivideRoundingUp(int64_t count, int64_t size) { return (count + size - 1) / size; }

std::string Describe(const GangDemand& demand) {
  std::string text = "a gang of " + std::to_string(demand.min_workers) +
                     (demand.min_workers == 1 ? " worker" : " workers") + " with " +
                     std::to_string(demand.worker.cpus) + " CPUs";
  if (demand.worker.gpus > 0) text += ", " + std::to_string(demand.worker.gpus) + " GPUs";
  if (demand.worker.memory_bytes > 0)
    text += ", " + std::to_string(demand.worker.memory_bytes >> 20) + " MiB";
  return text + " each";
}

class Planner {
 public:
  Planner(const std::vector<Host>& hosts, const std::vector<Pilot>& pilots, const Resources& node,
          const Limits& limits, const std::string& gpu_option)
      : node_(node), limits_(limits), gpu_option_(gpu_option) {
    std::map<std::string, int> joined;  // executors by pilot
    std::set<std::string> closing;
    for (const Pilot& pilot : pilots) {
      pilot_nodes_ += pilot.nodes;
      if (pilot.closing && !pilot.ending) closing.insert(pilot.name);
      if (!pilot.ending && !pilot.closing) joined[pilot.name] = 0;
    }
    for (const Host& host : hosts) {
      if (closing.contains(host.pilot) && host.free != host.total)
        moving_gangs_.push_back({.gangs = 1, .worker = Subtract(host.total, host.free)});
      const auto pilot = joined.find(host.pilot);
      if (pilot != joined.end()) ++pilot->second;
      if ((pilot == joined.end() && !host.pilot.empty()) || !host.takes_gangs) continue;
      bins_.push_back({host.name, host.pilot, host.free});
      if (host.pilot.empty()) other_executors_.emplace_back(host.name, host.total);
    }
    for (const Pilot& pilot : pilots) {
      if (pilot.ending || pilot.closing) continue;
      for (int i = joined[pilot.name]; i < pilot.nodes; ++i)
        bins_.push_back({"", pilot.name, node_});
    }
  }

  Plan MakePlan(const std::vector<GangDemand>& demands) {
    Submit(std::min<int64_t>(
        DivideRoundingUp(std::max(0, limits_.nodes_min - pilot_nodes_), NodesPerPilot()),
        PilotsLeft()));
    for (const GangDemand& each : demands) PlanDemand(each);
    for (const GangDemand& each : moving_gangs_) PlanDemand(each);
    plan_.needed.erase("");
    return std::move(plan_);
  }

 private:
  int NodesPerPilot() const { return limits_.nodes_per_pilot; }
  // Number of pilots that may still be submitted.
  int64_t PilotsLeft() const {
    return std::max(0, (limits_.nodes_max - pilot_nodes_) / NodesPerPilot() - plan_.submit);
  }

  void Submit(int64_t pilots) {
    plan_.submit += static_cast<int>(pilots);
    for (int64_t i = 0; i < pilots * NodesPerPilot(); ++i) bins_.push_back({"", "", node_});
  }

  void PlanDemand(const GangDemand& demand) {
    if (!demand.missing_labels.empty()) {
      plan_.impossible.push_back({demand.sweep, "its gangs need executors with the label " +
                                                    demand.missing_labels +
                                                    "; give it to pilots with --label"});
      return;
    }
    const int64_t workers_per_node = MaxWorkers(node_, demand.worker);
    int64_t possible = workers_per_node * limits_.pilots_max() * NodesPerPilot();
    for (const auto& [name, other] : other_executors_)
      if (!demand.excluded_executors.contains(name)) possible += MaxWorkers(other, demand.worker);
    if (possible < demand.min_workers) return Refuse(demand, workers_per_node);
    const int64_t workers = std::min<int64_t>(demand.workers, possible);
    for (int gang = 0; gang < demand.gangs; ++gang) {
      if (!PlaceGang(demand, workers, bins_, plan_.needed) &&
          !SubmitAndPlace(demand, workers, workers_per_node))
        return;
    }
  }

  // Submits pilots for one more gang. Returns false if the limit does not allow them.
  bool SubmitAndPlace(const GangDemand& demand, int64_t workers, int64_t workers_per_node) {
    if (workers_per_node == 0) return false;
    int64_t fitting = 0;  // workers that existing hosts can run
    for (const Bin& bin : bins_) fitting += MaxWorkersIn(bin, demand);
    const int64_t more =
        DivideRoundingUp(DivideRoundingUp(workers - fitting, workers_per_node), NodesPerPilot());
    if (more > PilotsLeft()) return false;
    Submit(more);
    return PlaceGang(demand, workers, bins_, plan_.needed);
  }

  void Refuse(const GangDemand& demand, int64_t workers_per_node) {
    if (demand.sweep.empty()) return;  // it runs on a node that is larger than new nodes
    const std::string have = std::to_string(node_.cpus) + " CPUs, " + std::to_string(node_.gpus) +
                             " GPUs and " + std::to_string(node_.memory_bytes >> 20) + " MiB";
    const bool single_node = NodesPerPilot() == 1;
    if (workers_per_node == 0) {
      const std::string node = single_node ? "a pilot" : "a node of a pilot";
      plan_.impossible.push_back(
          {demand.sweep,
           Describe(demand) + ": no worker fits into " + node + ", which has " + have +
               (demand.worker.gpus > node_.gpus ? "; request GPUs with " + gpu_option_ : "")});
      return;
    }
    const int64_t pilots =
        DivideRoundingUp(DivideRoundingUp(demand.min_workers, workers_per_node), NodesPerPilot());
    const std::string pilots_of =
        single_node ? " pilots of "
                    : " pilots of " + std::to_string(NodesPerPilot()) + " nodes with ";
    plan_.impossible.push_back(
        {demand.sweep, Describe(demand) + " needs " + std::to_string(pilots) + pilots_of + have +
                           "; there can be " + std::to_string(limits_.pilots_max())});
  }

  const Resources node_;
  const Limits limits_;
  const std::string gpu_option_;
  std::vector<std::pair<std::string, Resources>> other_executors_;  // executors outside pilots
  std::vector<GangDemand> moving_gangs_;                            // gangs on pilots that end soon
  std::vector<Bin> bins_;
  int pilot_nodes_ = 0;  // nodes of all pilots
  Plan plan_;
};

}  // namespace

Plan MakePlan(std::vector<GangDemand> demands, const std::vector<Host>& hosts,
              const std::vector<Pilot>& pilots, const Resources& node, const Limits& limits,
              const std::string& gpu_option) {
  std::ranges::stable_sort(demands, std::greater(), [](const GangDemand& each) {
    return std::tuple(int64_t{each.workers} * each.worker.gpus,
                      int64_t{each.workers} * each.worker.cpus,
                      each.workers * static_cast<double>(each.worker.memory_bytes));
  });
  return Planner(hosts, pilots, node, limits, gpu_option).MakePlan(demands);
}

}  // namespace attune::pilots
