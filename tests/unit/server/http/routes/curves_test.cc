#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "server/http/answers/curve_bytes.h"
#include "server/store/thinned/curve_table.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

constexpr size_t kHeaderBytes = 64;

class CurvesTest : public HttpFixture {
 protected:
  // Brings the table of thinned curves up to date, as the server's thread does.
  void Follow() {
    const EventSeq last = reader_->LastSeq().value();
    auto table = CurveTable::Open(folder_ / "attune.db", LogIdentity(0), last).value();
    EXPECT_EQ(table->Read(last, 1'000'000).value(), false);
    EXPECT_TRUE(table->Write(true).ok());
  }

  httplib::Result Get(const std::string& query) {
    return client_->Get("/api/v1/sweeps/s1/curves" + query,
                        httplib::Headers{{"Accept", std::string(kCurvesType)}});
  }

  std::string GetBytes(const std::string& query) {
    const auto answer = Get(query);
    EXPECT_TRUE(answer);
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_EQ(answer->get_header_value("Content-Type"), kCurvesType);
    return answer->body;
  }

  void ExpectRefused(const std::string& query, const std::string& detail) {
    const auto answer = Get(query);
    EXPECT_THAT(Parsed(answer, 400).value("detail", ""), HasSubstr(detail)) << query;
  }

