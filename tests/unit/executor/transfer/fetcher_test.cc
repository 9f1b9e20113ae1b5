#include "executor/transfer/fetcher.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>

#include "checkpoints/manifest.h"
#include "executor/transfer/piece_copies.h"
#include "system/sha256.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr size_t kModelBytes = 3'000;
constexpr size_t kPieceBytes = 1'000;

struct Stored {
  std::map<std::string, std::string> files;
  std::string digest;

  std::string name() const { return digest.substr(checkpoints::kDigestPrefix.size()); }
};

Stored Make(char letter) {
  Stored made;
  made.files["model.bin"] = std::string(kModelBytes, letter);
  made.files["manifest.json"] =
      R"({"format":"attune-checkpoint/1","step":9,"world_size":1,"files":{"model.bin":{"bytes":3000,"sha256":")" +
      Sha256::HexOf(made.files["model.bin"]) + "\"}}}";
  made.digest = "sha256:" + Sha256::HexOf(made.files["manifest.json"]);
  return made;
}

// Checkpoints in memory, by their step. It can fail, or block until it is cancelled, and it can
// damage files that executors send directly.
class MadeUpSource final : public PieceSource {
 public:
  Answer Read(gang::RemoteFiles& checkpoint, const std::string& file, uint64_t offset,
              std::string) override {
    std::unique_lock lock(mutex_);
    reads_.push_back(file + "@" + std::to_string(offset));
    changed_.notify_all();
    if (is_blocked_) {
      changed_.wait(lock, [this] { return !is_blocked_; });
      return {.piece = UnreadableError("cancelled")};
    }
    if (failures_ > 0) {
      --failures_;
      return {.piece = UnreadableError("box is away"), .is_final = is_final_};
    }
    const std::string& text = stored_.at(checkpoint.name.step).files.at(file);
    Answer answer{.piece = checkpoints::Piece{
                      .data = text.substr(std::min<size_t>(offset, text.size()), kPieceBytes),
                      .file_bytes = text.size()}};
    if (!checkpoint.servers.empty()) {
      answer.directly_from = "executor " + checkpoint.servers.front().executor;
      if (file == "model.bin") answer.piece->data.front() = '!';
    }
    return answer;
  }
  void Close() override {}
  void Cancel() override {
    const std::lock_guard lock(mutex_);
    is_blocked_ = false;
    changed_.notify_all();
  }

  std::string Put(int64_t step, const Stored& stored) {
    stored_[step] = stored;
    return stored.digest;
  }
  void FailTimes(int times, bool is_final = false) {
    const std::lock_guard lock(mutex_);
    failures_ = times;
    is_final_ = is_final;
  }
  void Block() {
    const std::lock_guard lock(mutex_);
    is_blocked_ = true;
  }
  bool AwaitRead() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, gang::kDeadline, [this] { return !reads_.empty(); });
  }
  std::vector<std::string> TakeReads() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reads_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Stored> stored_;
  std::vector<std::string> reads_;
  int failures_ = 0;
  bool is_final_ = false;
  bool is_blocked_ = false;
};

class FetcherTest : public testing::Test {
 protected:
  static constexpr gang::AttemptId Attempt(uint32_t number) {
    return {.sweep = 1, .trial = 3, .attempt = number, .epoch = number};
  }

  void Start(CopyLimits room = {.bytes_max = 1 << 20}, const CopyKind& kind = kCheckpoints.copies) {
    fetcher_ = std::make_unique<Fetcher>(kind, folder_.path() / "copies", room,
                                         [this](const gang::AttemptId& attempt, Fetched fetched) {
                                           const std::lock_guard lock(mutex_);
                                           done_[attempt] = std::move(fetched);
                                           changed_.notify_all();
                                         });
  }
  WantedCopy Wanted(int64_t step, const Stored& stored,
                    std::chrono::milliseconds retry_timeout = kRetryTimeout) {
    return WantedFromPieces(kCheckpoints, source_,
                            {.name = {.sweep = 1, .trial = 3, .attempt = 1, .step = step}},
                            source_.Put(step, stored), retry_timeout);
  }
  void Fetch(uint32_t attempt, int64_t step, const Stored& stored) {
    fetcher_->Fetch(Attempt(attempt), Wanted(step, stored));
  }
  Fetched Await(uint32_t attempt) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, gang::kDeadline, [&] { return done_.contains(Attempt(attempt)); });
    return came ? done_.at(Attempt(attempt)) : Fetched{.error = "nothing came"};
  }
  bool IsDone(uint32_t attempt) {
    const std::lock_guard lock(mutex_);
    return done_.contains(Attempt(attempt));
  }
  std::vector<std::string> Copies() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "copies"))
      names.push_back(entry.path().filename());
    return names;
  }

  void AwaitCopies(size_t count) const {
    const auto deadline = std::chrono::steady_clock::now() + gang::kDeadline;
    while (Copies().size() > count && std::chrono::steady_clock::now() < deadline) sched_yield();
  }

  gang::TempDir folder_;
  MadeUpSource source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<gang::AttemptId, Fetched> done_;
  std::unique_ptr<Fetcher> fetcher_;
  const Stored a_ = Make('a'), b_ = Make('b'), c_ = Make('c');
};

