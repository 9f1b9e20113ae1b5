#include "sweepfile/labels.h"

#include <string>

#include "base/result.h"
#include "sweepfile/scalar.h"

namespace attune::sweepfile {
namespace {

void ReadValue(const Spot& spot, std::set<std::string>& values, Faults& faults) {
  const Result<std::string> text = ReadText(*spot.node);
  if (!text.ok()) return faults.AtValue(spot, text.error().message);
  if (const Status checked = CheckLabelValue(*text); !checked.ok())
    return faults.AtValue(spot, checked.error().message);
  if (!values.insert(*text).second) faults.AtValue(spot, *text + " stands here twice");
}

}  // namespace

Requirements ReadRequirements(const Spot& spot, Faults& faults) {
  Requirements required;
  if (spot.node == nullptr) return required;
  if (spot.node->kind != Node::Kind::kMap) {
    faults.AtValue(spot, "expected a map such as {gpu: h100}, found " + Describe(*spot.node));
    return required;
  }
  if (spot.node->entries.size() > kMaxLabels)
    faults.AtValue(spot, "asks for more than " + std::to_string(kMaxLabels) + " labels");
  for (const MapEntry& entry : spot.node->entries) {
    const Spot child = Child(spot, entry);
    if (const Status checked = CheckLabelName(entry.key); !checked.ok())
      faults.Add(child.place, entry.mark, checked.error().message);
    std::set<std::string>& values = required[entry.key];
    if (entry.value.kind != Node::Kind::kList) {
      ReadValue(child, values, faults);
    } else if (entry.value.items.empty() || entry.value.items.size() > kMaxListedValues) {
      faults.AtValue(child,
                     "list at least one value, and at most " + std::to_string(kMaxListedValues));
    } else {
      for (size_t i = 0; i < entry.value.items.size(); ++i)
        ReadValue(Item(child, i), values, faults);
    }
  }
  return required;
}

Json ToJson(const Requirements& required) {
  Json json = Json::object();
  for (const auto& [name, values] : required) {
    if (values.size() == 1) {
      json[name] = *values.begin();
    } else {
      json[name] = Json(values);
    }
  }
  return json;
}

Result<Requirements> RequirementsFromJson(const Json& json) {
  const Error corrupt{ErrorCode::kCorrupt, "resources.requires is no map of texts"};
  if (!json.is_object()) return corrupt;
  Requirements required;
  for (const auto& [name, asked] : json.items()) {
    const Json list = asked.is_array() ? asked : Json::array({asked});
    for (const Json& value : list) {
      if (!value.is_string()) return corrupt;
      required[name].insert(value.get<std::string>());
    }
  }
  return required;
}

}  // namespace attune::sweepfile
