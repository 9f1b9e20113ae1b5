#include "executor/environments/start_log.h"

#include <string>
#include <utility>

#include "base/result.h"
#include "executor/gang/folders.h"
#include "executor/gang/preparation.h"
#include "system/files.h"

namespace attune::agent {

void StartLog::Write(const gang::GangSpec& spec, std::string_view line) {
  if (!file_ && !spec.ranks.empty() && gang::MakeFolders(spec).ok()) {
    Result<UniqueFd> log = gang::OpenLog(gang::RankLog(spec.attempt_dir, spec.ranks.front().rank));
    if (log.ok()) file_ = std::move(*log);
  }
  if (file_) WriteAt(file_.get(), std::string(line) + "\n", 0);
}

}  // namespace attune::agent
