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

// How long to look for unread messages after a worker seems to have been silent for too long. This
// process may have been stopped, and its workers not.
constexpr milliseconds kSecondLook{500};

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
      pulses_(std::make_unique<Pulse[]>(options.starts.size())) {
  Task& task = options.task;
  task.workers = static_cast<int>(options.starts.size());
  std::vector<UniqueFd> theirs;
  for (task.worker = 0; task.worker < task.workers; ++task.worker) {
    auto [ours, other] = OrThrow(SocketPair(SOCK_SEQPACKET), "driver");
    sockets_.emplace_back(std::move(ours)).Send({.bytes = ToBytes(task), .file = {}});
    theirs.push_back(std::move(other));
  }
  gang_thread_ = std::thread(&Workers::RunGang, this, std::move(options.starts), std::move(theirs));
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
  Gang::Events events{.started =
                          [this](int worker, pid_t pid) {
                            pulses_[worker].heard = Now();
                            pulses_[worker].pid = pid;
                          },
                      .heard =
                          [this](int worker, milliseconds silence) {
                            pulses_[worker].heard = Now();
                            pulses_[worker].silence = silence.count();
                          },
                      .left =
                          [this](int worker) {
                            if (closing_) return;
                            Blame(worker, "failed: it has left, with exit code 0");
                          }};
  try {
    // Without arguments: a fork has the program's.
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
  pulses_[worker].heard = Now();
  pulses_[worker].owes = true;
  if (!sockets_[worker].Send(message)) ThrowEnd();
}

Message Workers::Receive(int worker) {
  MessageSocket& socket = sockets_[worker];
  bool looked_again = false;
  while (true) {
    auto patience = UntilStall();
    if (patience && patience->count() <= 0) {
      if (looked_again) EndStalled();
      looked_again = true;
      patience = kSecondLook;
    } else {
      looked_again = false;
    }
    pollfd polled[] = {{socket.fd(), POLLIN, 0}, {ended_.get(), POLLIN, 0}};
    if (poll(polled, 2, patience ? static_cast<int>(patience->count()) : -1) <= 0) continue;
    if (polled[0].revents != 0) {
      if (auto answer = socket.Receive()) {
        pulses_[worker].owes = false;
        pulses_[worker].silence = 0;  // the heartbeat that says so may still be on its way
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

// While one worker may be silent, the others may too, because they may wait for it.
std::int64_t Workers::SilenceAllowed() const {
  std::int64_t silence = 0;
  for (int worker = 0; worker < size(); ++worker) {
    silence = std::max<std::int64_t>(silence, pulses_[worker].silence);
  }
  return silence + stall_timeout_.count();
}

std::optional<milliseconds> Workers::UntilStall() const {
  if (stall_timeout_.count() == 0) return std::nullopt;
  std::int64_t since = Now();  // if no worker owes an answer
  for (int worker = 0; worker < size(); ++worker) {
    const Pulse& pulse = pulses_[worker];
    if (pulse.owes && pulse.pid != 0) since = std::min<std::int64_t>(since, pulse.heard);
  }
  // Look again when a worker could be late, because an announced silence may be over by then.
  return std::min({milliseconds(since + SilenceAllowed() - Now()), stall_timeout_, kPollMax});
}

// Blames a stopped worker, or else the one that has been silent for the longest time. Blames none
// if the last late worker has answered by now.
void Workers::EndStalled() {
  const std::int64_t late = Now() - SilenceAllowed();
  int culprit = -1;
  bool stopped = false;
  bool anyone = false;
  for (int worker = 0; worker < size(); ++worker) {
    const Pulse& pulse = pulses_[worker];
    if (!pulse.owes || pulse.pid == 0) continue;
    anyone |= pulse.heard <= late;
    const bool is_stopped = ReadProcess(pulse.pid).is_stopped;
    if (culprit < 0 || (is_stopped && !stopped) ||
        (is_stopped == stopped && pulse.heard < pulses_[culprit].heard)) {
      culprit = worker;
      stopped = is_stopped;
    }
  }
  if (!anyone) return;
  Blame(culprit, "has said nothing for " + std::to_string(Now() - pulses_[culprit].heard) + " ms" +
                     (stopped ? ": its process is stopped" : ""));
  ThrowEnd();
}

// Keeps the first cause.
void Workers::Blame(int worker, const std::string& cause) {
  const std::lock_guard lock(fault_mutex_);
  if (at_fault_ >= 0) return;
  at_fault_ = worker;
  fault_ = "worker " + std::to_string(worker) + " " + cause;
  Kill();
}

}  // namespace attune::inline sdk::trainable
