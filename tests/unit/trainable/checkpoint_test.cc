#include "attune/checkpoint.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <torch/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "attune/error.h"
#include "system/sha256.h"
#include "tests/unit/trainable/checkpoint_folder.h"
#include "trainable/checkpoints/safetensors.h"
#include "trainable/checkpoints/unfinished.h"

namespace attune::inline sdk::trainable {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

class Checkpoints : public CheckpointTest {
 protected:
  CheckpointInfo Write(std::int64_t step, int attempt = 1) const {
    CheckpointWriter writer(folder_, step, attempt, /*world_size=*/2);
    writer.Write("tensors", TensorMap{{"x", torch::arange(6)}});
    writer.WriteText("notes.txt", "of a step");
    return writer.Commit();
  }
};

std::string Bytes(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Overwrite(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

// Makes renameat2 refuse every flag, like NFS and other shared file systems.
bool RefuseRenameFlags() {
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[4])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), const_cast<sock_filter*>(program)};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(Checkpoints, AreSavedOnAFileSystemWithoutRenameFlags) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (!RefuseRenameFlags()) _exit(2);
    try {
      CheckpointWriter writer(folder_, 1, 1, 1);
      writer.WriteText("notes.txt", "{}");
      writer.Commit();
    } catch (const Error& error) {
      std::cerr << error.what() << std::endl;
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(fs::exists(folder_ / "step-1-attempt-1" / "manifest.json"));
}

TEST_F(Checkpoints, AreNeverReplacedByAnotherOfTheSameName) {
  const std::string before = Bytes(Write(1).path / "manifest.json");
  CheckpointWriter writer(folder_, 1, 1, 1);
  writer.WriteText("other", "x");
  EXPECT_THROW(writer.Commit(), Error);
  EXPECT_EQ(Bytes(folder_ / "step-1-attempt-1" / "manifest.json"), before);
}

TEST_F(Checkpoints, RestoreTensorsOfEveryTypeAndShapeBitForBit) {
  TensorMap tensors;
  for (const auto type :
       {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
        torch::kShort, torch::kChar, torch::kByte, torch::kBool, torch::kUInt16, torch::kUInt32,
        torch::kUInt64, torch::kComplexFloat, torch::kFloat8_e4m3fn, torch::kFloat8_e5m2,
        torch::kFloat8_e8m0fnu}) {
    tensors[c10::toString(type)] = torch::arange(1, 13).reshape({3, 4}).to(type);
  }
  tensors["negative"] = torch::arange(-3, 9);
  tensors["scalar"] = torch::scalar_tensor(2.5);
  tensors["empty"] = torch::empty({0, 3});
  tensors["transposed"] = torch::arange(6).reshape({2, 3}).t();
  tensors["nan"] = torch::full({2}, std::nan(""));
  WriteSafetensors(folder_ / "t", tensors);

  const std::string bytes = Bytes(folder_ / "t");
  const TensorMap again = ViewSafetensors(bytes, "t");
  ASSERT_THAT(again, SizeIs(tensors.size()));
  for (const auto& [name, tensor] : tensors) {
    const auto before = tensor.contiguous();
    EXPECT_EQ(again.at(name).sizes(), before.sizes()) << name;
    EXPECT_EQ(again.at(name).scalar_type(), before.scalar_type()) << name;
    EXPECT_EQ(
        0, std::memcmp(again.at(name).const_data_ptr(), before.const_data_ptr(), before.nbytes()))
        << name;
  }
}

TEST_F(Checkpoints, DataOfASafetensorsFileIsAligned) {
  const TensorMap tensors = {{"a", torch::ones({3}, torch::kByte)},
                             {"b", torch::ones({3}, torch::kHalf)},
                             {"c", torch::ones({1}, torch::kByte)},
                             {"d", torch::ones({5}, torch::kFloat)},
                             {"e", torch::ones({1}, torch::kDouble)}};
  WriteSafetensors(folder_ / "t", tensors);
  const std::string bytes = Bytes(folder_ / "t");
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  EXPECT_EQ(size % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, size));
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(header[name]["data_offsets"][0].get<std::int64_t>() % tensor.element_size(), 0)
        << name;
  }
}

TEST_F(Checkpoints, SaveOneTensorAtATime) {
  TensorMap tensors;  // each has 8 MiB and must be copied before writing
  for (char name = 'a'; name < 'i'; ++name) {
    tensors[std::string(1, name)] = torch::ones({1024, 2048}).t();
  }
  const auto clone_all = [&] {
    std::vector<torch::Tensor> clones;
    for (const auto& [name, tensor] : tensors) clones.push_back(tensor.contiguous());
  };
  ASSERT_NE(WithMemory(24 * kMiB, clone_all), 0) << "the limit is none";
  EXPECT_EQ(WithMemory(24 * kMiB, [&] { WriteSafetensors(folder_ / "t", tensors); }), 0);
}

