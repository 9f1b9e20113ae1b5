#include "cli/commands/settings.h"

#include <algorithm>
#include <string_view>

#include "base/result.h"
#include "json/parse.h"

namespace attune::cli {
namespace {

constexpr std::string_view kParameters = "parameters.";

// parameters.a.b.max → parameters, a.b, max; stop.max_time → stop, max_time.
std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  const size_t last = path.rfind('.');
  if (path.starts_with(kParameters) && last > kParameters.size()) {
    parts = {"parameters", path.substr(kParameters.size(), last - kParameters.size()),
             path.substr(last + 1)};
    return parts;
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

Result<std::vector<sweepfile::Setting>> SettingsOf(const std::vector<std::string>& words) {
  std::vector<sweepfile::Setting> settings;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{ErrorCode::kInvalid, "`" + word +
                                            "` is not KEY=VALUE; write a key of the sweep file and "
                                            "its value, such as stop.max_trials=200"};
    settings.push_back({PartsOf(word.substr(0, equals)), word.substr(equals + 1)});
  }
  return settings;
}

Result<Json> PatchOf(const std::vector<std::string>& words) {
  const auto settings = SettingsOf(words);
  if (!settings.ok()) return settings.error();
  Json patch = Json::object();
  for (size_t i = 0; i < words.size(); ++i) {
    const auto& [path, value] = (*settings)[i];
    Json* place = &patch;
    for (const std::string& part : path) {
      if (!place->is_object() && !place->is_null())
        return Error{
            ErrorCode::kInvalid,
            "`" + words[i] + "` is inside the value of another setting; remove one of them"};
      place = &(*place)[part];
    }
    *place = ParseJson<Json>(value);
    if (place->is_discarded()) *place = value;
  }
  return patch;
}

}  // namespace attune::cli
