#pragma once

#include <filesystem>
#include <string>

namespace attune::agent {

// Which data folder this is, wherever it is looked at from: two executors get the same answer if
// they read and write the same files at the same paths, be it on one host or over a shared
// filesystem. It is a random word that lies in the folder (`<data>/folder-id`, written once), and
// the path at which the folder is seen. Empty when it can be neither read nor written.
//
// A folder that was copied whole, its word included, to the same path of another host is taken for
// the original: delete its folder-id.
std::string FolderIdentity(const std::filesystem::path& data);

}  // namespace attune::agent