TEST_F(FetcherTest, FetchesACompleteCopy) {
  Start();
  Fetch(1, 9, a_);
  const Fetched fetched = Await(1);
  ASSERT_EQ(fetched.error, "");
  EXPECT_TRUE(fetched.folder.is_absolute());
  for (const auto& [name, text] : a_.files)
    EXPECT_EQ(gang::ReadFile(fetched.folder / name), text) << name;
}

TEST_F(FetcherTest, ASecondGangUsesTheSameCopy) {
  Start();
  Fetch(1, 9, a_);
  Await(1);
  source_.TakeReads();
  Fetch(2, 9, a_);
  EXPECT_EQ(Await(2).error, "");
  EXPECT_THAT(source_.TakeReads(), IsEmpty());
}

TEST_F(FetcherTest, PreparesBeforeItIsDone) {
  Start();
  fs::path prepared;
  WantedCopy wanted = Wanted(9, a_);
  wanted.prepare = [&](const fs::path& copy) {
    prepared = copy;
    return IsDone(1) ? Status(UnreadableError("it is done already")) : Status();
  };
  fetcher_->Fetch(Attempt(1), wanted);
  EXPECT_EQ(Await(1).error, "");
  EXPECT_EQ(prepared, Await(1).folder);
  wanted.prepare = [](const fs::path&) { return UnreadableError("no space"); };
  fetcher_->Fetch(Attempt(2), wanted);
  EXPECT_EQ(Await(2).error, "no space");
  EXPECT_FALSE(Await(2).is_final);
}

TEST_F(FetcherTest, RetriesASourceThatIsAway) {
  Start();
  source_.FailTimes(2);
  Fetch(1, 9, a_);
  EXPECT_EQ(Await(1).error, "");
}

TEST_F(FetcherTest, ASourceThatStaysAwayIsATemporaryError) {
  Start();
  source_.FailTimes(1'000'000);
  fetcher_->Fetch(Attempt(1), Wanted(9, a_, std::chrono::milliseconds(1)));
  const Fetched fetched = Await(1);
  EXPECT_THAT(fetched.error, testing::AllOf(HasSubstr("checkpoint s1/3/1-9 "),
                                            testing::EndsWith(": box is away")));
  EXPECT_FALSE(fetched.is_final);
}

TEST_F(FetcherTest, DoesNotRetryAMissingFile) {
  Start();
  source_.FailTimes(1, true);
  Fetch(1, 9, a_);
  EXPECT_TRUE(Await(1).is_final);
  EXPECT_THAT(source_.TakeReads(), SizeIs(1));
}

TEST_F(FetcherTest, ADamagedCheckpointIsAPermanentError) {
  Start();
  Stored damaged = a_;
  damaged.files["model.bin"][7] = 'x';
  Fetch(1, 9, damaged);
  const Fetched fetched = Await(1);
  EXPECT_THAT(fetched.error, HasSubstr("checkpoint s1/3/1-9 "));
  EXPECT_TRUE(fetched.is_final);
}

TEST_F(FetcherTest, FetchesThroughTheServerIfTheDirectCopyIsDamaged) {
  Start();
  fetcher_->Fetch(Attempt(1), WantedFromPieces(kCheckpoints, source_,
                                               {.name = {.sweep = 1, .trial = 3, .step = 9},
                                                .servers = {{.executor = "a"}}},
                                               source_.Put(9, a_)));
  const Fetched fetched = Await(1);
  ASSERT_EQ(fetched.error, "");
  EXPECT_EQ(gang::ReadFile(fetched.folder / "model.bin"), a_.files.at("model.bin"));
}

