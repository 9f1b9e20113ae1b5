#include "rest/contract.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ContractTest = HttpFixture;

// The methods that a path takes, as the server lists them when another one is used.
std::set<std::string> MethodsOf(httplib::Client& client, std::string path) {
  for (const auto& [name, value] : {std::pair("{sweep}", "s1"),
                                    {"{trial}", "0"},
                                    {"{checkpoint}", "1-3"},
                                    {"{executor}", "box"}}) {
    if (const size_t at = path.find(name); at != std::string::npos)
      path.replace(at, std::string(name).size(), value);
  }
  const auto refusal = client.Put(path);
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

TEST_F(ContractTest, CurvesHaveTheFormOfTheContract) {
  const auto curves = rest::Parse<rest::Curves>(GetJson("/api/v1/sweeps/s1/curves"));
  ASSERT_TRUE(curves.ok()) << curves.error().message;
  EXPECT_FALSE(curves->trials.empty());
}

}  // namespace
}  // namespace attune::server
