#include "executor/gang/rank.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "system/sockets.h"

namespace attune::gang {
namespace {

// One turn of the loop, so that a talkative rank does not starve the others.
constexpr size_t kReadBytesMax = 256 * 1024;
// After the exit: more than a socket holds, but not without end should a child of the rank have
// inherited the channel and go on writing.
constexpr size_t kDrainBytesMax = 4 << 20;

// Whether a rank says this only while it trains.
bool IsWork(const channel::FromRank& message) {
  return std::holds_alternative<channel::Progress>(message) ||
         std::holds_alternative<channel::Report>(message) ||
         std::holds_alternative<channel::Logged>(message) ||
         std::holds_alternative<channel::CheckpointSaved>(message);
}

}  // namespace

Rank::Rank(Loop& loop, RankSlot slot, int world_size, Owner& owner)
    : loop_(loop),
      slot_(std::move(slot)),
      owner_(owner),
      descendants_(loop, slot_, world_size, *this) {}

Result<UniqueFd> Rank::OpenChannel() {
  auto ends = SocketPair(SOCK_STREAM);
  if (!ends.ok()) return ends.error();
  channel_ = std::move(ends.value().first);
  return std::move(ends.value().second);
}

void Rank::Attach(Child child, Parent parent) {
  child_ = std::move(child);
  parent_ = parent;
  last_heard_ = Loop::Clock::now();
  WatchChannel();
  if (child_.pidfd) {
    exit_watch_ = loop_.Watch(child_.pidfd.get(), EPOLLIN, [this](uint32_t) { OnPidfd(); });
  }
}

void Rank::WatchChannel() {
  channel_watch_ = loop_.Watch(channel_.get(), unsent_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT,
                               [this](uint32_t events) { OnChannel(events); });
}

void Rank::ReadOn() {
  descendants_.ReadOn();
  if (!std::exchange(left_unread_, false) || exit_) return;
  last_heard_ = Loop::Clock::now();
  // Its channel may be watched still, if only a program below it was left unread.
  if (!channel_watch_ && !deaf_) WatchChannel();
}

void Rank::Send(std::string_view line) {
  if (descendants_.Send(line)) return;
  unsent_.append(line);
  Flush();
}

void Rank::Flush() {
  if (channel_) SendSome(channel_.get(), unsent_);
  if (channel_watch_) loop_.Change(channel_watch_, unsent_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void Rank::OnChannel(uint32_t events) {
  if (events & EPOLLOUT) Flush();
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  if (owner_.MayRead()) return Read(kReadBytesMax);
  left_unread_ = true;
  channel_watch_.Reset();  // and not only its EPOLLIN: a hang-up would be told without end
}

void Rank::Read(size_t bytes_max) {
  size_t total = 0;
  while (channel_ && !deaf_ && total < bytes_max) {
    const std::optional<size_t> count = channel::ReceiveSome(channel_.get(), lines_);
    if (count == 0) return;
    if (!count) {
      channel_watch_.Reset();  // closed by the rank, which may well go on without it
      return;
    }
    total += *count;
    last_heard_ = Loop::Clock::now();
    spoken_ = own_process_speaks_ = true;
    std::string problem;
    while (const auto line = lines_.Next()) {
      Result<channel::FromRank> message = channel::ParseFromRank(*line);
      if (!message.ok()) {
        problem = message.error().message;
        break;
      }
      if (IsWork(message.value())) {
        trains_ = true;
        if (const pid_t other = descendants_.Speaker(); other != 0) {
          problem = "that it trains, and process " + std::to_string(other) +
                    " below it does, too; one of them may report";
          break;
        }
      }
      owner_.OnMessage(*this, std::move(message.value()));
    }
    if (lines_.is_too_long()) problem = lines_.TooLong();
    if (!problem.empty()) {
      deaf_ = true;
      channel_watch_.Reset();
      owner_.OnBadLine(*this, problem);
    }
  }
}

void Rank::OnClaimed() {
  spoken_ = true;
  own_process_speaks_ = false;
  if (!descendants_.has_launcher()) leaving_.reset();  // said by a program before this one
  owner_.OnClaimed(*this);
}

std::optional<Loop::Clock::time_point> Rank::LeftFrom() const {
  if (!exit_) return own_process_speaks_ ? std::nullopt : descendants_.LeftFrom();
  return exit_->ok() ? ended_at_.value_or(Loop::Clock::now())
                     : std::optional<Loop::Clock::time_point>();
}

void Rank::OnDescendantMessage(channel::FromRank message) {
  last_heard_ = Loop::Clock::now();
  owner_.OnMessage(*this, std::move(message));
}

void Rank::OnDescendantBadLine(const std::string& problem) { owner_.OnBadLine(*this, problem); }

bool Rank::MayReadDescendants() {
  const bool may_read = owner_.MayRead();
  left_unread_ |= !may_read;
  return may_read;
}

void Rank::OnPidfd() {
  exit_watch_.Reset();  // readable from now on
  ended_at_ = Loop::Clock::now();
  if (parent_ == Parent::kLauncher && !orphaned_) return owner_.OnUnexplained();
  // Empty when the launcher reaped it and died before it could tell.
  Finish(Reap(child_.pidfd.get()).value_or(ExitStatus{.signal = SIGKILL}));
}

void Rank::OnLauncherReport(std::optional<ExitStatus> status) {
  if (status) return Finish(*status);
  orphaned_ = true;
  if (ended_at_ || !child_.pidfd) {
    OnPidfd();
  } else {
    Kill();
  }
}

void Rank::ExpectSilence(std::chrono::milliseconds silence) {
  silent_until_ = silence.count() > 0 ? Loop::Clock::now() + silence : Loop::Clock::time_point{};
}

void Rank::Terminate() {
  if (is_running()) syscall(SYS_pidfd_send_signal, child_.pidfd.get(), SIGTERM, nullptr, 0);
}

void Rank::Kill() {
  if (!is_running() || ended_at_) return;  // the rank had ended before, and nobody knows yet how
  killed_ = true;
  // Beside the signal to the group, for a rank that made a group of its own.
  syscall(SYS_pidfd_send_signal, child_.pidfd.get(), SIGKILL, nullptr, 0);
}

void Rank::Finish(ExitStatus status) {
  if (exit_) return;
  exit_watch_.Reset();
  Read(kDrainBytesMax);
  descendants_.Drain();
  channel_watch_.Reset();
  channel_.reset();
  exit_ = status;
  owner_.OnExit(*this);
}

}  // namespace attune::gang
