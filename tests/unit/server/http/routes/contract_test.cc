#include "rest/contract.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "tests/support/mentions.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ContractTest = HttpFixture;

constexpr char kHex[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

// A path of the contract with ids for its placeholders.
std::string FillPlaceholders(std::string path) {
  for (const auto& [name, value] : {std::pair("{sweep}", "s1"),
                                    {"{trial}", "0"},
                                    {"{checkpoint}", "1-3"},
                                    {"{executor}", "box"},
                                    {"{token}", "ada"},
                                    {"{code}", kHex}}) {
    if (const size_t at = path.find(name); at != std::string::npos)
      path.replace(at, std::string(name).size(), value);
  }
  return path;
}

// The methods of a path, as the server lists them when another one is used.
std::set<std::string> MethodsOf(httplib::Client& client, const std::string& path) {
  const auto refusal = client.Put(FillPlaceholders(path));
  std::istringstream allowed(refusal ? refusal->get_header_value("Allow") : "");
  std::set<std::string> methods;
  for (std::string method; std::getline(allowed >> std::ws, method, ',');)
    if (method != "HEAD") methods.insert(method);
  return methods;
}

TEST_F(ContractTest, EachPathOfTheContractTakesItsMethods) {
  const Json contract = GetJson("/api/v1/openapi.json");
  for (const auto& [path, item] : contract.at("paths").items()) {
    std::set<std::string> methods;
    for (const auto& [name, operation] : item.items()) {
      std::string method = name;
      std::ranges::transform(method, method.begin(), [](char c) { return std::toupper(c); });
      if (name != "parameters") methods.insert(method);
    }
    EXPECT_EQ(MethodsOf(*client_, path), methods) << path;
  }
}

TEST_F(ContractTest, AnUnknownQueryParameterIsRefusedAndTheKnownOnesNamed) {
  const Json list = GetJson("/api/v1/sweeps?page_siz=2", 400);
  EXPECT_THAT(list.at("detail").get<std::string>(),
              testing::Mentions("page_siz: unknown ", "page_size, page_token"));
  EXPECT_THAT(GetJson("/api/v1/executors?state=lost", 400).at("detail").get<std::string>(),
              testing::Mentions("state: "));
  const auto validated =
      client_->Post("/api/v1/sweeps:validate?directry=/tmp", "", "application/yaml");
  ASSERT_TRUE(validated);
  EXPECT_EQ(validated->status, 400);
  EXPECT_THAT(validated->body, testing::Mentions("directory, file"));
}

TEST_F(ContractTest, EachQueryParameterOfTheContractIsKnown) {
  for (const rest::QueryParameter& each : rest::kQueryParameters) {
    const std::string path =
        FillPlaceholders(std::string(each.path)) + "?" + std::string(each.name) + "=x";
    const auto answer = each.method == "GET"      ? client_->Get(path)
                        : each.method == "DELETE" ? client_->Delete(path)
                                                  : client_->Post(path, "{}", "application/json");
    ASSERT_TRUE(answer) << path;
    EXPECT_THAT(answer->body,
                ::testing::Not(testing::Mentions(std::string(each.name) + ": unknown")))
        << path;
  }
}

TEST_F(ContractTest, CurvesOfAnUnknownMetricAreRefused) {
  const Json problem = GetJson("/api/v1/sweeps/s1/curves?metric=acuracy", 400);
  EXPECT_THAT(
      problem.at("detail").get<std::string>(),
      ::testing::AllOf(::testing::HasSubstr("acuracy"),
                       ::testing::HasSubstr(GetJson("/api/v1/sweeps/s1").at("metric").at("name"))));
}

TEST_F(ContractTest, CurvesHaveTheFormOfTheContract) {
  const auto curves = rest::Parse<rest::Curves>(GetJson("/api/v1/sweeps/s1/curves"));
  ASSERT_TRUE(curves.ok()) << curves.error().message;
  EXPECT_FALSE(curves->trials.empty());
}

}  // namespace
}  // namespace attune::server
