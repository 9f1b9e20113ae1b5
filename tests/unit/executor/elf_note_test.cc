#include "executor/gang/elf_note.h"

#include <elf.h>

#include <cstring>

#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

std::string Note(const std::string& owner, uint32_t type, const std::string& descriptor,
                 size_t alignment) {
  const Elf64_Nhdr header{static_cast<uint32_t>(owner.size() + 1),
                          static_cast<uint32_t>(descriptor.size()), type};
  std::string note(reinterpret_cast<const char*>(&header), sizeof header);
  note += owner + '\0';
  note.resize((note.size() + alignment - 1) / alignment * alignment);
  note += descriptor;
  note.resize((note.size() + alignment - 1) / alignment * alignment);
  return note;
}

const std::string kVersion1{"\1\0\0\0", 4};

// Makes an ELF file with headers and one note segment.
std::string Elf(const std::string& notes, uint64_t alignment = 4) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  Elf64_Phdr note{};
  note.p_type = PT_NOTE;
  note.p_offset = sizeof header + 2 * sizeof note;
  note.p_filesz = notes.size();
  note.p_align = alignment;
  std::string file;
  file.append(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(&load), sizeof load);
  file.append(reinterpret_cast<const char*>(&note), sizeof note);
  return file + notes;
}

std::optional<uint32_t> NoteOf(const std::string& bytes) {
  const TempDir dir;
  WriteFile(dir.path() / "program", bytes);
  return ReadLauncherNote(dir.path() / "program");
}

TEST(ElfNote, IsFoundAfterOtherNotes) {
  EXPECT_EQ(NoteOf(Elf(Note("GNU", 3, "0123456789", 4) + Note("Attune", 1, kVersion1, 4))), 1u);
}

TEST(ElfNote, IsFoundWithEightByteAlignment) {
  EXPECT_EQ(NoteOf(Elf(Note("GNU", 5, "01234567890", 8) + Note("Attune", 1, kVersion1, 8), 8)), 1u);
}

TEST(ElfNote, IgnoresNotesWithOtherOwnersTypesAndSizes) {
  EXPECT_FALSE(NoteOf(Elf(Note("attune", 1, kVersion1, 4))));
  EXPECT_FALSE(NoteOf(Elf(Note("Attune", 2, kVersion1, 4))));
  EXPECT_FALSE(NoteOf(Elf(Note("Attune", 1, "12345678", 4))));
}

TEST(ElfNote, FindsNothingInATruncatedFile) {
  const std::string whole = Elf(Note("GNU", 3, "0123", 4) + Note("Attune", 1, kVersion1, 4));
  ASSERT_EQ(NoteOf(whole), 1u);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(NoteOf(whole.substr(0, size))) << "at " << size;
  }
}

TEST(ElfNote, DoesNotTrustWrongSizes) {
  std::string notes = Note("Attune", 1, kVersion1, 4);
  const uint32_t huge = 0xffffffff;
  std::memcpy(notes.data(), &huge, sizeof huge);
  EXPECT_FALSE(NoteOf(Elf(notes)));
  std::string elf = Elf(Note("Attune", 1, kVersion1, 4));
  const uint64_t far = ~uint64_t{0} - 8;
  std::memcpy(elf.data() + offsetof(Elf64_Ehdr, e_phoff), &far, sizeof far);
  EXPECT_FALSE(NoteOf(elf));
}

TEST(ElfNote, FindsNothingInOtherFiles) {
  EXPECT_FALSE(NoteOf("#!/bin/sh\necho this is a script, and longer than an ELF header is.\n"));
  EXPECT_FALSE(ReadLauncherNote("/nowhere/at/all"));
  EXPECT_FALSE(ReadLauncherNote("/"));
}

TEST(ElfNote, IsFoundInACompiledProgram) {
  EXPECT_EQ(ReadLauncherNote(ATTUNE_TEST_LAUNCHABLE_WORKER), 1u);
  EXPECT_FALSE(ReadLauncherNote(ATTUNE_TEST_PLAIN_WORKER));
}

}  // namespace
}  // namespace attune::gang
