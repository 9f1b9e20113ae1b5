#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/base/ids.h"

namespace attune::server {

struct ExportOptions {
  enum class What { kEvents, kTrials, kReports, kLogged };
  enum class Format { kCsv, kJsonl };
  What what = What::kTrials;
  Format format = Format::kCsv;
  std::optional<SweepId> sweep;  // nullopt: all sweeps
  // Whether events contain `env` of sweep files. If false, sweep files with `env` are left out as
  // well, because exports are shared and only admins may see `env`.
  bool with_env = false;
};

// Writes the rows of one snapshot of a database, line by line. A server may be running.
//
// In JSON lines, configurations and metrics are objects. In CSV (RFC 4180), each parameter and
// metric has a column such as `config.lr` or `metrics.loss`, which is empty if a row has no such
// value. The payload of an event stays JSON.
Status Export(const std::string& path, const ExportOptions& options,
              const std::function<void(std::string_view line)>& write);

}  // namespace attune::server
