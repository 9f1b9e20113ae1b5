#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "channel/line_reader.h"
#include "channel/messages.h"
#include "executor/gang/socket_folder.h"
#include "executor/gang/spec.h"
#include "executor/processes/loop.h"
#include "system/unique_fd.h"

namespace attune::gang {

// Connections of programs that a rank's process has started. They use a socket with a path, because
// child processes of `subprocess.run`, `torch.distributed.run` or `multiprocessing` do not inherit
// the descriptor of the channel.
//
// A program joins with a rank number and gets a start line. After it has claimed the rank it speaks
// for it; only one program may. Its number is that of the gang's rank, or, in a gang of one, a
// number that a launcher such as torchrun has given it. In the latter case, rank 0 of the launcher
// speaks for the gang's rank, and the executor passes the rendezvous between the launcher's ranks.
//
// Use on the loop's thread only.
class Descendants {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The current start line of the rank, or the reason why no program may join.
    virtual Result<channel::Start> StartLine() = 0;
    // The pid of the rank's own process if it trains or reports; otherwise 0.
    virtual pid_t OwnSpeaker() const = 0;
    // A program speaks for the rank from now on and receives its lines.
    virtual void OnClaimed() = 0;
    // The program that spoke for the rank, or the last program with its number, has exited.
    virtual void OnProgramLeft() = 0;
    virtual void OnDescendantMessage(channel::FromRank message) = 0;
    virtual void OnDescendantBadLine(const std::string& problem) = 0;
    virtual bool MayReadDescendants() = 0;
    // The verdict that rank 0 got at this step, if it has finished the step.
    virtual std::optional<channel::Action> ActionAt(int64_t step) const = 0;
  };

  Descendants(Loop& loop, RankSlot slot, int world_size, Owner& owner)
      : loop_(loop), slot_(std::move(slot)), world_size_(world_size), owner_(owner) {}
  ~Descendants();

  // Listens at a socket of the folder, which must outlive this object. A rank number counts as left
  // when its program has exited and no other program has joined for `successor_grace`.
  Status Listen(SocketFolder& folder, std::chrono::milliseconds successor_grace);
  const std::filesystem::path& path() const { return socket_.path; }  // empty: does not listen

  // The pid of the program that speaks for the rank; 0: none.
  pid_t Speaker() const;

  // The time from which the rank counts as left; nullopt: a program has its number, or none ever
  // had.
  std::optional<Loop::Clock::time_point> CountsAsLeftFrom() const;

  // Whether the programs are ranks of a launcher such as torchrun.
  bool has_launcher() const { return launcher_world_size_ > 0; }

  // Queues a line for the program that speaks for the rank. Returns false if there is none.
  bool Send(std::string_view line);

  // Resumes reading after Owner::MayReadDescendants() had returned false.
  void ResumeReading();

  // Reads the bytes that have arrived, up to a limit.
  void Drain();

 private:
  struct Connection {
    UniqueFd socket;
    pid_t pid = 0;
    Loop::Subscription watch;
    channel::LineReader lines;
    std::string unsent;
    std::optional<channel::Join> join;
    std::optional<channel::Waiting> waiting;
    bool speaks = false;
    bool is_ignored = false;  // input is dropped after a refusal or a bad line
  };
  using ConnectionIterator = std::list<Connection>::iterator;

  void OnConnection();
  void Watch(ConnectionIterator connection);
  void OnReady(ConnectionIterator connection, uint32_t events);
  void Remove(ConnectionIterator connection);
  bool Read(Connection& connection, size_t bytes_max);  // false at the end of the stream
  void HandleMessage(Connection& connection, channel::FromRank message);
  void ForwardMessage(Connection& connection, channel::FromRank message);
  void ForwardReason(const Connection& connection, std::string reason);
  void Join(Connection& connection, const channel::Join& join);
  Result<channel::Start> StartLineFor(const Connection& connection, const channel::Join& join);
  void Claim(Connection& connection);
  void CheckWait(Connection& connection);
  void Refuse(Connection& connection, const std::string& message);
  void Write(Connection& connection, std::string_view line);
  // The rank number whose program speaks for the gang's rank.
  int speaker_rank() const { return launcher_world_size_ ? 0 : slot_.rank; }
  Connection* FindSpeaker(int rank);  // the program that speaks for `rank`; null: none
  bool HasProgram(int rank) const;

  Loop& loop_;
  const RankSlot slot_;
  const int world_size_;
  Owner& owner_;
  SocketFolder* folder_ = nullptr;  // null: does not listen
  PathSocket socket_;
  Loop::Subscription listening_;
  std::list<Connection> connections_;
  int launcher_world_size_ = 0;                    // world size of the launcher; 0: no launcher
  std::optional<channel::Rendezvous> rendezvous_;  // of rank 0 of the launcher
  std::chrono::milliseconds successor_grace_{0};
  // Rank number -> time from which it counts as left.
  std::map<int, Loop::Clock::time_point> left_from_;
  Loop::Subscription next_check_;  // of waiting ranks of the launcher
};

}  // namespace attune::gang
