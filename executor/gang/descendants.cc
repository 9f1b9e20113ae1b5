#include "executor/gang/descendants.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "logging/log.h"
#include "system/sockets.h"
#include "system/unix_sockets.h"

namespace attune::gang {
namespace {

constexpr size_t kTurnBytesMax = 256 * 1024;  // per turn of the loop
constexpr size_t kLastBytesMax = 4 << 20;
constexpr size_t kConnectionsMax = 1024;  // per rank

}  // namespace

Descendants::~Descendants() {
  if (folder_ == nullptr) return;
  listening_.Reset();
  folder_->Return(std::move(socket_));
}

Status Descendants::Listen(SocketFolder& folder, std::chrono::milliseconds successor_grace) {
  Result<PathSocket> socket = folder.Take();
  if (!socket.ok()) return socket.error();
  folder_ = &folder;
  socket_ = std::move(*socket);
  successor_grace_ = successor_grace;
  const int listener = socket_.listener.get();
  listening_ = loop_.Watch(listener, EPOLLIN, [this](uint32_t) { OnConnection(); });
  return {};
}

void Descendants::OnConnection() {
  UniqueFd socket(accept4(socket_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  const std::optional<Peer> peer = PeerOf(socket.get());
  // Another user may have reached the socket through a container that mounts it.
  if (!peer || (peer->user != geteuid() && peer->user != 0) ||
      connections_.size() >= kConnectionsMax) {
    logging::Warn("refused process {} of user {}, which connected to {}", peer ? peer->process : 0,
                  peer ? peer->user : 0, path().string());
    return;
  }
  connections_.push_back({.socket = std::move(socket), .pid = peer->process});
  Watch(std::prev(connections_.end()));
}

void Descendants::Watch(ConnectionIterator connection) {
  connection->watch =
      loop_.Watch(connection->socket.get(), EPOLLIN,
                  [this, connection](uint32_t events) { OnReady(connection, events); });
}

void Descendants::OnReady(ConnectionIterator connection, uint32_t events) {
  if (events & EPOLLOUT) Write(*connection, "");
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  if (connection->speaks && !owner_.MayReadDescendants()) return connection->watch.Reset();
  if (!Read(*connection, kTurnBytesMax)) Remove(connection);
}

void Descendants::Remove(ConnectionIterator connection) {
  const bool spoke = connection->speaks;
  const std::optional<channel::Join> join = connection->join;
  connections_.erase(connection);
  if (!join || (!spoke && HasProgram(join->rank))) return;
  left_from_[join->rank] = Loop::Clock::now() + successor_grace_;
  if (!launcher_world_size_) return owner_.OnProgramLeft();
  for (Connection& other : connections_) CheckWait(other);
}

bool Descendants::Read(Connection& connection, size_t bytes_max) {
  const bool has_spoken = connection.speaks;
  for (size_t total = 0; total < bytes_max;) {
    const std::optional<size_t> count =
        channel::ReceiveSome(connection.socket.get(), connection.lines);
    if (!count) return false;
    if (*count == 0) return true;
    total += *count;
    if (connection.is_ignored) {
      connection.lines = channel::LineReader();
      continue;
    }
    std::string problem;
    while (const auto line = connection.lines.Next()) {
      Result<channel::FromRank> message = channel::ParseFromRank(*line);
      if (!message.ok()) {
        problem = message.error().message;
        break;
      }
      HandleMessage(connection, std::move(message.value()));
      if (connection.is_ignored) break;
    }
    if (connection.lines.is_too_long()) problem = connection.lines.TooLong();
    // After a claim, the owner must be asked for capacity before the next read.
    if (problem.empty() && connection.speaks != has_spoken) return true;
    if (problem.empty()) continue;
    if (!connection.speaks) {
      // The program waits for an answer, so it gets a refusal.
      Refuse(connection, "process " + std::to_string(connection.pid) + " wrote to the executor " +
                             problem +
                             "; give each process that uses attune a RANK below WORLD_SIZE, and "
                             "both LOCAL_RANK and LOCAL_WORLD_SIZE, in its environment");
      continue;
    }
    connection.is_ignored = true;
    owner_.OnDescendantBadLine(problem);
  }
  return true;
}

void Descendants::HandleMessage(Connection& connection, channel::FromRank message) {
  if (const auto* join = std::get_if<channel::Join>(&message)) return Join(connection, *join);
  if (std::holds_alternative<channel::Claim>(message)) return Claim(connection);
  if (auto* leaving = std::get_if<channel::Leaving>(&message);
      leaving != nullptr && (launcher_world_size_ || !connection.speaks))
    return ForwardReason(connection, std::move(leaving->message));
  if (connection.speaks) return ForwardMessage(connection, std::move(message));
  if (auto* error = std::get_if<channel::ErrorText>(&message); error && !error->lost_peer)
    ForwardReason(connection, std::move(error->message));
}

// Handles the exit reason of a program that has not claimed its rank, or of a launcher's rank. The
// reason counts only if the rank's own process fails, because the parent program may handle the
// error.
void Descendants::ForwardReason(const Connection& connection, std::string reason) {
  if (!connection.join || reason.empty()) return;
  const int rank = connection.join->rank;
  const Connection* speaker = FindSpeaker(rank);
  if (speaker != nullptr && speaker != &connection) return;
  if (launcher_world_size_) reason = "rank " + std::to_string(rank) + " of the launcher: " + reason;
  if (launcher_world_size_ || owner_.OwnSpeaker() == 0)
    owner_.OnDescendantMessage(channel::Leaving{std::move(reason)});
}

void Descendants::ForwardMessage(Connection& connection, channel::FromRank message) {
  if (!launcher_world_size_) return owner_.OnDescendantMessage(std::move(message));
  connection.waiting.reset();
  if (auto* waiting = std::get_if<channel::Waiting>(&message)) {
    connection.waiting = std::move(*waiting);
    return CheckWait(connection);
  }
  const int rank = connection.join->rank;
  const auto* meeting = std::get_if<channel::Rendezvous>(&message);
  if (rank == 0 && meeting != nullptr) {
    rendezvous_ = *meeting;
    for (Connection& other : connections_) {
      if (other.speaks && other.join->rank != 0) Write(other, ToLine(*meeting));
    }
    return;
  }
  if (rank == 0) return owner_.OnDescendantMessage(std::move(message));
  // Rank 0 of the launcher speaks for the gang's rank; the other ranks only report errors.
  if (auto* error = std::get_if<channel::ErrorText>(&message)) {
    error->message = "rank " + std::to_string(rank) + " of the launcher: " + error->message;
    owner_.OnDescendantMessage(std::move(*error));
  }
}

// If a launcher's rank waits for a rank that has left, sends it the verdict or fails the attempt.
void Descendants::CheckWait(Connection& connection) {
  if (!connection.waiting) return;
  for (const int rank : connection.waiting->ranks) {
    const auto left = left_from_.find(rank);
    if (left == left_from_.end()) continue;
    const int64_t step = connection.waiting->step;
    const auto action = rank == 0 ? owner_.ActionAt(step) : std::nullopt;
    if (action) {
      connection.waiting.reset();
      return Write(connection, ToLine(channel::Verdict{.step = step, .action = *action}));
    }
    if (const auto now = Loop::Clock::now(); now < left->second) {
      next_check_ = loop_.CallAfter(left->second - now, [this] {
        for (Connection& other : connections_) CheckWait(other);
      });
      continue;
    }
    connection.waiting.reset();
    return owner_.OnDescendantMessage(channel::ErrorText{
        "rank " + std::to_string(rank) + " of the launcher has left, and rank " +
        std::to_string(connection.join->rank) + " waits for it in a report at step " +
        std::to_string(step) + "; let every rank report equally often, or rank 0 alone"});
  }
}

void Descendants::Join(Connection& connection, const channel::Join& join) {
  if (connection.join) {
    return Refuse(connection, "process " + std::to_string(connection.pid) +
                                  " joined twice; open a new connection to join again");
  }
  Result<channel::Start> start = StartLineFor(connection, join);
  if (!start.ok()) return Refuse(connection, start.error().message);
  connection.join = join;
  left_from_.erase(join.rank);
  Write(connection, ToLine(start.value()));
}

Result<channel::Start> Descendants::StartLineFor(const Connection& connection,
                                                 const channel::Join& join) {
  Result<channel::Start> start = owner_.StartLine();
  if (!start.ok()) return start;
  if (join.world_size == world_size_ && join.rank == slot_.rank) return start;
  const std::string who = "process " + std::to_string(connection.pid) + " says that it is rank " +
                          std::to_string(join.rank) + " of " + std::to_string(join.world_size);
  if (world_size_ > 1) {
    return Invalid(who + ", but it runs below rank " + std::to_string(slot_.rank) +
                   " of a gang of " + std::to_string(world_size_) +
                   " workers; set resources.workers: 1 to use a launcher such as torchrun, or "
                   "start the program without it");
  }
  if (join.local_world_size != join.world_size)
    return Invalid(who +
                   "; a launcher inside a trial cannot use several hosts: let "
                   "resources.workers start the ranks");
  if (launcher_world_size_ > 0 && launcher_world_size_ != join.world_size)
    return Invalid(who + ", but an earlier process said that the world size is " +
                   std::to_string(launcher_world_size_));
  launcher_world_size_ = join.world_size;
  start.value().rank = join.rank;
  start.value().world_size = start.value().local_world_size = join.world_size;
  start.value().local_rank = join.local_rank;
  start.value().cpus = std::max(1, start.value().cpus / join.world_size);
  if (!slot_.gpus.empty())
    start.value().device = "cuda:" + std::to_string(join.local_rank % slot_.gpus.size());
  start.value().devices = {start.value().device};
  return start;
}

void Descendants::Claim(Connection& connection) {
  if (connection.speaks) return;
  if (!connection.join) {
    return Refuse(connection, "process " + std::to_string(connection.pid) +
                                  " claims a rank before it has joined; send join first");
  }
  const int rank = connection.join->rank;
  const Connection* other = FindSpeaker(rank);
  const pid_t speaker = other != nullptr         ? other->pid
                        : rank == speaker_rank() ? owner_.OwnSpeaker()
                                                 : 0;
  if (speaker != 0) {
    return Refuse(connection,
                  "process " + std::to_string(speaker) + " already speaks as rank " +
                      std::to_string(rank) + ", so process " + std::to_string(connection.pid) +
                      " cannot; give each process its RANK and the WORLD_SIZE in its environment "
                      "before it uses attune, or let one process report");
  }
  connection.speaks = true;
  Write(connection, ToLine(channel::Claimed{}));
  if (rank == speaker_rank()) return owner_.OnClaimed();
  if (rendezvous_) Write(connection, ToLine(*rendezvous_));
}

void Descendants::Refuse(Connection& connection, const std::string& message) {
  connection.is_ignored = true;
  Write(connection, ToLine(channel::Refused{message}));
}

void Descendants::Write(Connection& connection, std::string_view line) {
  connection.unsent.append(line);
  SendSome(connection.socket.get(), connection.unsent);
  if (connection.watch)
    loop_.Change(connection.watch, connection.unsent.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

Descendants::Connection* Descendants::FindSpeaker(int rank) {
  for (Connection& connection : connections_) {
    if (connection.speaks && connection.join->rank == rank) return &connection;
  }
  return nullptr;
}

bool Descendants::HasProgram(int rank) const {
  return std::ranges::any_of(connections_, [rank](const Connection& connection) {
    return connection.join && connection.join->rank == rank;
  });
}

std::optional<Loop::Clock::time_point> Descendants::CountsAsLeftFrom() const {
  const auto left = left_from_.find(speaker_rank());
  if (launcher_world_size_ || left == left_from_.end()) return std::nullopt;
  return left->second;
}

pid_t Descendants::Speaker() const {
  for (const Connection& connection : connections_) {
    if (connection.speaks && connection.join->rank == speaker_rank()) return connection.pid;
  }
  return 0;
}

bool Descendants::Send(std::string_view line) {
  Connection* speaker = FindSpeaker(speaker_rank());
  if (speaker != nullptr) Write(*speaker, line);
  return speaker != nullptr;
}

void Descendants::ResumeReading() {
  for (auto connection = connections_.begin(); connection != connections_.end(); ++connection) {
    if (!connection->watch) Watch(connection);
  }
}

void Descendants::Drain() {
  listening_.Reset();
  for (Connection& connection : connections_) {
    connection.watch.Reset();
    Read(connection, kLastBytesMax);
  }
}

}  // namespace attune::gang
