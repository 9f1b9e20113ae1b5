#include "slurm/pilot.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/result.h"
#include "slurm/text.h"

namespace attune::slurm {
namespace {

// Quotes any text for a shell.
std::string Quote(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

// The bytes of a size in sbatch's format: "16G", "4000" (MiB). 0 if it is not a size.
int64_t ParseMemory(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const char unit = end == text.data() + text.size() ? 'M' : *end;
  const size_t power = std::string_view("KMGT").find(unit);
  return power == std::string_view::npos ? 0 : value << (10 * (power + 1));
}

// The part of the script after the fleet's variables.
constexpr const char* kScript = R"sh(
# Seconds until the job's time limit; nothing if Slurm reports none.
time_left() {
  local text days=0 part parts seconds=0
  text=$(squeue -h -j "$SLURM_JOB_ID" -o %L 2>/dev/null)
  case $text in *-*) days=${text%%-*} text=${text#*-} ;; esac
  [[ $days:$text =~ ^[0-9:]+$ ]] || return
  IFS=: read -r -a parts <<<"$text"
  for part in "${parts[@]}"; do seconds=$((seconds * 60 + 10#$part)); done
  seconds=$((10#$days * 86400 + seconds))
  [ "$seconds" -gt 0 ] && echo "$seconds"
}

# This shell becomes the executor NAME, so a signal to this process reaches only the executor.
become() {
  local gpus=0 given memory=() left
  if [ -n "${SLURM_JOB_GPUS:-}${SLURM_STEP_GPUS:-}" ] && [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
    IFS=, read -r -a given <<<"$CUDA_VISIBLE_DEVICES"
    gpus=${#given[@]}
  fi
  if [ "${SLURM_MEM_PER_NODE:-0}" -gt 0 ]; then
    memory=(--memory "${SLURM_MEM_PER_NODE}MiB")
  elif [ "${SLURM_MEM_PER_CPU:-0}" -gt 0 ]; then
    memory=(--memory "$((SLURM_MEM_PER_CPU * SLURM_CPUS_ON_NODE))MiB")
  fi
  left=$(time_left)
  echo "pilot $1: job $SLURM_JOB_ID on $(hostname)"
  exec "${executor[@]}" --name "$1" --cpus "$SLURM_CPUS_ON_NODE" --gpus "$gpus" \
    ${memory[@]+"${memory[@]}"} ${left:+--time-left "$left"}
}

# Starts an executor on each node, named $1 and the node's number. The end of their input tells them
# to leave: a signal to a job step would reach all ranks as well.
on_each_node() {
  coproc step {
    exec srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
      --no-kill --kill-on-bad-exit=0 --wait=0 --cpu-bind=none \
      --output="$logs/$1%n.log" --open-mode=append bash "$script" node "$1"
  }
  local srun=$! input=${step[1]:-}
  [ -n "$input" ] && trap 'trap : TERM; exec {input}>&-' TERM
  while kill -0 "$srun" 2>/dev/null; do wait "$srun"; done
  wait "$srun"
}

# Runs an executor on one node of several.
on_this_node() {
  exec 3<&0 </dev/null
  (become "$1$SLURM_NODEID" 3<&-) &
  local child=$! listener code
  # If the job is cancelled, Slurm signals every process here. That ends the listener too, so the
  # executor gets no second signal. On a second signal it would end without telling the server.
  (while read -r -u 3 _; do :; done; sleep 1; kill -TERM "$child") 2>/dev/null &
  listener=$!
  exec 3<&-
  trap : TERM
  while kill -0 "$child" 2>/dev/null; do wait "$child"; done
  wait "$child"
  code=$?
  kill "$listener" 2>/dev/null
  exit "$code"
}

case ${1:-} in
  node) on_this_node "$2" ;;
  allocation) on_each_node "job-$SLURM_JOB_ID-" ;;
  *)
    if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
      on_each_node "$SLURM_JOB_NAME."
    else
      become "$SLURM_JOB_NAME"
    fi
    ;;
esac
)sh";

std::string DescribeTime(std::chrono::seconds time) { return std::to_string(time.count()) + " s"; }

}  // namespace

std::vector<std::string> SbatchOptions(const PilotOptions& options, const PilotPlaces& places,
                                       const std::string& name) {
  std::vector<std::string> words = {"--job-name=" + name,
                                    "--output=" + (places.logs / (name + ".log")).string(),
                                    "--open-mode=append",
                                    "--nodes=" + std::to_string(options.nodes),
                                    "--ntasks-per-node=1",
                                    "--no-requeue",
                                    "--signal=B:TERM@" + std::to_string(kLeaveBefore.count())};
  const auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) words.push_back("--" + option + "=" + value);
  };
  add("partition", options.partition);
  add("account", options.account);
  add("qos", options.qos);
  add("gres", options.gres);
  add("time", options.time);
  if (options.cpus) {
    add("cpus-per-task", std::to_string(*options.cpus));
  } else {
    words.push_back("--exclusive");
  }
  add("mem", options.memory.empty() && !options.cpus ? "0" : options.memory);
  words.insert(words.end(), options.more.begin(), options.more.end());
  return words;
}

std::string PilotScript(const PilotPlaces& places, const std::filesystem::path& script) {
  std::string labels;
  for (const std::string& label : places.labels) labels += " --label " + Quote(label);
  return "#!/bin/bash\n"
         "# Executors of Attune in a Slurm job, written by `attune slurm up` or `attune run "
         "--slurm`.\n"
         "set -u\n"
         "script=" +
         Quote(script) + "\nlogs=" + Quote(places.logs) + "\nexecutor=(" + Quote(places.program) +
         " executor --server " + Quote(places.server) + " --token-file " +
         Quote(places.token_file) + " --data-dir " + Quote(places.data_dir) + " --give-up " +
         std::to_string(places.give_up.count()) + labels + ")\n" + kScript;
}

pilots::Resources NodeResources(const PilotOptions& options, const Partition& partition) {
  const int64_t asked = ParseMemory(options.memory);
  return {.cpus = options.cpus.value_or(partition.cpus),
          .gpus = CountGpus(options.gres),
          .memory_bytes = asked > 0 ? asked : partition.memory_bytes};
}

Status Check(const PilotOptions& options, const Partition& partition) {
  if (!options.time.empty()) {
    const auto time = ParseTimeLimit(options.time);
    if (!time)
      return Invalid("--time " + options.time +
                     ": not a time limit of Slurm; write 90 (minutes), 4:00:00 or 2-00:00");
    if (*time > std::chrono::seconds(0) && *time <= kLeaveBefore)
      return Invalid("--time " + options.time + ": a pilot must leave " +
                     DescribeTime(kLeaveBefore) +
                     " before its time is over; request at least some minutes");
    if (partition.time_limit && *time > *partition.time_limit && options.qos.empty())
      return Invalid("--time " + options.time + ": the partition " + partition.name + " allows " +
                     DescribeTime(*partition.time_limit) +
                     ", and a job with a longer limit waits for ever (PartitionTimeLimit); "
                     "`sinfo -o '%R %l'` shows the limits");
  }
  if (CountGpus(options.gres) > partition.gpus)
    return Invalid("--gres " + options.gres + ": no node of the partition " + partition.name +
                   " has more than " + std::to_string(partition.gpus) + " GPUs");
  if (options.nodes > partition.nodes)
    return Invalid("--nodes-per-pilot " + std::to_string(options.nodes) + ": the partition " +
                   partition.name + " has " + std::to_string(partition.nodes) + " nodes");
  if (options.cpus.value_or(0) > partition.cpus)
    return Invalid("--cpus " + std::to_string(*options.cpus) + ": nodes of the partition " +
                   partition.name + " have " + std::to_string(partition.cpus));
  return {};
}

}  // namespace attune::slurm
