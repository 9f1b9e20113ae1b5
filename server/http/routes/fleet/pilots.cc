#include "server/http/routes/fleet/pilots.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "json/parse.h"
#include "server/http/answers/answers.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

constexpr size_t kWordMaxBytes = 4'096;
constexpr double kPollMaxSeconds = 3'600;

[[noreturn]] void Wrong(const std::string& place, const std::string& what) {
  throw Json::other_error::create(501, (place.empty() ? "the body" : place) + " " + what, nullptr);
}

const Json& Word(const Json& value, const std::string& place) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kWordMaxBytes)
    Wrong(place, "has to be a text of at most " + std::to_string(kWordMaxBytes) + " bytes");
  return value;
}

// Takes what a report has to say of an object, and nothing else of it; throws what is wrong.
class Taken {
 public:
  Taken(const Json& from, std::string where) : from_(from), where_(std::move(where)) {
    if (!from.is_object()) Wrong(where_, "has to be an object");
  }

  Taken& Words(std::initializer_list<const char*> keys) {
    for (const char* key : keys) json_[key] = Word(At(key), Place(key));
    return *this;
  }
  Taken& Numbers(std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      const Json& value = At(key);
      if (!value.is_number() || value.get<double>() < 0)
        Wrong(Place(key), "has to be a number, 0 or more");
      json_[key] = value;
    }
    return *this;
  }
  template <class Each>
  Taken& List(const char* key, Each each) {
    const Json& values = At(key);
    if (!values.is_array() || values.size() > kPilotsMax)
      Wrong(Place(key), "has to be a list of at most " + std::to_string(kPilotsMax));
    Json list = Json::array();
    for (size_t i = 0; i < values.size(); ++i)
      list.push_back(each(values[i], Place(key) + "[" + std::to_string(i) + "]"));
    json_[key] = std::move(list);
    return *this;
  }
  template <class Object>
  Taken& One(const char* key, Object object) {
    json_[key] = object(At(key), Place(key));
    return *this;
  }

  Json json() { return std::move(json_); }

 private:
  std::string Place(const std::string& key) const {
    return where_.empty() || key.empty() ? where_ + key : where_ + "." + key;
  }
  const Json& At(const char* key) const {
    const auto found = from_.find(key);
    if (found == from_.end()) Wrong(Place(key), "is missing");
    return *found;
  }
  const Json& from_;
  const std::string where_;
  Json json_ = Json::object();
};

Json TakeName(const Json& name, const std::string& where) { return Word(name, where); }

Json TakePilot(const Json& pilot, const std::string& where) {
  return Taken(pilot, where)
      .Words({"name", "job", "state", "reason", "node", "ends"})
      .Numbers({"nodes", "ran_seconds"})
      .List("executors", TakeName)
      .json();
}

Json TakeHindrance(const Json& hindrance, const std::string& where) {
  return Taken(hindrance, where).Words({"sweep", "text"}).json();
}

Json TakeAmount(const Json& amount, const std::string& where) {
  return Taken(amount, where).Numbers({"nodes", "cpus", "gpus"}).json();
}

Json TakeHours(const Json& hours, const std::string& where) {
  return Taken(hours, where)
      .One("held", TakeAmount)
      .One("in_use", TakeAmount)
      .One("idle", TakeAmount)
      .One("unseen", TakeAmount)
      .json();
}

Json TakeReport(const Json& report) {
  return Taken(report, "")
      .Words({"fleet", "system", "host", "partition"})
      .Numbers({"poll_seconds", "nodes_min", "nodes_max", "nodes_per_pilot"})
      .List("pilots", TakePilot)
      .List("hindrances", TakeHindrance)
      .One("hours", TakeHours)
      .json();
}

double SecondsSince(Pilots::Clock::time_point then) {
  return std::chrono::duration<double>(Pilots::Clock::now() - then).count();
}

}  // namespace

Response Pilots::Report(const Request& request, const Target&) {
  Fleet fleet{.heard = Clock::now()};
  try {
    fleet.said = TakeReport(ParseJsonOrThrow<Json>(request.body));
  } catch (const Json::parse_error&) {
    return Problem(400, "the body is no JSON");
  } catch (const Json::exception& error) {
    const std::string_view what = error.what();  // [json.exception…] and what we have said
    return Problem(422, std::string(what.substr(std::min(what.find("] "), what.size() - 2) + 2)));
  }
  const std::string name = fleet.said["fleet"].get<std::string>();
  if (name.empty()) return Problem(422, "fleet is empty");
  fleet.fresh_seconds =
      std::max<double>(static_cast<double>(kFresh.count()),
                       3 * std::min(fleet.said["poll_seconds"].get<double>(), kPollMaxSeconds));
  const std::lock_guard lock(mutex_);
  fleets_[name] = std::move(fleet);
  if (fleets_.size() > kFleetsMax)
    fleets_.erase(
        std::ranges::min_element(fleets_, {}, [](const auto& each) { return each.second.heard; }));
  return JsonAnswer({{"fleet", name}});
}

Response Pilots::List(const Request&, const Target&) {
  Json list = Json::array();
  const std::lock_guard lock(mutex_);
  for (const auto& [name, fleet] : fleets_) list.push_back(Shown(fleet));
  return JsonAnswer({{"fleets", std::move(list)}});
}

Json Pilots::Shown(const Fleet& fleet) const {
  const double silent = SecondsSince(fleet.heard);
  Json json = fleet.said;
  json["silent_seconds"] = silent;
  json["stale"] = silent > fleet.fresh_seconds;
  return json;
}

std::string Pilots::Hindering(SweepId sweep) const {
  const std::string id = ToString(sweep);
  std::string text;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, fleet] : fleets_) {
    if (SecondsSince(fleet.heard) > fleet.fresh_seconds) continue;
    for (const Json& each : fleet.said["hindrances"]) {
      const auto& of = each["sweep"].get_ref<const std::string&>();
      if (!of.empty() && of != id) continue;
      text +=
          "; " + fleet.said["system"].get<std::string>() + ": " + each["text"].get<std::string>();
    }
  }
  return text;
}

}  // namespace attune::server
