#pragma once

#include <filesystem>
#include <string>

namespace attune::agent {

// Identifies a data folder. Two executors get the same result if they read and write the same files
// at the same paths, on one host or over a shared file system. The result combines a random word
// from `<data>/folder-id`, which is written once, with the absolute path of the folder. It is empty
// if that file can be neither read nor written.
//
// A complete copy of a data folder at the same path of another host is mistaken for the original;
// delete `folder-id` in the copy.
std::string FolderIdentity(const std::filesystem::path& data);

}  // namespace attune::agent