std::string File(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

TEST(Safetensors, CorruptFilesAreErrorsThatNameTheFile) {
  const std::string eight(8, '\0');
  const std::string cases[] = {
      "",
      "1234567",
      std::string(8, '\xff') + "{}",
      File("not json", ""),
      File(R"({"x": 1})", ""),
      File(R"({"x": {"dtype": "F31", "shape": [2], "data_offsets": [0, 8]}})", eight),
      File(R"({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", eight),
      File(R"({"x": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})", eight),
      File(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})", eight),
      File(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", "short"),
      File(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", eight + "more"),
      File(R"({"x": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 0]}})",
           ""),
      File(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0]}})", eight),
  };
  for (const std::string& bytes : cases) {
    EXPECT_THAT([&] { ViewSafetensors(bytes, "model.safetensors"); },
                ThrowsMessage<Error>(HasSubstr("model.safetensors")))
        << bytes;
  }
}

TEST_F(Checkpoints, AppearUnderTheirNameWithAManifest) {
  const CheckpointInfo info = Write(9, 2);
  EXPECT_EQ(info.path, folder_ / "step-9-attempt-2");
  const std::string manifest = Bytes(info.path / "manifest.json");
  EXPECT_EQ(info.digest, "sha256:" + Sha256::HexOf(manifest));
  const auto json = nlohmann::json::parse(manifest);
  EXPECT_EQ(json["format"], "attune-checkpoint/1");
  EXPECT_EQ(json["step"], 9);
  EXPECT_EQ(json["world_size"], 2);
  EXPECT_THAT(json["files"], SizeIs(2));
  EXPECT_EQ(json["files"]["tensors.safetensors"]["sha256"],
            Sha256::HexOf(Bytes(info.path / "tensors.safetensors")));

  std::int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(info.path)) bytes += entry.file_size();
  EXPECT_EQ(info.bytes, bytes);
}

