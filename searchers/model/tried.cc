#include "searchers/model/tried.h"

#include <algorithm>
#include <vector>

#include "core/base/content_hash.h"
#include "core/log/fields.h"

namespace attune::searchers {
namespace {

uint64_t HashOfConfig(const Config& config) {
  ArchiveWriter archive;
  archive(config);
  return ContentHash(archive.Take());
}

}  // namespace

bool ProposesOnce(const Cube& cube) {
  return cube.IsFinite() && std::ranges::any_of(cube.dimensions(), [](const Cube::Dimension& each) {
           return each.count > 1;
         });
}

void TriedConfigs::Observe(const Event& event, const Cube& cube) {
  const auto* created = std::get_if<TrialCreated>(&event.fact);
  if (created != nullptr && ProposesOnce(cube)) hashes_.insert(HashOfConfig(created->config));
}

bool TriedConfigs::Contains(const Config& config) const {
  return hashes_.contains(HashOfConfig(config));
}

void TriedConfigs::Save(ArchiveWriter& archive) const {
  std::vector<uint64_t> hashes(hashes_.begin(), hashes_.end());
  std::ranges::sort(hashes);
  archive(hashes);
}

void TriedConfigs::Load(ArchiveReader& archive) {
  std::vector<uint64_t> hashes;
  archive(hashes);
  hashes_ = {hashes.begin(), hashes.end()};
}

}  // namespace attune::searchers
