#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "executor/processes/containers.h"

namespace attune::gang {

// A folder with a file for each container that this executor may have to remove. So the next
// executor with this folder can remove containers that a killed executor has left. Not thread-safe;
// no other process uses the folder.
class ContainerList {
 public:
  explicit ContainerList(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Removes the containers that are on the list. Blocks, for a limited time if an engine hangs.
  void RemoveLeft() const;

  // Adds a container before it starts. `name` is the name of a file.
  Status Add(const std::string& name, const ContainerEngine& engine) const;

  // The container is removed.
  void Forget(const std::string& name) const;

 private:
  const std::filesystem::path folder_;
};

}  // namespace attune::gang
