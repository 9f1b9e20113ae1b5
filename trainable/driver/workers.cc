#include "trainable/driver/workers.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "attune/error.h"
#include "system/processes.h"
#include "system/sockets.h"

namespace attune::inline sdk::trainable {
namespace {

using std::chrono::milliseconds;

// How long to check for unread messages after a worker seems to have been silent for too long. This
// process may have been stopped while its workers ran.
constexpr milliseconds kRecheckTimeout{500};

constexpr milliseconds kPollMax{1 << 30};

std::int64_t Now() {
  return std::chrono::duration_cast<milliseconds>(Clock::now().time_since_epoch()).count();
}

UniqueFd NewEvent() {
  UniqueFd event(eventfd(0, EFD_CLOEXEC));
  if (!event) ThrowErrno("eventfd");
  return event;
}

void Raise(const UniqueFd& event) { eventfd_write(event.get(), 1); }

}  // namespace

Workers::Workers(Options options)
    : stall_timeout_(options.stall_timeout),
      launcher_(ForkLauncher()),
      stop_(NewEvent()),
      ended_(NewEvent()),
      liveness_(std::make_unique<Liveness[]>(options.starts.size())) {
  Task& task = options.task;
  task.workers = static_cast<int>(options.starts.size());
  std::vector<UniqueFd> worker_ends;
  for (task.worker = 0; task.worker < task.workers; ++task.worker) {
    auto [driver_end, worker_end] = OrThrow(SocketPair(SOCK_SEQPACKET), "driver");
    sockets_.emplace_back(std::move(driver_end)).Send({.bytes = ToBytes(task), .file = {}});
    worker_ends.push_back(std::move(worker_end));
  }
  gang_thread_ =
      std::thread(&Workers::RunGang, this, std::move(options.starts), std::move(worker_ends));
}

Workers::~Workers() {
  closing_ = true;
  for (MessageSocket& socket : sockets_) socket.Close();
  if (!AwaitEnd()) Kill();
  gang_thread_.join();
}

void Workers::Kill() { Raise(stop_); }

void Workers::RunGang(std::vector<channel::Start> starts, std::vector<UniqueFd> drivers) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);  // the program's handlers run on its own threads
  Gang::Events events{.on_started =
                          [this](int worker, pid_t pid) {
                            liveness_[worker].last_message = Now();
                            liveness_[worker].pid = pid;
                          },
                      .on_message =
                          [this](int worker, milliseconds silence) {
                            liveness_[worker].last_message = Now();
                            liveness_[worker].silence = silence.count();
                          },
                      .on_left =
                          [this](int worker) {
                            if (closing_) return;
                            Blame(worker, "failed: it exited with code 0");
                          }};
  try {
    // Without arguments, because a fork already has those of the program.
    Gang gang(launcher_, std::move(starts), /*args=*/{}, std::move(events), std::move(drivers));
    end_ = gang.Run(stop_.get());
  } catch (const std::exception& error) {
    end_ = {.outcome = Gang::End::Outcome::kFailed, .threw = true, .message = error.what()};
  }
  Raise(ended_);
}

bool Workers::AwaitEnd() { return Poll(ended_, POLLIN, Clock::now() + Launcher::kPatience); }

void Workers::ThrowEnd() {
  while (!AwaitEnd()) Kill();
  {
    const std::lock_guard lock(fault_mutex_);
    if (at_fault_ >= 0) throw WorkerError(at_fault_, /*lost=*/true, fault_);
  }
  const std::string who = end_.worker < 0 ? "the workers" : "worker " + std::to_string(end_.worker);
  if (end_.outcome == Gang::End::Outcome::kFailed) {
    throw WorkerError(end_.worker, !end_.threw, who + " failed: " + end_.message);
  }
  throw WorkerError(-1, /*lost=*/true, "the workers have ended");
}

void Workers::Send(int worker, const Message& message) {
  liveness_[worker].last_message = Now();
  liveness_[worker].owes_answer = true;
  if (!sockets_[worker].Send(message)) ThrowEnd();
}

Message Workers::Receive(int worker) {
  MessageSocket& socket = sockets_[worker];
  bool rechecked = false;
  while (true) {
    auto timeout = UntilStall();
    if (timeout && timeout->count() <= 0) {
      if (rechecked) EndStalled();
      rechecked = true;
      timeout = kRecheckTimeout;
    } else {
      rechecked = false;
    }
    pollfd polled[] = {{socket.fd(), POLLIN, 0}, {ended_.get(), POLLIN, 0}};
    if (poll(polled, 2, timeout ? static_cast<int>(timeout->count()) : -1) <= 0) continue;
    if (polled[0].revents != 0) {
      if (auto answer = socket.Receive()) {
        liveness_[worker].owes_answer = false;
        liveness_[worker].silence = 0;  // its heartbeat that ends the silence may arrive later
        return std::move(*answer);
      }
      ThrowEnd();
    }
    if (polled[1].revents != 0) ThrowEnd();
  }
}

std::vector<Message> Workers::Call(const Message& message) {
  for (int worker = 0; worker < size(); ++worker) Send(worker, message);
  std::vector<Message> answers;
  for (int worker = 0; worker < size(); ++worker) answers.push_back(Receive(worker));
  return answers;
}

// If one worker may be silent, the others may be too, because they may wait for it.
std::int64_t Workers::SilenceAllowed() const {
  std::int64_t silence = 0;
  for (int worker = 0; worker < size(); ++worker) {
    silence = std::max<std::int64_t>(silence, liveness_[worker].silence);
  }
  return silence + stall_timeout_.count();
}

std::optional<milliseconds> Workers::UntilStall() const {
  if (stall_timeout_.count() == 0) return std::nullopt;
  std::int64_t since = Now();  // the value if no worker owes an answer
  for (int worker = 0; worker < size(); ++worker) {
    const Liveness& liveness = liveness_[worker];
    if (liveness.owes_answer && liveness.pid != 0)
      since = std::min<std::int64_t>(since, liveness.last_message);
  }
  // Checks again when a worker could be late; an announced silence may have ended.
  return std::min({milliseconds(since + SilenceAllowed() - Now()), stall_timeout_, kPollMax});
}

// Blames a stopped worker, or else the worker with the longest silence. Blames none if every late
// worker has answered in the meantime.
void Workers::EndStalled() {
  const std::int64_t late = Now() - SilenceAllowed();
  int culprit = -1;
  bool stopped = false;
  bool any_late = false;
  for (int worker = 0; worker < size(); ++worker) {
    const Liveness& liveness = liveness_[worker];
    if (!liveness.owes_answer || liveness.pid == 0) continue;
    any_late |= liveness.last_message <= late;
    const bool is_stopped = ReadProcess(liveness.pid).is_stopped;
    if (culprit < 0 || (is_stopped && !stopped) ||
        (is_stopped == stopped && liveness.last_message < liveness_[culprit].last_message)) {
      culprit = worker;
      stopped = is_stopped;
    }
  }
  if (!any_late) return;
  Blame(culprit, "was silent for " + std::to_string(Now() - liveness_[culprit].last_message) +
                     " ms" + (stopped ? ": its process is stopped" : ""));
  ThrowEnd();
}

// Keeps only the first cause.
void Workers::Blame(int worker, const std::string& cause) {
  const std::lock_guard lock(fault_mutex_);
  if (at_fault_ >= 0) return;
  at_fault_ = worker;
  fault_ = "worker " + std::to_string(worker) + " " + cause;
  Kill();
}

}  // namespace attune::inline sdk::trainable
