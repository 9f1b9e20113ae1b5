#include "executor/gang/elf_note.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "executor/gang/channel_types.h"
#include "system/unique_fd.h"

namespace attune::gang {
namespace {

// Limits for untrusted files: no more is read, whatever their headers claim.
constexpr int kProgramHeadersMax = 256;
constexpr uint64_t kNotesBytesMax = 64 * 1024;

constexpr std::string_view kOwner{"Attune\0", 7};  // the length of an owner includes its terminator
constexpr uint32_t kType = 1;

bool ReadAt(int fd, uint64_t offset, void* out, size_t size) {
  return offset <= INT64_MAX - size &&
         pread(fd, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

std::optional<uint32_t> FindInNotes(std::string_view notes, uint64_t alignment) {
  const auto padded = [alignment](uint64_t size) {
    return (size + alignment - 1) / alignment * alignment;
  };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof header);
    const uint64_t descriptor_at = padded(sizeof header + header.n_namesz);
    const uint64_t end = descriptor_at + header.n_descsz;
    if (end > notes.size()) return std::nullopt;
    const std::string_view owner = notes.substr(sizeof header, header.n_namesz);
    if (owner == kOwner && header.n_type == kType && header.n_descsz == sizeof(uint32_t)) {
      uint32_t version;
      std::memcpy(&version, notes.data() + descriptor_at, sizeof version);
      return version;
    }
    notes.remove_prefix(std::min<uint64_t>(padded(end), notes.size()));
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint32_t> ReadLauncherNote(const std::filesystem::path& program) {
  const UniqueFd file(open(program.c_str(), O_RDONLY | O_CLOEXEC));
  Elf64_Ehdr header;
  if (!file || !ReadAt(file.get(), 0, &header, sizeof header)) return std::nullopt;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return std::nullopt;
  }

  for (int i = 0; i < std::min<int>(header.e_phnum, kProgramHeadersMax); ++i) {
    Elf64_Phdr segment;
    if (header.e_phoff > UINT64_MAX / 2 ||
        !ReadAt(file.get(), header.e_phoff + i * sizeof segment, &segment, sizeof segment)) {
      return std::nullopt;
    }
    if (segment.p_type != PT_NOTE || segment.p_filesz > kNotesBytesMax) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!ReadAt(file.get(), segment.p_offset, notes.data(), notes.size())) continue;
    if (const auto version = FindInNotes(notes, segment.p_align == 8 ? 8 : 4)) return version;
  }
  return std::nullopt;
}

}  // namespace attune::gang
