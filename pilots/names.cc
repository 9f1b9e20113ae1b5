#include "pilots/names.h"

#include <charconv>

namespace attune::pilots {

std::string PilotPrefix(const std::string& fleet) { return "attune-" + fleet + "-"; }

std::string PilotName(const std::string& fleet, int64_t number) {
  return PilotPrefix(fleet) + std::to_string(number);
}

std::optional<int64_t> PilotNumber(const std::string& fleet, std::string_view name) {
  const std::string prefix = PilotPrefix(fleet);
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::string PilotOf(const std::string& fleet, std::string_view executor) {
  std::string_view name = executor;
  if (!PilotNumber(fleet, name)) name = name.substr(0, name.rfind('.'));
  return PilotNumber(fleet, name) ? std::string(name) : "";
}

}  // namespace attune::pilots