  template <class T>
  static T At(const std::string& bytes, size_t offset) {
    T value{};
    if (offset + sizeof(T) > bytes.size()) {
      ADD_FAILURE() << "the answer ends before byte " << offset;
      return value;
    }
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
};

TEST_F(CurvesTest, TheBinaryFormHasTheLayoutOfTheContract) {
  Follow();
  const std::string bytes = GetBytes("");
  EXPECT_EQ(bytes.substr(0, 8), "ATCURVE1");
  EXPECT_EQ(At<uint64_t>(bytes, 8), 38u);  // seq
  EXPECT_EQ(At<uint32_t>(bytes, 16), 4u);  // trials
  EXPECT_EQ(At<uint32_t>(bytes, 20), 3u);  // step lists: 1 3 9; 1; 1 2
  EXPECT_EQ(At<uint32_t>(bytes, 24), 7u);  // points
  EXPECT_EQ(At<uint32_t>(bytes, 28), 6u);  // steps
  EXPECT_EQ(At<uint32_t>(bytes, 32), 0u);  // clones
  EXPECT_EQ(At<uint32_t>(bytes, 36), 5u);  // segments
  EXPECT_EQ(At<uint32_t>(bytes, 40), 0u);  // last page
  EXPECT_EQ(At<uint32_t>(bytes, 44), 0u);  // flags
  EXPECT_EQ(bytes.substr(48, 16), std::string(16, '\0'));

  const size_t steps = kHeaderBytes + 4 * sizeof(uint32_t);  // four offsets need no padding
  const uint32_t offsets[] = {0, 3, 4, 6};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(At<uint32_t>(bytes, kHeaderBytes + 4 * i), offsets[i]);
  const double all_steps[] = {1, 3, 9, 1, 1, 2};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(At<double>(bytes, steps + 8 * i), all_steps[i]);

  const size_t trials = steps + 6 * sizeof(double);
  const uint32_t rows[4][4] = {{0, 0, 0, 0}, {1, 1, 3, 0}, {2, 1, 4, 0}, {3, 2, 5, 0}};
  for (size_t i = 0; i < 4; ++i) {
    for (size_t k = 0; k < 4; ++k)
      EXPECT_EQ(At<uint32_t>(bytes, trials + 16 * i + 4 * k), rows[i][k]) << i << " " << k;
  }

  const size_t values = trials + 4 * 16;
  EXPECT_EQ(At<float>(bytes, values + 4 * 2), 0.871f);
  EXPECT_TRUE(std::isnan(At<float>(bytes, values + 4 * 5)));
  EXPECT_EQ(At<float>(bytes, values + 4 * 6), -std::numeric_limits<float>::infinity());

  const size_t segments = values + 8 * sizeof(float);  // seven values and padding
  EXPECT_EQ(At<uint32_t>(bytes, segments + 16), 0u);   // the second segment is of trial 0
  EXPECT_EQ(At<uint32_t>(bytes, segments + 16 + 4), 2u);
  EXPECT_EQ(At<double>(bytes, segments + 16 + 8), 9.0);
  EXPECT_EQ(bytes.size(), segments + 5 * 16);
}

TEST_F(CurvesTest, ClonesAndFlagsAreInTheBinaryForm) {
  ThinnedPage page{.seq = EventSeq(5), .next = TrialNumber(41)};
  page.trials.push_back({.trial = TrialNumber(7),
                         .mixed = true,
                         .points = {{0.5, 1}},
                         .clones = {{TrialNumber(3), Step(2)}}});
  const std::string bytes = CurvesToBytes(page);
  EXPECT_EQ(At<uint32_t>(bytes, 40), 42u);
  const size_t trials = kHeaderBytes + 8 + 8;
  EXPECT_EQ(At<uint32_t>(bytes, trials), 7u);
  EXPECT_EQ(At<uint32_t>(bytes, trials + 12), 1u);
  const size_t clones = trials + 16 + 8;
  EXPECT_EQ(At<uint32_t>(bytes, clones), 7u);
  EXPECT_EQ(At<uint32_t>(bytes, clones + 4), 3u);
  EXPECT_EQ(At<double>(bytes, clones + 8), 2.0);
  EXPECT_EQ(bytes.size(), clones + 16);
}

TEST_F(CurvesTest, ParametersSelectTrialsAndPoints) {
  Follow();
  EXPECT_EQ(At<uint32_t>(GetBytes("?best=2"), 16), 2u);
  EXPECT_EQ(At<uint32_t>(GetBytes("?trials=3,1,3,99"), 16), 2u);
  EXPECT_EQ(At<uint32_t>(GetBytes("?page_token=2"), 16), 2u);
  EXPECT_EQ(At<uint32_t>(GetBytes("?points=2&trials=0"), 24), 2u);
  EXPECT_EQ(At<uint32_t>(GetBytes("?metric=loss"), 16), 4u);
  const std::string range = GetBytes("?trials=0&first_step=2&last_step=8.5&points=2000");
  EXPECT_EQ(At<uint32_t>(range, 24), 1u);
}

TEST_F(CurvesTest, BadParametersAreRefused) {
  Follow();
  ExpectRefused("?points=1", "points");
  ExpectRefused("?points=257", "points");
  ExpectRefused("?points=2001&trials=1&first_step=0", "points");
  ExpectRefused("?best=0", "best");
  ExpectRefused("?best=1001", "best");
  ExpectRefused("?best=1&trials=1", "best");
  ExpectRefused("?trials=", "trials");
  ExpectRefused("?trials=1,,2", "trials");
  ExpectRefused("?trials=-1", "trials");
  std::string many = "0";
  for (int i = 1; i <= 500; ++i) many += "," + std::to_string(i);
  ExpectRefused("?trials=" + many, "trials");
  ExpectRefused("?first_step=1", "first_step");
  ExpectRefused("?first_step=x&trials=1", "first_step");
  ExpectRefused("?first_step=nan&trials=1", "first_step");
  ExpectRefused("?first_step=3&last_step=2&trials=1", "last_step");
  ExpectRefused("?last_step=3&trials=" + many.substr(0, many.find(",101")), "first_step");
  ExpectRefused("?page_token=x", "page_token");
  ExpectRefused("?page_token=1&best=2", "page_token");
  ExpectRefused("?metric=acuracy", "acuracy");
}

TEST_F(CurvesTest, TheJsonFormHasNoParametersOfTheBinaryForm) {
  for (const std::string query : {"points=9", "best=2", "trials=1", "first_step=1", "last_step=1"})
    EXPECT_THAT(GetJson("/api/v1/sweeps/s1/curves?" + query, 400).value("detail", ""),
                HasSubstr(std::string(kCurvesType)))
        << query;
}

TEST_F(CurvesTest, UntilTheTableIsBuiltRequestsMustWait) {
  const auto answer = Get("");
  EXPECT_THAT(Parsed(answer, 503).value("detail", ""), HasSubstr("being built"));
  EXPECT_NE(answer->get_header_value("Retry-After"), "");
  GetJson("/api/v1/sweeps/s1/curves");  // JSON does not need the table
  Follow();
  GetBytes("");
}

TEST_F(CurvesTest, UnknownSweepsAreNotFound) {
  Follow();
  const auto answer = client_->Get("/api/v1/sweeps/s9/curves",
                                   httplib::Headers{{"Accept", std::string(kCurvesType)}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 404);
}

}  // namespace
}  // namespace attune::server
