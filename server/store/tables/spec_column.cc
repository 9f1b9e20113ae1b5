#include "server/store/tables/spec_column.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/message_limits.h"
#include "json/parse.h"
#include "server/store/json.h"
#include "sweepfile/codec.h"

namespace attune::server {
namespace {

constexpr size_t kSpecsMax = 16;
constexpr size_t kTextBytesMax = 64 * 1024;  // specs with longer texts are not kept

// The specs that were decoded last, by their texts.
class SpecCache {
 public:
  std::shared_ptr<const SweepSpec> Find(std::string_view text) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(specs_, text, &Entry::first);
    if (found == specs_.end()) return nullptr;
    std::rotate(specs_.begin(), found, std::next(found));
    return specs_.front().second;
  }

  void Add(std::string_view text, const SweepSpec& spec) {
    if (text.size() > kTextBytesMax) return;
    Entry entry{text, std::make_shared<const SweepSpec>(spec)};
    const std::lock_guard lock(mutex_);
    if (specs_.size() == kSpecsMax) specs_.pop_back();
    specs_.insert(specs_.begin(), std::move(entry));
  }

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const SweepSpec>>;

  std::mutex mutex_;
  std::vector<Entry> specs_;  // the last one used is first
};

void AddDigestsIn(std::string_view text, std::set<std::string>& digests) {
  constexpr std::string_view kPrefix = "sha256:";
  constexpr size_t kDigestBytes = kPrefix.size() + 64;
  for (size_t at = text.find(kPrefix); at != text.npos; at = text.find(kPrefix, at + 1)) {
    const std::string_view digest = text.substr(at, kDigestBytes);
    if (IsDigest(digest)) digests.emplace(digest);
  }
}

}  // namespace

SweepSpec SpecOfColumn(std::string_view text) {
  static SpecCache cache;
  if (const auto spec = cache.Find(text)) return *spec;
  SweepSpec spec = ValueOrThrow(sweepfile::SpecFromJson(ParseJsonOrThrow<Json>(text)));
  cache.Add(text, spec);
  return spec;
}

Result<std::set<std::string>> ReadCodeDigests(sqlite::Connection& connection) {
  std::set<std::string> digests;
  sqlite::Rows rows = connection.Query(
      "SELECT spec FROM sweeps WHERE instr(spec, 'sha256:') > 0"
      " UNION ALL SELECT DISTINCT code FROM trials WHERE code IS NOT NULL");
  while (rows.Next()) AddDigestsIn(rows.Text(0), digests);
  if (!rows.status().ok()) return rows.status().error();
  return digests;
}

}  // namespace attune::server
