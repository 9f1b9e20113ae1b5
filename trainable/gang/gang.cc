#include "trainable/gang/gang.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "attune/error.h"
#include "system/sockets.h"

namespace attune::inline sdk::trainable {
namespace {

// The time from the first sign of a failure to the teardown, because victims may fail before the
// cause.
constexpr std::chrono::milliseconds kFailureGrace{100};
// The time for a worker that has sent its error to exit, so that its exit code is known too.
constexpr std::chrono::milliseconds kLeaveGrace{1000};
// The maximum number of reads from an ended worker; a child of it may still write.
constexpr int kDrainReads = 64;

std::string Describe(const channel::Exited& exited) {
  if (exited.signal == 0) return "exit code " + std::to_string(exited.exit_code);
  return "killed by signal " + std::to_string(exited.signal) + " (" + strsignal(exited.signal) +
         ")";
}

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

}  // namespace

Gang::Gang(Launcher& launcher, std::vector<channel::Start> starts, std::vector<std::string> args,
           Events events, std::vector<UniqueFd> drivers)
    : launcher_(launcher), args_(std::move(args)), events_(std::move(events)) {
  for (channel::Start& start : starts) workers_.emplace_back().start = std::move(start);
  for (std::size_t i = 0; i < drivers.size(); ++i) workers_[i].driver = std::move(drivers[i]);
}

void Gang::Worker::Kill() const {
  syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
}

Gang::End Gang::Run(int stop_fd) {
  RequestNextFork();
  while (!IsOver()) Wait(stop_fd);
  if (!suspects_.empty() && !give_up_at_) Blame();  // all workers have exited before one was blamed
  return std::move(end_);
}

bool Gang::IsOver() const {
  if (launcher_gone_) return true;
  if (give_up_at_ && Clock::now() >= *give_up_at_) return true;
  return !fork_pending_ && std::ranges::none_of(workers_, &Worker::is_running) &&
         (give_up_at_ || forked_ == workers_.size());
}

void Gang::Wait(int stop_fd) {
  std::vector<pollfd> polled = {{give_up_at_ ? -1 : stop_fd, POLLIN, 0},
                                {launcher_.socket(), POLLIN, 0}};
  for (const Worker& worker : workers_) {
    const short events = worker.unsent.empty() ? POLLIN : POLLIN | POLLOUT;
    polled.push_back({worker.channel.get(), events, 0});
  }
  const auto deadline = give_up_at_ ? give_up_at_ : blame_at_;
  if (poll(polled.data(), polled.size(), deadline ? MillisecondsUntil(*deadline) : -1) < 0) return;

  if (polled[0].revents != 0) TearDown({.outcome = End::Outcome::kStopped});
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (polled[2 + i].revents != 0) OnChannel(workers_[i], polled[2 + i].revents);
  }
  if (polled[1].revents != 0) ReadLauncher();
  if (blame_at_ && !give_up_at_ && Clock::now() >= *blame_at_) Blame();
}

// Requests one fork at a time, because the later workers join the process group that the first one
// creates.
void Gang::RequestNextFork() {
  if (forked_ == workers_.size() || give_up_at_) return;
  Worker& worker = workers_[forked_];
  auto [gang_end, worker_end] = OrThrow(SocketPair(SOCK_STREAM), "worker channel");
  channel::Fork fork{.request = forked_, .argv = {"worker"}, .process_group = workers_[0].pid};
  fork.argv.insert(fork.argv.end(), args_.begin(), args_.end());
  const std::string packet = ToPacket(fork);
  if (packet.size() > kPacketBytesMax) {
    throw Error("the arguments after `--` are too long: " + std::to_string(packet.size()) +
                " bytes; at most " + std::to_string(kPacketBytesMax) + " are allowed");
  }
  std::vector<int> descriptors = {worker_end.get()};
  if (worker.driver) descriptors.push_back(worker.driver.get());
  if (!SendPacket(launcher_.socket(), packet, descriptors, 0) && errno != EPIPE &&
      errno != ECONNRESET) {
    return Fail(worker, std::string("cannot be requested: ") + std::strerror(errno));
  }
  // Also done if the launcher is gone; its socket reports that next.
  worker.channel = std::move(gang_end);
  worker.driver.reset();
  fork_pending_ = true;
}

void Gang::ReadLauncher() {
  std::optional<Packet> packet = ReceivePacket(launcher_.socket(), MSG_DONTWAIT);
  if (!packet && errno == EAGAIN) return;
  if (!packet) {
    // Workers end with the launcher. Processes that they started are in their process group.
    if (workers_[0].pid != 0) kill(-workers_[0].pid, SIGKILL);
    launcher_gone_ = true;
    if (!give_up_at_) {
      end_ = {.outcome = End::Outcome::kFailed, .message = "the launcher process has ended"};
      give_up_at_ = Clock::now();
    }
    return;
  }
  const auto message = OrThrow(channel::ParseFromLauncher(packet->bytes), "launcher");
  if (const auto* forked = std::get_if<channel::Forked>(&message)) {
    OnForked(*forked, packet->descriptors.empty() ? UniqueFd() : std::move(packet->descriptors[0]));
  } else if (const auto* exited = std::get_if<channel::Exited>(&message)) {
    OnExited(*exited);
  }
}

