#include "trainable/start/local_gang.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "attune/error.h"
#include "system/processes.h"
#include "system/sockets.h"

namespace attune::inline sdk::trainable {
namespace {

// From the first sign of a failure to the teardown, for the cause to show itself behind its
// victims.
constexpr std::chrono::milliseconds kFailureGrace{100};
// For a rank that says why it fails to leave by itself, so that its exit code is known as well.
constexpr std::chrono::milliseconds kLeaveGrace{1000};
// What a rank that has ended may have left in its channel, if a child of it goes on writing.
constexpr int kDrainReads = 64;

std::string Describe(const channel::Exited& exited) {
  if (exited.signal == 0) return "exit code " + std::to_string(exited.exit_code);
  return "killed by signal " + std::to_string(exited.signal) + " (" + strsignal(exited.signal) +
         ")";
}

int MillisecondsUntil(std::chrono::steady_clock::time_point when) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(when - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

}  // namespace

std::variant<LocalLauncher, Role> LocalLauncher::Fork(const sigset_t& rank_signals) {
  auto [ours, theirs] = OrThrow(SocketPair(SOCK_SEQPACKET), "launcher");
  const UniqueFd self = OpenPidfd(getpid());
  if (!self) ThrowErrno("pidfd_open");
  FlushOutput();
  const pid_t pid = fork();
  if (pid < 0) ThrowErrno("fork");
  if (pid == 0) {
    ours.reset();
    return ServeLocalLauncher(std::move(theirs), rank_signals, self);
  }
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd) ThrowErrno("pidfd_open of process " + std::to_string(pid));
  return LocalLauncher(pid, std::move(pidfd), std::move(ours));
}

LocalLauncher::~LocalLauncher() {
  if (!pidfd_) return;
  socket_.reset();
  pollfd ended{pidfd_.get(), POLLIN, 0};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (poll(&ended, 1, MillisecondsUntil(deadline)) < 0 && errno == EINTR) {
  }
  waitpid(pid_, nullptr, WNOHANG);
}

LocalGang::LocalGang(LocalLauncher& launcher, std::vector<channel::Start> ranks,
                     std::vector<std::string> args, Events events, std::vector<UniqueFd> drivers)
    : launcher_(launcher), args_(std::move(args)), events_(std::move(events)) {
  for (channel::Start& start : ranks) ranks_.emplace_back().start = std::move(start);
  for (std::size_t i = 0; i < drivers.size(); ++i) ranks_[i].driver = std::move(drivers[i]);
}

LocalGang::End LocalGang::Run(int stop_fd) {
  AskForNext();
  while (!IsOver()) Wait(stop_fd);
  if (!suspects_.empty() && !give_up_at_) Blame();  // all have left before they were blamed
  return std::move(end_);
}

bool LocalGang::IsOver() const {
  if (launcher_gone_) return true;
  if (give_up_at_ && Clock::now() >= *give_up_at_) return true;
  return !fork_pending_ && std::ranges::none_of(ranks_, &Rank::is_running) &&
         (give_up_at_ || forked_ == ranks_.size());
}

void LocalGang::Wait(int stop_fd) {
  std::vector<pollfd> polled = {{give_up_at_ ? -1 : stop_fd, POLLIN, 0},
                                {launcher_.socket(), POLLIN, 0}};
  for (const Rank& rank : ranks_) {
    const short events = rank.unsent.empty() ? POLLIN : POLLIN | POLLOUT;
    polled.push_back({rank.channel.get(), events, 0});
  }
  const auto until = give_up_at_ ? give_up_at_ : blame_at_;
  if (poll(polled.data(), polled.size(), until ? MillisecondsUntil(*until) : -1) < 0) return;

  if (polled[0].revents != 0) TearDown({.outcome = End::Outcome::kStopped});
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (polled[2 + i].revents != 0) OnChannel(ranks_[i], polled[2 + i].revents);
  }
  if (polled[1].revents != 0) OnLauncher();
  if (blame_at_ && !give_up_at_ && Clock::now() >= *blame_at_) Blame();
}

// One after the other: the others join the group that the first one makes.
void LocalGang::AskForNext() {
  if (forked_ == ranks_.size() || give_up_at_) return;
  Rank& rank = ranks_[forked_];
  auto [ours, theirs] = OrThrow(SocketPair(SOCK_STREAM), "worker channel");
  channel::Fork fork{.request = forked_, .argv = {"rank"}, .process_group = ranks_[0].pid};
  fork.argv.insert(fork.argv.end(), args_.begin(), args_.end());
  const std::string packet = ToPacket(fork);
  if (packet.size() > kPacketBytesMax) {
    throw Error("the arguments after `--` are too long: " + std::to_string(packet.size()) +
                " bytes, of at most " + std::to_string(kPacketBytesMax));
  }
  std::vector<int> descriptors = {theirs.get()};
  if (rank.driver) descriptors.push_back(rank.driver.get());
  if (!SendPacket(launcher_.socket(), packet, descriptors, 0) && errno != EPIPE &&
      errno != ECONNRESET) {
    return TearDown({.outcome = End::Outcome::kFailed,
                     .rank = IndexOf(rank),
                     .message = std::string("cannot be asked for: ") + std::strerror(errno)});
  }
  // Also where the launcher is gone, which its socket says next.
  rank.channel = std::move(ours);
  rank.driver.reset();
  fork_pending_ = true;
}

