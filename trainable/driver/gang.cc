#include "trainable/driver/gang.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "attune/error.h"
#include "system/processes.h"
#include "system/sockets.h"
#include "trainable/driver/driver.h"

namespace attune::inline sdk::trainable {
namespace {

using std::chrono::milliseconds;

// For messages that lie unread, after a worker seems to have been silent for too long: this process
// may have been stopped meanwhile, and its workers not.
constexpr milliseconds kSecondLook{500};

constexpr milliseconds kPollMax{1 << 30};

std::int64_t Now() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

UniqueFd Event() {
  UniqueFd event(eventfd(0, EFD_CLOEXEC));
  if (!event) ThrowErrno("eventfd");
  return event;
}

void Raise(const UniqueFd& event) { eventfd_write(event.get(), 1); }

}  // namespace

Gang::Gang(Options options)
    : stall_timeout_(options.stall_timeout),
      launcher_(ForkLauncher()),
      stop_(Event()),
      ended_(Event()),
      pulses_(std::make_unique<Pulse[]>(options.workers.size())) {
  const Message task{.bytes = ToBytes(options.task), .file = {}};
  std::vector<UniqueFd> theirs;
  for (std::size_t worker = 0; worker < options.workers.size(); ++worker) {
    auto [ours, other] = OrThrow(SocketPair(SOCK_SEQPACKET), "driver");
    links_.emplace_back(std::move(ours)).Send(task);
    theirs.push_back(std::move(other));
  }
  supervisor_ = std::thread(&Gang::Supervise, this, std::move(options.workers), std::move(theirs));
}

Gang::~Gang() {
  closing_ = true;
  for (Link& link : links_) link.Close();
  if (!AwaitEnd(kPatience)) Kill();
  supervisor_.join();
}

void Gang::Kill() { Raise(stop_); }

void Gang::Supervise(std::vector<channel::Start> workers, std::vector<UniqueFd> drivers) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);  // the program's handlers run on its own threads
  LocalGang::Events events{.report = {},
                           .checkpoint = {},
                           .started =
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
                                 EndFor(worker, "failed: it has left, with exit code 0");
                               }};
  try {
    // Their arguments are this program's, which a fork has by itself.
    LocalGang gang(launcher_, std::move(workers), /*args=*/{}, std::move(events),
                   std::move(drivers));
    end_ = gang.Run(stop_.get());
  } catch (const std::exception& error) {
    end_ = {.outcome = LocalGang::End::Outcome::kFailed, .threw = true, .message = error.what()};
  }
  Raise(ended_);
}

bool Gang::AwaitEnd(milliseconds timeout) {
  const std::int64_t until = Now() + timeout.count();
  pollfd ended{ended_.get(), POLLIN, 0};
  while (true) {
    const std::int64_t left = std::max<std::int64_t>(0, until - Now());
    const int count = poll(&ended, 1, static_cast<int>(left));
    if (count > 0) return true;
    if (count == 0 && Now() >= until) return false;
  }
}

void Gang::ThrowEnd() {
  while (!AwaitEnd(kPatience)) Kill();
  {
    const std::lock_guard lock(fault_mutex_);
    if (at_fault_ >= 0) throw WorkerError(at_fault_, /*lost=*/true, fault_);
  }
  const std::string who = end_.rank < 0 ? "the workers" : "worker " + std::to_string(end_.rank);
  if (end_.outcome == LocalGang::End::Outcome::kFailed) {
    throw WorkerError(end_.rank, !end_.threw, who + " failed: " + end_.message);
  }
  throw WorkerError(-1, /*lost=*/true, "the workers have ended");
}

void Gang::Send(int worker, const Message& message) {
  pulses_[worker].heard = Now();
  pulses_[worker].owes = true;
  if (!links_[worker].Send(message)) ThrowEnd();
}

Message Gang::Receive(int worker) {
  Link& link = links_[worker];
  bool looked = false;  // a second time
  while (true) {
    auto patience = UntilStall();
    if (patience && patience->count() <= 0) {
      if (looked) EndStalled();
      looked = true;
      patience = kSecondLook;
    } else {
      looked = false;
    }
    pollfd polled[] = {{link.fd(), POLLIN, 0}, {ended_.get(), POLLIN, 0}};
    if (poll(polled, 2, patience ? static_cast<int>(patience->count()) : -1) <= 0) continue;
    if (polled[0].revents != 0) {
      if (auto answer = link.Receive()) {
        pulses_[worker].owes = false;
        pulses_[worker].silence = 0;  // what says so is perhaps still on its way
        return std::move(*answer);
      }
      ThrowEnd();
    }
    if (polled[1].revents != 0) ThrowEnd();
  }
}

std::vector<Message> Gang::Call(const Message& message) {
  for (int worker = 0; worker < size(); ++worker) Send(worker, message);
  std::vector<Message> answers;
  for (int worker = 0; worker < size(); ++worker) answers.push_back(Receive(worker));
  return answers;
}

// While one worker may be silent so may the others, which perhaps wait for it.
std::int64_t Gang::SilenceAllowed() const {
  std::int64_t silence = 0;
  for (int worker = 0; worker < size(); ++worker) {
    silence = std::max<std::int64_t>(silence, pulses_[worker].silence);
  }
  return silence + stall_timeout_.count();
}

std::optional<milliseconds> Gang::UntilStall() const {
  if (stall_timeout_.count() == 0) return std::nullopt;
  std::int64_t since = Now();  // nobody owes anything yet
  for (int worker = 0; worker < size(); ++worker) {
    const Pulse& pulse = pulses_[worker];
    if (pulse.owes && pulse.pid != 0) since = std::min<std::int64_t>(since, pulse.heard);
  }
  // Look again when somebody could be late: meanwhile a silence may be over.
  return std::min({milliseconds(since + SilenceAllowed() - Now()), stall_timeout_, kPollMax});
}

// One that was stopped is the cause, whoever waits for it; else whoever fell silent first. Nobody,
// where the last that was late has answered by now.
void Gang::EndStalled() {
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
  EndFor(culprit, "has said nothing for " + std::to_string(Now() - pulses_[culprit].heard) + " ms" +
                      (stopped ? ": its process is stopped" : ""));
  ThrowEnd();
}

// The first cause is the one.
void Gang::EndFor(int worker, const std::string& cause) {
  const std::lock_guard lock(fault_mutex_);
  if (at_fault_ >= 0) return;
  at_fault_ = worker;
  fault_ = "worker " + std::to_string(worker) + " " + cause;
  Kill();
}

}  // namespace attune::inline sdk::trainable
