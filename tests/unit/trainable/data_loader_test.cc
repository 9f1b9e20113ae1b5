// The batches of a prepared loader, across gangs, epochs and resumed attempts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Place = std::pair<int, int>;  // epoch, and number of its samples visited before

struct Visits {
  std::map<Place, std::vector<std::vector<int>>> batches;  // one share for each rank
  std::vector<json> metrics;                               // by step

  std::vector<int> Batch(const Place& place) const {
    std::vector<int> samples;
    for (const auto& share : batches.at(place)) {
      samples.insert(samples.end(), share.begin(), share.end());
    }
    std::sort(samples.begin(), samples.end());
    return samples;
  }

  std::vector<int> Epoch(int epoch) const {
    std::vector<int> samples;
    for (const auto& [place, shares] : batches) {
      if (place.first != epoch) continue;
      const auto batch = Batch(place);
      samples.insert(samples.end(), batch.begin(), batch.end());
    }
    std::sort(samples.begin(), samples.end());
    return samples;
  }
};

std::vector<int> Everything(int size) {
  std::vector<int> samples(size);
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

const Environment kLoader{{"GANG_PROGRAM_FORM", "loader"}};

Visits Train(int world_size, const json& config, int steps, json start = json::object()) {
  start["config"] = config;
  start["max_step"] = steps + (start.contains("resume") ? start["resume"]["step"].get<int>() : 0);
  FakeGang gang(world_size, start, kLoader);
  if (world_size > 1) gang.RelayRendezvous();
  Visits visits;
  for (int i = 0; i < steps; ++i) {
    const json report = gang.Await(0, "report");
    if (report.is_null()) {
      ADD_FAILURE() << gang.Output();
      return visits;
    }
    EXPECT_EQ(report["metrics"]["spread"], 0) << "ranks differ after step " << i + 1;
    visits.metrics.push_back(report["metrics"]);
  }
  gang.Verdict(start["max_step"], "stop");
  for (int rank = 0; rank < world_size; ++rank) EXPECT_EQ(gang.Wait(rank), 0) << gang.Output();

  std::istringstream output(gang.Output());
  for (std::string line; std::getline(output, line);) {
    std::istringstream words(line);
    std::string word;
    Place place;
    if (!(words >> word >> place.first >> place.second) || word != "visits") continue;
    std::vector<int> share;
    for (int sample = 0; words >> sample;) share.push_back(sample);
    visits.batches[place].push_back(share);
  }
  return visits;
}

// Returns the first error of a gang whose training fails.
std::string FailureOf(int world_size, const json& config, int rank) {
  FakeGang gang(world_size, {{"config", config}}, kLoader);
  if (world_size > 1) gang.RelayRendezvous();
  const json error = gang.Await(rank, "error");
  return error.is_null() ? gang.Output() : error["message"].get<std::string>();
}

class Folder {
 public:
  Folder() : path_(::testing::TempDir() + "loader-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(DataLoader, ABatchHasTheSameSamplesForAnyNumberOfRanks) {
  const json config = {{"samples", 50}, {"batch", 8}};
  const Visits one_rank = Train(1, config, 2);
  for (const int world_size : {2, 3}) {
    const Visits many = Train(world_size, config, 2);
    for (const auto& [place, shares] : many.batches) {
      ASSERT_EQ(std::ssize(shares), world_size);
      // With three ranks, the last two samples belong to the batch before.
      if (world_size == 3 && place.second == 40) continue;
      EXPECT_EQ(many.Batch(place), one_rank.Batch(place));
    }
  }
}

TEST(DataLoader, AnEpochHasEachSampleOnceAndEpochsDiffer) {
  for (const int world_size : {1, 2, 3}) {
    for (const int threads : {0, 2}) {
      const Visits visits =
          Train(world_size, {{"samples", 50}, {"batch", 8}, {"threads", threads}}, 2);
      EXPECT_EQ(visits.Epoch(0), Everything(50));
      EXPECT_EQ(visits.Epoch(1), Everything(50));
      EXPECT_NE(visits.Batch({0, 0}), visits.Batch({1, 0}));
    }
  }
}

TEST(DataLoader, RanksGetTheSameNumberOfBatchesIfTheLastIsUneven) {
  const Visits visits = Train(3, {{"samples", 50}, {"batch", 8}}, 1);
  ASSERT_EQ(visits.batches.size(), 6u);
  EXPECT_EQ(visits.Batch({0, 40}).size(), 10u);
}

TEST(DataLoader, DropLastLeavesOutAnIncompleteBatch) {
  const Visits visits = Train(2, {{"samples", 50}, {"batch", 8}, {"drop_last", true}}, 2);
  EXPECT_EQ(visits.Epoch(0).size(), 48u);
  EXPECT_EQ(visits.Epoch(1).size(), 48u);
}

TEST(DataLoader, ContinuesAfterALoopThatEndedEarly) {
  const Visits visits = Train(2, {{"samples", 50}, {"batch", 8}, {"most", 3}}, 3);
  EXPECT_EQ(visits.Epoch(0), Everything(50));
}

TEST(DataLoader, ThreadsChangeNothing) {
  const json config = {{"samples", 50}, {"batch", 8}, {"threads", 0}, {"batches", 3}};
  json threads = config;
  threads["threads"] = 3;
  EXPECT_EQ(Train(2, config, 4).metrics, Train(2, threads, 4).metrics);
}

class ResumedInMidEpoch : public ::testing::TestWithParam<int> {};

TEST_P(ResumedInMidEpoch, EndsWithTheSameWeightsBitForBit) {
  const json config = {{"samples", 50}, {"batch", 8}, {"batches", 2}, {"threads", 2}};
  const Folder folder;
  const Visits whole = Train(GetParam(), config, 6);
  Train(GetParam(), config, 2, {{"checkpoint_dir", folder.path()}, {"attempt", 1}});
  const Visits rest =
      Train(GetParam(), config, 4,
            {{"resume", {{"step", 2}, {"path", folder.path() + "/step-2-attempt-1"}}}});
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ(rest.metrics[step], whole.metrics[step + 2]) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(DataLoader, ResumedInMidEpoch, ::testing::Values(1, 2, 3));

TEST(DataLoader, VisitsTheRestOnceWithADifferentNumberOfRanks) {
  for (const auto& [before, after] : {std::pair{2, 3}, std::pair{3, 1}}) {
    const json config = {{"samples", 50}, {"batch", 8}, {"batches", 2}};
    const Folder folder;
    Visits visits = Train(before, config, 2, {{"checkpoint_dir", folder.path()}, {"attempt", 1}});
    visits.batches.merge(
        Train(after, config, 5,
              {{"resume", {{"step", 2}, {"path", folder.path() + "/step-2-attempt-1"}}}})
            .batches);
    EXPECT_EQ(visits.Epoch(0), Everything(50)) << before << " to " << after;
    EXPECT_EQ(visits.Epoch(1), Everything(50)) << before << " to " << after;
  }
}

class Streams : public ::testing::TestWithParam<const char*> {
 protected:
  json Config(json more = json::object()) const {
    more.update({{"samples", 50}, {"batch", 8}, {"kind", GetParam()}});
    return more;
  }
};

TEST_P(Streams, HaveTheSameBatchesForAnyNumberOfRanks) {
  const Visits one_rank = Train(1, Config(), 2);
  EXPECT_THAT(one_rank.batches.at({0, 0}), ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  for (const int world_size : {2, 3}) {
    const Visits many = Train(world_size, Config(), 2);
    for (const auto& [place, shares] : many.batches) {
      ASSERT_EQ(std::ssize(shares), world_size);
      if (world_size == 3 && place.second == 40)
        continue;  // it also has the samples of the batch at 48
      EXPECT_EQ(many.Batch(place), one_rank.Batch(place));
    }
  }
}

TEST_P(Streams, HaveEachSampleOnceInAnEpoch) {
  for (const int world_size : {1, 2, 3}) {
    for (const int threads : {0, 1, 3}) {
      const Visits visits = Train(world_size, Config({{"threads", threads}}), 2);
      EXPECT_EQ(visits.Epoch(0), Everything(50));
      EXPECT_EQ(visits.Epoch(1), Everything(50));
    }
  }
}

TEST_P(Streams, LeaveOutAnIncompleteBatchWithDropLast) {
  const Visits visits = Train(2, Config({{"drop_last", true}}), 2);
  EXPECT_EQ(visits.Epoch(0).size(), 48u);
  EXPECT_EQ(visits.Epoch(1).size(), 48u);
}

TEST_P(Streams, ContinueInMidEpochWithAnyNumberOfRanks) {
  const json config = Config({{"batches", 2}, {"threads", 2}});
  for (const auto& [before, after] : {std::pair{2, 2}, std::pair{2, 3}, std::pair{3, 1}}) {
    const Folder folder;
    Visits visits = Train(before, config, 2, {{"checkpoint_dir", folder.path()}, {"attempt", 1}});
    const Visits rest =
        Train(after, config, 5,
              {{"resume", {{"step", 2}, {"path", folder.path() + "/step-2-attempt-1"}}}});
    EXPECT_EQ(rest.batches.begin()->first, Place(0, 32));
    visits.batches.insert(rest.batches.begin(), rest.batches.end());
    EXPECT_EQ(visits.Epoch(0), Everything(50)) << before << " to " << after;
    EXPECT_EQ(visits.Epoch(1), Everything(50)) << before << " to " << after;
    if (before == after) {
      const Visits whole = Train(before, config, 4);
      EXPECT_EQ(rest.metrics[1], whole.metrics[3]);
    }
  }
}

TEST_P(Streams, ReportWhereTheyFailed) {
  for (const int threads : {0, 2}) {
    const std::string failure = FailureOf(1, Config({{"damaged", 17}, {"threads", threads}}), 0);
    EXPECT_THAT(failure, AllOf(HasSubstr("epoch 0"), HasSubstr("after 8 samples")));
    EXPECT_THAT(failure, HasSubstr("sample 17 is damaged"));
  }
}

TEST_P(Streams, CannotBeShuffled) {
  EXPECT_THAT(FailureOf(1, Config({{"shuffle", true}}), 0), HasSubstr("shuffle"));
}

TEST_P(Streams, WithoutABatchAreErrors) {
  json config = Config({{"drop_last", true}});
  config["samples"] = 5;
  EXPECT_THAT(FailureOf(1, config, 0), AllOf(HasSubstr(" 5 samples"), HasSubstr("batch of 8")));
}

TEST_P(Streams, RefuseThePositionOfADatasetWithIndices) {
  const Folder folder;
  Train(1, {{"samples", 50}, {"batch", 8}}, 1, {{"checkpoint_dir", folder.path()}, {"attempt", 1}});
  FakeGang gang(1,
                {{"config", Config()},
                 {"resume", {{"step", 1}, {"path", folder.path() + "/step-1-attempt-1"}}}},
                kLoader);
  EXPECT_THAT(gang.Await(0, "error")["message"].get<std::string>(), HasSubstr("set_epoch()"));
}

INSTANTIATE_TEST_SUITE_P(DataLoader, Streams, ::testing::Values("stream", "endless"));

TEST(DataLoader, AStreamMayHaveAnotherOrderInEachEpoch) {
  const Visits visits = Train(1, {{"samples", 50}, {"batch", 8}, {"kind", "stream"}}, 2);
  EXPECT_NE(visits.Batch({0, 0}), visits.Batch({1, 0}));
}

TEST(DataLoader, DrawsByWeightTheSameForAnyNumberOfRanksAndAfterAResume) {
  const json config = {{"samples", 50}, {"batch", 8}, {"kind", "weights"}, {"batches", 2}};
  const Visits one_rank = Train(1, config, 4);
  EXPECT_EQ(one_rank.batches.size(), 8u);
  for (const auto& [place, shares] : one_rank.batches) {
    for (const int sample : shares[0]) EXPECT_LT(sample, 25);
  }
  const Folder folder;
  Visits two = Train(2, config, 2, {{"checkpoint_dir", folder.path()}, {"attempt", 1}});
  two.batches.merge(
      Train(2, config, 2,
            {{"resume", {{"step", 2}, {"path", folder.path() + "/step-2-attempt-1"}}}})
          .batches);
  for (const auto& [place, shares] : one_rank.batches)
    EXPECT_EQ(two.Batch(place), one_rank.Batch(place));
}

TEST(DataLoader, AnExceptionOfTheDatasetNamesRankAndSamples) {
  for (const int threads : {0, 2}) {
    const json config = {{"samples", 8}, {"batch", 8}, {"damaged", 5}, {"threads", threads}};
    EXPECT_THAT(FailureOf(1, config, 0), AllOf(HasSubstr("rank 0"), HasSubstr("samples "),
                                               HasSubstr("sample 5 is damaged")));
  }
}

TEST(DataLoader, RefusesABatchSmallerThanTheNumberOfWorkers) {
  EXPECT_THAT(FailureOf(3, {{"samples", 50}, {"batch", 2}}, 1),
              AllOf(HasSubstr("batch_size"), HasSubstr(" 2 samples"), HasSubstr("3 workers")));
}

TEST(DataLoader, RefusesADatasetWithoutACompleteBatch) {
  EXPECT_THAT(FailureOf(1, {{"samples", 5}, {"batch", 8}, {"drop_last", true}}, 0),
              AllOf(HasSubstr("batch of 8"), HasSubstr("drop_last")));
}

TEST(DataLoader, RefusesTheStateOfAnotherDataset) {
  const Folder folder;
  Train(1, {{"samples", 50}, {"batch", 8}}, 1, {{"checkpoint_dir", folder.path()}, {"attempt", 1}});
  FakeGang gang(1,
                {{"config", {{"samples", 40}, {"batch", 8}}},
                 {"resume", {{"step", 1}, {"path", folder.path() + "/step-1-attempt-1"}}}},
                kLoader);
  EXPECT_THAT(gang.Await(0, "error")["message"].get<std::string>(),
              AllOf(HasSubstr("50 samples"), HasSubstr(" 40")));
}

TEST(DataLoader, TheProgramOfTheDocsLearnsAndResumes) {
  const Environment docs{{"GANG_PROGRAM_FORM", "docs"}};
  const Folder folder;
  const auto first = [&] {
    FakeGang gang(2, {{"checkpoint_dir", folder.path()}, {"attempt", 1}, {"max_step", 2}}, docs);
    gang.RelayRendezvous();
    const double loss = gang.Await(0, "report")["metrics"]["loss"];
    gang.Verdict(gang.AwaitWaiting()["step"], "pause");
    return loss;
  }();
  FakeGang gang(
      3,
      {{"resume", {{"step", 2}, {"path", folder.path() + "/step-2-attempt-1"}}}, {"max_step", 3}},
      docs);
  gang.RelayRendezvous();
  const json report = gang.Await(0, "report");
  EXPECT_LT(report["metrics"]["loss"], first) << gang.Output();
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