void LocalGang::OnLauncher() {
  std::optional<Packet> packet = ReceivePacket(launcher_.socket(), MSG_DONTWAIT);
  if (!packet && errno == EAGAIN) return;
  if (!packet) {
    // Ranks die with it; what they started and is in their group is left to us.
    if (ranks_[0].pid != 0) kill(-ranks_[0].pid, SIGKILL);
    launcher_gone_ = true;
    if (!give_up_at_) {
      end_ = {.outcome = End::Outcome::kFailed, .message = "the process that forked them is gone"};
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

void LocalGang::OnForked(const channel::Forked& forked, UniqueFd pidfd) {
  fork_pending_ = false;
  Rank& rank = ranks_[forked_++];
  if (!forked.error.empty()) {
    return TearDown({.outcome = End::Outcome::kFailed,
                     .rank = IndexOf(rank),
                     .message = "cannot be started: " + forked.error});
  }
  rank.pid = forked.pid;
  rank.pidfd = std::move(pidfd);
  if (events_.started) events_.started(IndexOf(rank), rank.pid);
  if (give_up_at_) {
    syscall(SYS_pidfd_send_signal, rank.pidfd.get(), SIGKILL, nullptr, 0);
    return;
  }
  if (forked_ < ranks_.size()) return AskForNext();
  // Not before all are there, since what one says may have to be told to the others.
  for (Rank& each : ranks_) Send(each, ToLine(each.start));
}

void LocalGang::OnExited(const channel::Exited& exited) {
  const auto found = std::ranges::find(ranks_, exited.pid, &Rank::pid);
  if (found == ranks_.end()) return;
  Rank& rank = *found;
  // Its last words are in the socket by now. The stream need not end with them: what it has forked
  // may hold the other end.
  for (int i = 0; i < kDrainReads && Read(rank); ++i) {
  }
  rank.exited = exited;
  rank.channel.reset();
  if (give_up_at_) return;
  if (exited.exit_code == 0 && exited.signal == 0) {
    if (events_.left) events_.left(IndexOf(rank));
    return;
  }
  Suspect(rank);
  if (!rank.lost_peer) Blame();
}

void LocalGang::OnChannel(Rank& rank, short events) {
  if ((events & POLLOUT) != 0) SendSome(rank.channel.get(), rank.unsent);
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) Read(rank);
}

bool LocalGang::Read(Rank& rank) {
  if (!rank.channel) return false;
  const std::optional<std::size_t> count = channel::ReceiveSome(rank.channel.get(), rank.lines);
  std::string problem;
  while (const auto line = rank.lines.Next()) {
    auto message = channel::ParseFromRank(*line);
    if (!message.ok()) {
      problem = message.error().message;
      break;
    }
    if (events_.heard) events_.heard(IndexOf(rank), std::chrono::milliseconds(0));
    std::visit([&](const auto& each) { On(rank, each); }, message.value());
  }
  if (rank.lines.is_too_long()) problem = rank.lines.TooLong();
  if (!problem.empty()) {
    rank.channel.reset();
    TearDown({.outcome = End::Outcome::kFailed,
              .rank = IndexOf(rank),
              .message = "wrote to its channel " + problem});
  } else if (!count) {
    rank.channel.reset();
  }
  return rank.channel && *count > 0;
}

void LocalGang::Send(Rank& rank, const std::string& line) {
  if (!rank.channel) return;
  rank.unsent += line;
  SendSome(rank.channel.get(), rank.unsent);
}

void LocalGang::On(Rank& rank, const channel::Rendezvous& rendezvous) {
  for (Rank& other : ranks_) {
    if (&other != &rank) Send(other, ToLine(rendezvous));
  }
}

void LocalGang::On(Rank& rank, const channel::Report& report) {
  if (events_.report) events_.report(report);
  if (!report.waits.value_or(false)) return;
  Send(rank, ToLine(channel::Verdict{.step = report.step, .action = channel::Action::kStop}));
}

void LocalGang::On(Rank&, const channel::Logged& logged) {
  if (events_.logged) events_.logged(logged);
}

void LocalGang::On(Rank&, const channel::CheckpointSaved& checkpoint) {
  if (events_.checkpoint) events_.checkpoint(checkpoint);
}

void LocalGang::On(Rank& rank, const channel::ErrorText& error) {
  rank.error = error.message;
  rank.lost_peer = error.lost_peer;
  Suspect(rank);
}

void LocalGang::On(Rank& rank, const channel::Heartbeat& heartbeat) {
  if (events_.heard) events_.heard(IndexOf(rank), heartbeat.silence);
}

void LocalGang::Suspect(Rank& rank) {
  if (std::ranges::find(suspects_, &rank) == suspects_.end()) suspects_.push_back(&rank);
  if (!blame_at_) blame_at_ = Clock::now() + kFailureGrace;
  if (!rank.suspected_at) rank.suspected_at = Clock::now();
}

// The first that has not lost a peer, or simply the first.
void LocalGang::Blame() {
  if (give_up_at_) return;
  const auto cause = std::ranges::find(suspects_, false, &Rank::lost_peer);
  const Rank& culprit = cause == suspects_.end() ? *suspects_.front() : **cause;
  blame_at_ = *culprit.suspected_at + kLeaveGrace;
  if (culprit.is_running() && Clock::now() < *blame_at_) return;
  std::string message = culprit.exited ? Describe(*culprit.exited) : "";
  if (!culprit.error.empty()) message += (message.empty() ? "" : ": ") + culprit.error;
  TearDown({.outcome = End::Outcome::kFailed,
            .rank = IndexOf(culprit),
            .threw = !culprit.error.empty() && !culprit.lost_peer,
            .message = std::move(message)});
}

void LocalGang::TearDown(End end) {
  if (give_up_at_) return;
  end_ = std::move(end);
  give_up_at_ = Clock::now() + LocalLauncher::kPatience;
  for (const Rank& rank : ranks_) {
    if (rank.is_running()) {
      syscall(SYS_pidfd_send_signal, rank.pidfd.get(), SIGKILL, nullptr, 0);
    }
  }
}

}  // namespace attune::inline sdk::trainable
