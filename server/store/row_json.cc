#include "server/store/row_json.h"

#include <string>
#include <utility>

namespace attune::server {

Json RanksToJson(const std::vector<RankSlot>& ranks) {
  Json json = Json::array();
  for (const RankSlot& slot : ranks) {
    json.push_back({{"rank", json.size()},
                    {"executor", slot.executor},
                    {"local_rank", slot.local_rank},
                    {"cpus", slot.cpus},
                    {"gpus", slot.gpus}});
    if (slot.gpu_percent < 100) json.back()["gpu_percent"] = slot.gpu_percent;
  }
  return json;
}

std::vector<RankSlot> RanksFromJson(const Json& json) {
  std::vector<RankSlot> ranks;
  for (const Json& rank : json) {
    ranks.push_back({.executor = rank.at("executor").get<std::string>(),
                     .local_rank = rank.at("local_rank").get<int>(),
                     .cpus = rank.at("cpus").get<int>(),
                     .gpus = rank.at("gpus").get<std::vector<int>>(),
                     .gpu_percent = rank.value("gpu_percent", 100)});
  }
  return ranks;
}

Json RationaleToJson(const Rationale& rationale) {
  Json from = Json::array();
  for (const TrialNumber trial : rationale.from) from.push_back(trial.value);
  return {{"rule", rationale.rule},
          {"from", std::move(from)},
          {"results", rationale.results},
          {"score", rationale.score ? sweepfile::RealToJson(*rationale.score) : Json()},
          {"text", rationale.text}};
}

Rationale RationaleFromJson(const Json& json) {
  Rationale rationale{.rule = json.at("rule").get<std::string>(),
                      .results = json.at("results").get<int64_t>(),
                      .text = json.at("text").get<std::string>()};
  for (const Json& trial : json.at("from"))
    rationale.from.push_back(TrialNumber(trial.get<uint32_t>()));
  if (const Json& score = json.at("score"); !score.is_null())
    rationale.score = ValueOrThrow(sweepfile::RealFromJson(score));
  return rationale;
}

}  // namespace attune::server
