#pragma once

#include <sys/types.h>

#include <filesystem>
#include <initializer_list>
#include <optional>

#include "base/result.h"

namespace attune {

// Makes the files and folders that this process creates from now on private to its user, by its
// umask. Programs that Spawn() starts get the umask that the process had before.
void KeepFilesPrivate();

// The umask that programs get back; nullopt if KeepFilesPrivate has not been called.
std::optional<mode_t> UmaskOfPrograms();

// Takes away the access of other users to a folder and to the files that lie directly in it. Does
// nothing if the folder belongs to another user, or if it holds files but none with a name of
// `markers`: it then has another purpose, such as a home folder. Returns whether other users have
// no access now.
bool MakePrivate(const std::filesystem::path& folder, std::initializer_list<const char*> markers);

// Gives a file that root has created to the owner of `folder`, who has to read it. Does nothing if
// this process does not run as root. Errors: see SystemError().
Status GiveToOwner(const std::filesystem::path& folder, const std::filesystem::path& path);

}  // namespace attune