TEST_F(FetcherTest, ResumesADownloadInANewProcess) {
  Start();
  source_.FailTimes(0);
  Fetch(1, 9, a_);
  Await(1);
  fetcher_.reset();
  const fs::path part =
      folder_.path() / "copies" / ("." + a_.name() + ".part-" + a_.name().substr(0, 16));
  fs::create_directories(part);
  gang::WriteFile(part / "model.bin", std::string(2'000, 'a'));
  fs::remove_all(folder_.path() / "copies" / a_.name());
  source_.TakeReads();
  Start();
  Fetch(2, 9, a_);
  EXPECT_EQ(Await(2).error, "");
  EXPECT_THAT(source_.TakeReads(), ElementsAre("manifest.json@0", "model.bin@2000"));
}

TEST_F(FetcherTest, CancelsADownloadThatNoGangNeeds) {
  Start();
  source_.Block();
  Fetch(1, 9, a_);
  ASSERT_TRUE(source_.AwaitRead());
  Fetch(2, 10, b_);
  fetcher_->Release(Attempt(1));
  EXPECT_EQ(Await(2).error, "");
  EXPECT_FALSE(IsDone(1));
}

TEST_F(FetcherTest, SkipsAReleasedJob) {
  Start();
  source_.Block();
  Fetch(1, 9, a_);
  ASSERT_TRUE(source_.AwaitRead());
  Fetch(2, 10, b_);
  Fetch(3, 11, c_);
  fetcher_->Release(Attempt(2));
  fetcher_->Release(Attempt(1));
  EXPECT_EQ(Await(3).error, "");
  EXPECT_FALSE(IsDone(2));
  EXPECT_THAT(Copies(), testing::Not(testing::Contains(b_.name())));
}

TEST_F(FetcherTest, AnAttemptUsesSeveralCopies) {
  Start({});
  Fetch(1, 9, a_);
  Await(1);
  done_.clear();
  Fetch(1, 10, b_);
  EXPECT_EQ(Await(1).name, "checkpoint s1/3/1-10");
  Fetch(2, 11, c_);  // evicts unused copies
  Await(2);
  EXPECT_THAT(Copies(), UnorderedElementsAre(a_.name(), b_.name(), c_.name()));
  fetcher_->Release(Attempt(1));
  Fetch(3, 11, c_);
  EXPECT_EQ(Await(3).error, "");
  AwaitCopies(1);
  EXPECT_THAT(Copies(), ElementsAre(c_.name()));
}

TEST_F(FetcherTest, CancelsAllFetchesOfAnAttempt) {
  Start();
  source_.Block();
  Fetch(1, 9, a_);
  Fetch(1, 10, b_);
  ASSERT_TRUE(source_.AwaitRead());
  Fetch(2, 11, c_);
  fetcher_->Release(Attempt(1));
  EXPECT_EQ(Await(2).error, "");
  EXPECT_FALSE(IsDone(1));
  EXPECT_THAT(Copies(), testing::Not(testing::Contains(b_.name())));
}

TEST_F(FetcherTest, KeepsAnUnusedCopyForItsTimeUnlessTheDiskIsShort) {
  CopyKind kind = kCheckpoints.copies;
  kind.kept = std::chrono::hours(1);
  Start({}, kind);
  Fetch(1, 9, a_);
  Await(1);
  fetcher_->Release(Attempt(1));
  Fetch(2, 10, b_);  // evicts unused copies
  Await(2);
  EXPECT_THAT(Copies(), UnorderedElementsAre(a_.name(), b_.name()));
  fetcher_->EvictUnused();
  AwaitCopies(1);
  EXPECT_THAT(Copies(), ElementsAre(b_.name()));
}

TEST_F(FetcherTest, ReleasedCopiesAreNewerThanTheirFetch) {
  CopyKind kind = kCheckpoints.copies;
  kind.kept = std::chrono::hours(1);
  Start({}, kind);
  Fetch(1, 9, a_);
  const fs::path copy = Await(1).folder;
  fs::last_write_time(copy, fs::file_time_type::clock::now() - std::chrono::hours(2));
  fetcher_->Release(Attempt(1));
  Fetch(2, 10, b_);  // evicts unused copies
  Await(2);
  EXPECT_TRUE(fs::exists(copy)) << "the gang ran for two hours";
}

TEST_F(FetcherTest, TellsEachGangThatWaits) {
  Start();
  std::vector<std::string> told;
  const auto tell = [&](WantedCopy wanted, const std::string& who) {
    wanted.progress = [&told, who](const std::optional<Progress>& progress) {
      told.push_back(who + (progress ? " " + std::to_string(progress->bytes_done) : " waits"));
    };
    return wanted;
  };
  WantedCopy first = Wanted(9, a_);
  // The second gang needs the same copy, the third another one, and the fourth both.
  first.prepare = [&](const fs::path&) {
    fetcher_->Fetch(Attempt(2), tell(Wanted(10, b_), "2"));
    fetcher_->Fetch(Attempt(3), tell(Wanted(11, c_), "3"));
    fetcher_->Fetch(Attempt(4), tell(Wanted(11, c_), "4"));
    fetcher_->Fetch(Attempt(4), tell(Wanted(10, b_), "4"));
    fetcher_->Fetch(Attempt(5), tell(Wanted(10, b_), "5"));
    return Status();
  };
  fetcher_->Fetch(Attempt(1), first);
  for (uint32_t attempt = 1; attempt <= 5; ++attempt) EXPECT_EQ(Await(attempt).error, "");
  fetcher_.reset();
  EXPECT_THAT(told, ElementsAre("2 0", "3 waits", "4 waits", "5 0", "3 0", "4 0", "5 waits"));
}

TEST_F(FetcherTest, EvictsTheLeastRecentlyUsedCopyAndNoneInUse) {
  const uint64_t two = 2 * (kModelBytes + a_.files.at("manifest.json").size());
  Start({.bytes_max = two});
  Fetch(1, 9, a_);
  Await(1);
  Fetch(2, 10, b_);
  Await(2);
  fetcher_->Release(Attempt(2));
  Fetch(3, 11, c_);
  Await(3);
  EXPECT_THAT(Copies(), UnorderedElementsAre(a_.name(), c_.name())) << "a gang runs from a";
  fetcher_->Release(Attempt(1));
  fetcher_->Release(Attempt(3));
  Fetch(4, 9, a_);  // used again
  Await(4);
  fetcher_->Release(Attempt(4));
  Fetch(5, 10, b_);
  Await(5);
  EXPECT_THAT(Copies(), UnorderedElementsAre(a_.name(), b_.name()));
}

TEST_F(FetcherTest, EvictsATooLargeCopyWhenNoGangNeedsIt) {
  Start({});
  Fetch(1, 9, a_);
  EXPECT_EQ(Await(1).error, "");
  EXPECT_THAT(Copies(), ElementsAre(a_.name()));
  fetcher_->Release(Attempt(1));
  Fetch(2, 10, b_);
  EXPECT_EQ(Await(2).error, "");
  EXPECT_THAT(Copies(), ElementsAre(b_.name()));
}

TEST_F(FetcherTest, EvictsCopiesAndRefusesADownloadThatWouldFillTheDisk) {
  Start();
  Fetch(1, 9, a_);
  Await(1);
  fetcher_.reset();
  Start({.bytes_max = 1 << 20, .disk_free_bytes_min = uint64_t{1} << 60});
  source_.TakeReads();
  Fetch(2, 10, b_);
  const Fetched fetched = Await(2);
  EXPECT_THAT(fetched.error, HasSubstr(std::to_string(uint64_t{1} << 60)));
  EXPECT_FALSE(fetched.is_final);
  EXPECT_THAT(source_.TakeReads(), testing::Each("manifest.json@0"));
  EXPECT_THAT(Copies(), testing::Not(testing::Contains(a_.name())));
}

TEST_F(FetcherTest, EvictsUnusedCopiesWhenTheDiskIsShort) {
  Start();
  Fetch(1, 9, a_);
  Await(1);
  Fetch(2, 10, b_);
  Await(2);
  fetcher_->Release(Attempt(1));
  fetcher_->EvictUnused();
  AwaitCopies(1);
  EXPECT_THAT(Copies(), ElementsAre(b_.name())) << "a gang runs from b";
}

TEST_F(FetcherTest, EvictsBeforeTheNextDownload) {
  Start();
  Fetch(1, 9, a_);
  Await(1);
  fetcher_->Release(Attempt(1));
  source_.TakeReads();
  source_.FailTimes(1'000'000);
  Fetch(2, 10, b_);
  ASSERT_TRUE(source_.AwaitRead());
  Fetch(3, 11, c_);
  fetcher_->EvictUnused();
  fetcher_->Release(Attempt(2));
  const auto has_copy = [&] { return std::ranges::count(Copies(), a_.name()) > 0; };
  const auto deadline = std::chrono::steady_clock::now() + kRetryTimeout / 2;
  while (has_copy() && std::chrono::steady_clock::now() < deadline) sched_yield();
  EXPECT_FALSE(has_copy());
  EXPECT_FALSE(IsDone(3));
}

TEST_F(FetcherTest, RefusesAnInvalidDigest) {
  Start();
  for (const char* none : {"", "sha256:", "sha256:..", "/tmp"}) {
    Stored made = a_;
    made.digest = none;
    Fetch(1, 9, made);
    const Fetched fetched = Await(1);
    EXPECT_THAT(fetched.error, HasSubstr("\"" + std::string(none) + "\"")) << none;
    EXPECT_TRUE(fetched.is_final) << none;
    done_.clear();
  }
  EXPECT_THAT(source_.TakeReads(), IsEmpty());
}

TEST_F(FetcherTest, EndsDuringADownload) {
  Start();
  source_.Block();
  Fetch(1, 9, a_);
  ASSERT_TRUE(source_.AwaitRead());
  fetcher_.reset();
  EXPECT_FALSE(IsDone(1));
}

}  // namespace
}  // namespace attune::agent
