#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "base/result.h"
#include "executor/gang/folders.h"
#include "object_storage/settings.h"
#include "object_storage/store.h"

namespace attune::agent {

struct UploadOptions {
  // Time from the first list that has an upload to its start. Until then, a newer checkpoint often
  // replaces it.
  std::chrono::milliseconds settle{500};
  // Pause after an error that lasts until somebody acts: credentials, the address, a full store.
  std::chrono::milliseconds pause = std::chrono::minutes(5);
  // Pause after any other error. It doubles with each further error, up to `pause`.
  std::chrono::milliseconds backoff = std::chrono::seconds(10);
  // Its limit of bytes per second is not used: the server sends it.
  object_storage::StoreOptions store = {};
};

// Copies checkpoints of this host to object stores, one after another, on its own thread. Its
// processes have a low priority of CPU and disk.
//
// A copy is complete if its manifest is there. After an interruption, also by the end of this
// process, the next try sends only files that are missing.
//
// If a store cannot be used, all uploads to it pause. After the pause, an upload that has failed
// less often is tried first. Checkpoints whose files are gone or damaged are skipped until the list
// changes.
class Uploader {
 public:
  // Called on the uploader's thread; must not call the uploader.
  struct Events {
    std::function<void(const v1::Upload&)> stored;  // once, while the upload stays in the list
    // The files of the upload are gone or damaged. Called once, while it stays in the list.
    std::function<void(const std::string& stored_path)> skipped;
    // Why uploads are paused, in one sentence; empty: they are not. Called after each change.
    std::function<void(const std::string& problem)> problem;
  };

  // `environment` is that of rclone. Variables of v1::Uploads replace some of it.
  Uploader(gang::Folders folders, object_storage::Environment environment, Events events,
           UploadOptions options = {});
  ~Uploader();  // cancels the current upload, within object_storage::Process::kStopGrace

  // Replaces the list of wanted uploads. Cancels the current one if it is not in the new list. A
  // change of the environment ends all pauses. Thread-safe; does not block.
  void SetUploads(const v1::Uploads& uploads);

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    std::string key;  // identifies the upload
    v1::Upload upload;
    Clock::time_point ready_at;  // it does not start before
    int failures = 0;
    bool is_done = false;
    bool is_skipped = false;
    bool is_skip_told = false;

    bool Waits() const { return !is_done && !is_skipped; }
  };
  // The settings of the server for all uploads.
  struct Settings {
    object_storage::Variables environment;
    uint64_t bytes_per_second_max = 0;

    bool operator==(const Settings&) const = default;
  };
  struct Job {
    std::string key;
    v1::Upload upload;
    Settings settings;
  };
  struct Outcome {
    Result<object_storage::Uploaded> uploaded;
    bool is_fault_of_files = false;  // they are gone or damaged
  };
  struct OpenStore {
    std::string address;
    Settings settings;
    object_storage::ObjectStore store;
  };
  // Begins with an error, and is removed by a success. It stays when it is over, until the next
  // try.
  struct Pause {
    Clock::time_point until;
    std::chrono::milliseconds backoff;  // the next one
    std::string problem;
  };

  void Run();
  std::optional<Job> NextJob(Clock::time_point& wake_at) const;
  void ReportProblem();
  void OnOutcome(const Job& job, const Outcome& outcome);
  void OnError(const Job& job, Entry& entry, const Error& error);
  Outcome UploadAtLowPriority(const Job& job, const std::stop_token& stop);
  Outcome Upload(const Job& job, const std::stop_token& stop);
  Status Open(const Job& job);

  const gang::Folders folders_;
  const object_storage::Environment environment_;
  const Events events_;
  const UploadOptions options_;

  std::optional<OpenStore> store_;  // used by one upload at a time

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;  // this and the members below: under mutex_
  Settings settings_;
  std::string current_;                  // key of the current upload; empty: none
  std::stop_source cancel_;              // of the current upload
  std::map<std::string, Pause> pauses_;  // by address
  std::string told_problem_;
  bool stop_ = false;

  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace attune::agent
