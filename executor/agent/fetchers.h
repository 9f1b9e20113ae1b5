#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "executor/environments/environment_builder.h"
#include "executor/environments/running_command.h"
#include "executor/gang/spec.h"
#include "executor/transfer/direct_pieces.h"
#include "executor/transfer/fetcher.h"
#include "executor/transfer/server_pieces.h"
#include "executor/transfer/server_stub.h"
#include "executor/transfer/store_pieces.h"
#include "object_storage/settings.h"

namespace attune::agent {

// The fetchers of an executor, and the builder of environments, each with its own thread. All
// functions are thread-safe.
class Fetchers {
 public:
  // The receivers of the results. See Fetcher::Done.
  struct Results {
    Fetcher::Done checkpoint;
    Fetcher::Done code;
    Fetcher::Done data;
    EnvironmentBuilder::Done environment;
    // The copy of the checkpoint in an object store is damaged. Called before `checkpoint`.
    std::function<void(const gang::CheckpointName& name, const std::string& digest)> store_damaged;
  };

  // The folder of the copies of code, inside the executor's folder.
  static std::filesystem::path CodeFolder(const std::filesystem::path& folder) {
    return folder / "code";
  }

  // How the sources of checkpoints and code reach the server and object stores.
  struct Access {
    ServerStub server;                        // it sends files that no other source has
    std::string token;                        // of the server
    object_storage::Environment environment;  // of programs that read object stores
  };

  // `folder`: the executor's. `processes` must outlive this object.
  Fetchers(const std::filesystem::path& folder, const CopyLimits& limits, const Access& access,
           CommandProcesses& processes, Results results);

  // The result of each follows, unless the attempt is released before.
  void FetchCheckpoint(const gang::AttemptId& attempt, const gang::RemoteFiles& files,
                       const std::string& digest);
  void FetchCode(const gang::GangSpec& spec);  // and makes the folder in which the trial runs
  void FetchData(const gang::GangSpec& spec);  // a result follows for each file

  void BuildEnvironment(const gang::GangSpec& spec);

  // The attempt no longer needs its copies and its environment.
  void Release(const gang::AttemptId& attempt);

  // Deletes all copies and environments that no gang uses, because the disk is short.
  void EvictUnused();

 private:
  // A fetcher uses its source on its own thread.
  struct Source {
    explicit Source(const Access& access)
        : server(access.server, access.token), stored(server, access.environment), direct(stored) {}
    ServerPieces server;
    StorePieces stored;
    DirectPieces direct;
  };

  const std::function<void(const gang::CheckpointName&, const std::string&)> store_damaged_;
  Source checkpoint_source_;
  Source code_source_;
  Fetcher checkpoints_;
  Fetcher code_;
  Fetcher data_;
  EnvironmentBuilder environments_;
};

}  // namespace attune::agent
