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
#include "executor/gang/spec.h"
#include "executor/processes/loop.h"
#include "system/unique_fd.h"

namespace attune::gang {

// Programs below a rank's process that reach the executor through a socket with a path, because the
// descriptor of the channel is lost below `subprocess.run`, `torch.distributed.run` or
// `multiprocessing`.
//
// A program joins with its place and gets a start line. It speaks for its place once it has claimed
// it; only one program may. Its place is that of the rank, or one that a launcher has given it
// inside a gang of one: then rank 0 of the launcher speaks for the rank, and the executor lets the
// launcher's ranks find one another.
//
// Used on the loop's thread only.
class Descendants {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The start line of the rank as it is now, or why no program may join.
    virtual Result<channel::Start> StartLine() = 0;
    // The rank's own process if that trains or reports; 0: it does not.
    virtual pid_t OwnSpeaker() const = 0;
    // A program speaks for the rank from now on, and takes its lines.
    virtual void OnClaimed() = 0;
    // The last program with the rank's place has left, or the one that spoke for the rank.
    virtual void OnProgramLeft() = 0;
    virtual void OnDescendantMessage(channel::FromRank message) = 0;
    virtual void OnDescendantBadLine(const std::string& problem) = 0;
    virtual bool MayReadDescendants() = 0;
    // What rank 0 was told at this step, if it has finished the step.
    virtual std::optional<channel::Action> ActionAt(int64_t step) const = 0;
  };

  Descendants(Loop& loop, RankSlot slot, int world_size, Owner& owner)
      : loop_(loop), slot_(std::move(slot)), world_size_(world_size), owner_(owner) {}
  ~Descendants();

  // Listens at this path, and removes it at the end. A place counts as left once its program has
  // left and no other one has joined for `successor_grace`.
  Status Listen(std::filesystem::path path, std::chrono::milliseconds successor_grace);
  const std::filesystem::path& path() const { return path_; }

  // The process that speaks for the rank; 0: none does.
  pid_t Speaker() const;

  // From when on the rank's place counts as left; empty: a program has it, or none ever had.
  std::optional<Loop::Clock::time_point> LeftFrom() const;

  // Whether the programs are ranks of a launcher.
  bool has_launcher() const { return launched_ > 0; }

  // Queues a line for the program that speaks for the rank. False if there is none.
  bool Send(std::string_view line);

  // Reads on where that was left off because there was no room for more.
  void ReadOn();

  // Reads what has come until now, up to a limit.
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
    bool is_deaf = false;  // after a refusal or a bad line
  };
  using Place = std::list<Connection>::iterator;

  void OnConnection();
  void Watch(Place connection);
  void OnReady(Place connection, uint32_t events);
  void Remove(Place connection);
  bool Read(Connection& connection, size_t bytes_max);  // false at the end
  void Take(Connection& connection, channel::FromRank message);
  void Speak(Connection& connection, channel::FromRank message);
  void TakeReason(const Connection& connection, std::string reason);
  void Join(Connection& connection, const channel::Join& join);
  Result<channel::Start> StartOf(const Connection& connection, const channel::Join& join);
  void Claim(Connection& connection);
  void CheckWait(Connection& connection);
  void Refuse(Connection& connection, const std::string& message);
  void Write(Connection& connection, std::string_view line);
  // The number of the place that speaks for the rank.
  int place() const { return launched_ ? 0 : slot_.rank; }
  Connection* Find(int rank);  // that speaks; null: none does
  bool HasProgram(int rank) const;

  Loop& loop_;
  const RankSlot slot_;
  const int world_size_;
  Owner& owner_;
  std::filesystem::path path_;
  UniqueFd listener_;
  Loop::Subscription listening_;
  std::list<Connection> connections_;
  int launched_ = 0;                               // ranks of a launcher below; 0: there is none
  std::optional<channel::Rendezvous> rendezvous_;  // of rank 0 of that launcher
  std::chrono::milliseconds successor_grace_{0};
  std::map<int, Loop::Clock::time_point> left_;  // place -> from when on it counts as left
  Loop::Subscription next_check_;                // of ranks of the launcher that wait
};

}  // namespace attune::gang
