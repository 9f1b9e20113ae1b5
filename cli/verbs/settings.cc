#include "cli/verbs/settings.h"

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

Result<Json> PatchOf(const std::vector<std::string>& settings) {
  Json patch = Json::object();
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{ErrorCode::kInvalid, "`" + setting +
                                            "` is no setting: write KEY=VALUE with a key of the "
                                            "sweep file, such as stop.max_trials=200"};
    Json* place = &patch;
    for (const std::string& part : PartsOf(setting.substr(0, equals))) {
      if (!place->is_object() && !place->is_null())
        return Error{ErrorCode::kInvalid, "`" + setting +
                                              "` stands inside of a value that another "
                                              "setting gives: leave one of them out"};
      place = &(*place)[part];
    }
    const std::string text = setting.substr(equals + 1);
    *place = ParseJson<Json>(text);
    if (place->is_discarded()) *place = text;
  }
  return patch;
}

}  // namespace attune::cli