TEST_F(Checkpoints, LeaveNothingWithoutCommit) {
  {
    CheckpointWriter writer(folder_, 1, 1, 1);
    writer.WriteText("half", "written");
    ASSERT_THAT(Names(), SizeIs(1));
    EXPECT_EQ(Names()[0][0], '.');
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(Checkpoints, AnExistingOneIsNeverReplaced) {
  Write(3);
  EXPECT_THAT([this] { Write(3); }, ThrowsMessage<Error>(HasSubstr("step-3-attempt-1")));
  EXPECT_THAT(Names(), SizeIs(1));
}

TEST_F(Checkpoints, AFlippedByteIsAnErrorThatNamesTheFile) {
  const CheckpointInfo info = Write(1);
  const fs::path file = info.path / "tensors.safetensors";
  std::string bytes = Bytes(file);
  bytes.back() ^= 1;
  Overwrite(file, bytes);
  EXPECT_THAT([&] { CheckpointReader(info.path).ReadTensors("tensors"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("tensors.safetensors"), HasSubstr("altered"))));
}

TEST_F(Checkpoints, AShortenedOrMissingFileIsAnError) {
  const CheckpointInfo info = Write(1);
  Overwrite(info.path / "notes.txt", "{}");
  EXPECT_THAT([&] { CheckpointReader(info.path).ReadText("notes.txt"); },
              ThrowsMessage<Error>(HasSubstr("has 2 bytes")));
  EXPECT_THAT([&] { CheckpointReader(info.path).ReadText("other"); },
              ThrowsMessage<Error>(HasSubstr("no file other")));
}

TEST_F(Checkpoints, RefuseAnUnexpectedManifest) {
  const CheckpointInfo info = Write(1);
  EXPECT_EQ(CheckpointReader(info.path, info.digest).step(), 1);
  EXPECT_THROW(CheckpointReader(info.path, "sha256:0"), Error);
  EXPECT_THAT([this] { CheckpointReader{folder_}; },
              ThrowsMessage<Error>(HasSubstr("no manifest.json")));
}

TEST_F(Checkpoints, AManifestCannotNameFilesElsewhere) {
  const CheckpointInfo info = Write(1);
  Overwrite(info.path / "manifest.json",
            R"({"format": "attune-checkpoint/1", "step": 1, "world_size": 1,
                "files": {"../secret": {"bytes": 1, "sha256": ""}}})");
  EXPECT_THAT([&] { CheckpointReader{info.path}; }, ThrowsMessage<Error>(HasSubstr("../secret")));
}

TEST_F(Checkpoints, RefuseToWriteAFileTwice) {
  CheckpointWriter writer(folder_, 1, 1, 1);
  writer.Write("model", TensorMap{{"x", torch::arange(6)}});
  EXPECT_THAT(
      [&] {
        writer.Write("model", TensorMap{{"y", torch::arange(6)}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("model.safetensors"), HasSubstr("already"))));
}

TEST_F(Checkpoints, HoldShardsOfEveryRank) {
  CheckpointWriter writer(folder_, 1, 1, /*world_size=*/2);
  writer.Write("layer", TensorMap{{"of_all", torch::arange(6)}});
  for (int rank = 0; rank < 2; ++rank) {
    ShardWriter shard(writer.folder(), rank);
    shard.Write("layer", TensorMap{{"own", torch::full({2}, rank)}});
  }
  writer.Write("attune-config", Config({{"lr", 0.5}}));
  const CheckpointReader reader(writer.Commit().path);
  EXPECT_TRUE(reader.ReadTensors("layer").contains("of_all"));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(reader.Shard(rank).config(), reader.config());
    EXPECT_TRUE(reader.Shard(rank).ReadTensors("layer").at("own").equal(torch::full({2}, rank)));
  }
  EXPECT_THAT([&] { reader.Shard(2); }, ThrowsMessage<Error>(HasSubstr("2 ranks")));
  EXPECT_THAT([&] { ShardWriter(folder_ / "elsewhere", 1); },
              ThrowsMessage<Error>(AllOf(HasSubstr("rank 1"), HasSubstr("elsewhere"))));
}

TEST_F(Checkpoints, OfTheProgramsFilesAreCopiedAndChecked) {
  const fs::path own = folder_ / "own";
  fs::create_directory(own);
  Overwrite(own / "weights.bin", "1234");
  CheckpointWriter writer(folder_, 1, 1, 1);
  writer.Write(Checkpoint::FromDirectory(own));
  const CheckpointReader reader(writer.Commit().path);
  EXPECT_EQ(Bytes(reader.AsDirectory() / "weights.bin"), "1234");
  EXPECT_EQ(Bytes(own / "weights.bin"), "1234");

  Overwrite(reader.folder() / "weights.bin", "1235");
  EXPECT_THAT([&] { reader.AsDirectory(); }, ThrowsMessage<Error>(HasSubstr("weights.bin")));
  EXPECT_THAT([&] { Checkpoint::FromDirectory(folder_ / "none"); },
              ThrowsMessage<Error>(HasSubstr("/none: ")));
  fs::create_directory_symlink(own, own / "again");
  EXPECT_THAT([&] { Checkpoint::FromDirectory(own); }, ThrowsMessage<Error>(HasSubstr("again")));
}

TEST_F(Checkpoints, HoldFilesInFolders) {
  CheckpointWriter writer(folder_, 1, 1, 1);
  writer.Write("nets/policy", TensorMap{{"x", torch::arange(6)}});
  ShardWriter(writer.folder(), 0).Write("nets/policy", TensorMap{{"own", torch::arange(2)}});
  writer.WriteText("tokenizer/vocabulary.txt", "words");
  fs::create_directories(writer.folder() / "raw" / "deep");
  Overwrite(writer.folder() / "raw" / "deep" / "weights.bin", "1234");
  const CheckpointReader reader(writer.Commit().path);

  const auto files = nlohmann::json::parse(Bytes(reader.folder() / "manifest.json"))["files"];
  std::vector<std::string> names;
  for (const auto& [name, listed] : files.items()) names.push_back(name);
  EXPECT_THAT(names,
              UnorderedElementsAre("nets/policy.rank-0.safetensors", "nets/policy.safetensors",
                                   "raw/deep/weights.bin", "tokenizer/vocabulary.txt"));
  EXPECT_TRUE(reader.ReadTensors("nets/policy").at("x").equal(torch::arange(6)));
  EXPECT_TRUE(reader.Shard(0).ReadTensors("nets/policy").contains("own"));
  EXPECT_TRUE(reader.Has("tokenizer/vocabulary.txt"));
  EXPECT_EQ(reader.ReadText("tokenizer/vocabulary.txt"), "words");

  CheckpointWriter copy(folder_, 2, 1, 1);
  copy.Write(Checkpoint::FromDirectory(reader.folder() / "raw"));
  EXPECT_EQ(CheckpointReader(copy.Commit().path).ReadText("deep/weights.bin"), "1234");

  Overwrite(reader.folder() / "raw" / "deep" / "weights.bin", "1235");
  EXPECT_THAT([&] { reader.AsDirectory(); },
              ThrowsMessage<Error>(HasSubstr("raw/deep/weights.bin")));
}

TEST_F(Checkpoints, RefuseNamesThatLeadOut) {
  CheckpointWriter writer(folder_, 1, 1, 1);
  for (const char* name : {"../outside", "nets/../../outside", "/tmp/outside", "nets//x", ""}) {
    EXPECT_THROW(writer.WriteText(name, "x"), Error) << name;
    EXPECT_THROW(CheckpointReader(Write(2).path).ReadText(name), Error) << name;
    fs::remove_all(folder_ / "step-2-attempt-1");
  }
  EXPECT_THROW(writer.Write("../outside", TensorMap{{"x", torch::arange(6)}}), Error);
  EXPECT_FALSE(fs::exists(folder_ / "outside"));
  EXPECT_FALSE(fs::exists(folder_ / "outside.safetensors"));
}

TEST_F(Checkpoints, RefuseLinks) {
  for (const bool to_folder : {false, true}) {
    CheckpointWriter writer(folder_, 1, 1, 1);
    fs::create_directory(writer.folder() / "nets");
    if (to_folder) {
      fs::create_directory_symlink("/etc", writer.folder() / "nets" / "link");
    } else {
      fs::create_symlink("/etc/hostname", writer.folder() / "nets" / "link");
    }
    EXPECT_THAT([&] { writer.Commit(); }, ThrowsMessage<Error>(HasSubstr("nets/link")));
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(Checkpoints, TemporaryFoldersAreRemovedWithTheirScope) {
  fs::path path;
  {
    CheckpointDirectory first;
    const CheckpointDirectory directory = std::move(first);
    path = directory.path();
    Overwrite(path / "model.pt", "x");
  }
  EXPECT_FALSE(fs::exists(path));
}

// Saves in a process that is killed at its `n`th system call. Returns false if saving ended before
// that.
bool SavesUntilSystemCall(int n, const std::function<void()>& save) {
  const pid_t pid = fork();
  if (pid == 0) {
    at::set_num_threads(1);  // a forked process has no thread pool
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    save();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL), 0);
  for (int i = 0; i < 2 * n && WIFSTOPPED(status);
       ++i) {  // the process stops before and after each system call
    ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
    waitpid(pid, &status, 0);
  }
  if (!WIFSTOPPED(status)) return false;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return true;
}

TEST_F(Checkpoints, AKillAtAnySystemCallLeavesACompleteOneOrNone) {
  const std::vector<std::string> before = {Write(1).path.filename()};
  int absent = 0;
  int whole = 0;
  for (int n = 1;; ++n) {
    const bool killed = SavesUntilSystemCall(n, [this] { Write(2); });
    RemoveUnfinished(folder_, /*attempt=*/2);
    if (Names() == before) {
      ++absent;
    } else {
      EXPECT_THAT(Names(), UnorderedElementsAre("step-1-attempt-1", "step-2-attempt-1"));
      const CheckpointReader reader(folder_ / "step-2-attempt-1");
      reader.AsDirectory();
      EXPECT_TRUE(reader.ReadTensors("tensors").at("x").equal(torch::arange(6)));
      ++whole;
      fs::remove_all(folder_ / "step-2-attempt-1");
    }
    ASSERT_LT(n, 1000) << "it never ends";
    if (!killed) break;
  }
  EXPECT_GT(absent, 10);
  EXPECT_GT(whole, 1);
}

TEST_F(Checkpoints, NextAttemptFollowsTheHighestInTheFolder) {
  EXPECT_EQ(NextAttempt(folder_ / "absent"), 1);
  for (const char* name :
       {"step-7-attempt-2", ".attempt-4-x", "step-1-attempt-3-old", "step--attempt-8",
        "step-1.attempt-8", "xstep-1-attempt-8", "step-1-attempt-", "attempt-8",
        "step-1-attempt-8x", "step-1-attempt--8", ".attempt-1234567890"})
    fs::create_directory(folder_ / name);
  EXPECT_EQ(NextAttempt(folder_), 5);
}

TEST(Safetensors, AnyBytesAreTensorsOrAnErrorThatNamesTheFile) {
  const char* given = std::getenv("ATTUNE_SEED");
  const unsigned seed = given == nullptr ? std::random_device()() : std::stoul(given);
  SCOPED_TRACE("ATTUNE_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string good =
      File(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},)"
           R"( "y": {"dtype": "I8", "shape": [2, 3], "data_offsets": [8, 14]}})",
           std::string(14, '\1'));
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = good;
    for (unsigned change = random() % 4 + 1; change > 0; --change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
      if (random() % 8 == 0) bytes.resize(random() % bytes.size() + 1);
    }
    try {
      for (const auto& [name, tensor] : ViewSafetensors(bytes, "t")) tensor.clone();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith("t: "));
    }
  }
}

}  // namespace
}  // namespace attune::inline sdk::trainable
