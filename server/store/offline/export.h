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
  std::optional<SweepId> sweep;  // absent: all of them
  // Events have `env` of sweep files, and the files. Otherwise a file with `env` is left out, since
  // exports are shared and only admins see `env`.
  bool with_env = false;
};

// Writes a database's rows, line by line, on one snapshot of it, while a server may be running.
//
// JSON lines have configurations and metrics as objects. CSV (RFC 4180) has a column for each
// parameter and metric, `config.lr` and `metrics.loss`, empty where a row has no such; the payload
// of an event stays JSON.
Status Export(const std::string& path, const ExportOptions& options,
              const std::function<void(std::string_view line)>& write);

}  // namespace attune::server