void Gang::OnForked(const channel::Forked& forked, UniqueFd pidfd) {
  fork_pending_ = false;
  Worker& worker = workers_[forked_++];
  if (!forked.error.empty()) return Fail(worker, "cannot be started: " + forked.error);
  worker.pid = forked.pid;
  worker.pidfd = std::move(pidfd);
  if (events_.on_started) events_.on_started(IndexOf(worker), worker.pid);
  if (give_up_at_) return worker.Kill();
  if (forked_ < workers_.size()) return RequestNextFork();
  // Sent only after all workers exist, because a worker's message may have to be forwarded to the
  // others.
  for (Worker& each : workers_) Send(each, ToLine(each.start));
}

void Gang::OnExited(const channel::Exited& exited) {
  const auto found = std::ranges::find(workers_, exited.pid, &Worker::pid);
  if (found == workers_.end()) return;
  Worker& worker = *found;
  // Its last messages are in the socket by now. A forked child of it may keep the stream open.
  for (int i = 0; i < kDrainReads && Read(worker); ++i) {
  }
  worker.exited = exited;
  worker.channel.reset();
  if (give_up_at_) return;
  if (exited.exit_code == 0 && exited.signal == 0) {
    if (events_.on_left) events_.on_left(IndexOf(worker));
    return;
  }
  Suspect(worker);
  if (!worker.lost_peer) Blame();
}

void Gang::OnChannel(Worker& worker, short events) {
  if ((events & POLLOUT) != 0) SendSome(worker.channel.get(), worker.unsent);
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) Read(worker);
}

bool Gang::Read(Worker& worker) {
  if (!worker.channel) return false;
  const std::optional<std::size_t> count = channel::ReceiveSome(worker.channel.get(), worker.lines);
  std::string problem;
  while (const auto line = worker.lines.Next()) {
    auto message = channel::ParseFromRank(*line);
    if (!message.ok()) {
      problem = message.error().message;
      break;
    }
    if (events_.on_message) events_.on_message(IndexOf(worker), std::chrono::milliseconds(0));
    std::visit([&](const auto& each) { Handle(worker, each); }, message.value());
  }
  if (worker.lines.is_too_long()) problem = worker.lines.TooLong();
  if (!problem.empty()) {
    worker.channel.reset();
    Fail(worker, "wrote to its channel " + problem);
  } else if (!count) {
    worker.channel.reset();
  }
  return worker.channel && *count > 0;
}

void Gang::Send(Worker& worker, const std::string& line) {
  if (!worker.channel) return;
  worker.unsent += line;
  SendSome(worker.channel.get(), worker.unsent);
}

void Gang::Handle(Worker& worker, const channel::Rendezvous& rendezvous) {
  for (Worker& other : workers_) {
    if (&other != &worker) Send(other, ToLine(rendezvous));
  }
}

void Gang::Handle(Worker& worker, const channel::Report& report) {
  if (events_.on_report) events_.on_report(report);
  if (!report.waits.value_or(false)) return;
  Send(worker, ToLine(channel::Verdict{.step = report.step, .action = channel::Action::kStop}));
}

void Gang::Handle(Worker&, const channel::Logged& logged) {
  if (events_.on_logged) events_.on_logged(logged);
}

void Gang::Handle(Worker&, const channel::CheckpointSaved& checkpoint) {
  if (events_.on_checkpoint) events_.on_checkpoint(checkpoint);
}

void Gang::Handle(Worker& worker, const channel::ErrorText& error) {
  worker.error = error.message;
  worker.lost_peer = error.lost_peer;
  Suspect(worker);
}

void Gang::Handle(Worker& worker, const channel::Heartbeat& heartbeat) {
  if (events_.on_message) events_.on_message(IndexOf(worker), heartbeat.silence);
}

void Gang::Suspect(Worker& worker) {
  if (std::ranges::find(suspects_, &worker) == suspects_.end()) suspects_.push_back(&worker);
  if (!blame_at_) blame_at_ = Clock::now() + kFailureGrace;
  if (!worker.suspected_at) worker.suspected_at = Clock::now();
}

// Blames the first suspect that has not lost a peer, or else the first suspect.
void Gang::Blame() {
  if (give_up_at_) return;
  const auto cause = std::ranges::find(suspects_, false, &Worker::lost_peer);
  const Worker& culprit = cause == suspects_.end() ? *suspects_.front() : **cause;
  blame_at_ = *culprit.suspected_at + kLeaveGrace;
  if (culprit.is_running() && Clock::now() < *blame_at_) return;
  std::string message = culprit.exited ? Describe(*culprit.exited) : "";
  if (!culprit.error.empty()) message += (message.empty() ? "" : ": ") + culprit.error;
  Fail(culprit, std::move(message), /*threw=*/!culprit.error.empty() && !culprit.lost_peer);
}

void Gang::Fail(const Worker& worker, std::string message, bool threw) {
  TearDown({.outcome = End::Outcome::kFailed,
            .worker = IndexOf(worker),
            .threw = threw,
            .message = std::move(message)});
}

void Gang::TearDown(End end) {
  if (give_up_at_) return;
  end_ = std::move(end);
  give_up_at_ = Clock::now() + Launcher::kPatience;
  for (const Worker& worker : workers_) {
    if (worker.is_running()) worker.Kill();
  }
}

}  // namespace attune::inline sdk::trainable
