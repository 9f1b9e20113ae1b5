#include "attune/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "attune/error.h"
#include "trainable/checkpoints/safetensors.h"
#include "trainable/checkpoints/sha256.h"
#include "trainable/checkpoints/state_dict.h"

namespace attune::trainable {
namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;
namespace optim = torch::optim;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "checkpoint-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  CheckpointInfo Write(std::int64_t step, int attempt = 1) const {
    CheckpointWriter writer(folder_, step, attempt, /*world_size=*/2);
    writer.Write("tensors", TensorMap{{"x", torch::arange(6)}});
    writer.WriteText("config.json", R"({"lr": 0.1})");
    return writer.Commit();
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    return names;
  }

  fs::path folder_;
};

std::string Bytes(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Overwrite(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

// Makes renameat2 refuse every flag, as on NFS and other shared file systems.
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

TEST_F(Checkpoint, IsSavedOnAFileSystemThatKnowsNoFlagsOfRename) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (!RefuseRenameFlags()) _exit(2);
    try {
      CheckpointWriter writer(folder_, 1, 1, 1);
      writer.WriteText("config.json", "{}");
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

TEST_F(Checkpoint, IsNeverReplacedByAnotherOfItsName) {
  const std::string before = Bytes(Write(1).path / "manifest.json");
  CheckpointWriter writer(folder_, 1, 1, 1);
  writer.WriteText("other", "x");
  EXPECT_THROW(writer.Commit(), Error);
  EXPECT_EQ(Bytes(folder_ / "step-1-attempt-1" / "manifest.json"), before);
}

TEST(Sha256, AgreesWithFips180) {
  EXPECT_EQ(HexSha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Checkpoint, TensorsOfEveryTypeAndShapeComeBackBitForBit) {
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

  const TensorMap again = ParseSafetensors(Bytes(folder_ / "t"), "t");
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

TEST_F(Checkpoint, DataOfASafetensorsFileIsAligned) {
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

// Runs `work` in a process that gets no more than `bytes` of memory of its own; 0 if it got
// through.
int WithMemory(std::size_t bytes, const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    torch::set_num_threads(1);  // a forked process has no pool of threads
    std::ifstream status("/proc/self/status");
    std::string word;
    std::size_t used_kib = 0;
    while (status >> word && word != "VmData:") {
    }
    status >> used_kib;
    const rlimit limit{used_kib * 1024 + bytes, RLIM_INFINITY};
    if (used_kib == 0 || setrlimit(RLIMIT_DATA, &limit) != 0) _exit(2);
    try {
      work();
    } catch (const std::exception& error) {
      std::cerr << error.what() << std::endl;
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

constexpr std::size_t kMiB = 1 << 20;

TEST_F(Checkpoint, SavingHoldsOneTensorAtATime) {
  TensorMap tensors;  // each of 8 MiB, and to be copied before it can be written
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

TEST_F(Checkpoint, LoadingHoldsNoCopyOfTheFile) {
  nn::Sequential model;
  for (int i = 0; i < 8; ++i) model->push_back(nn::Linear(1024, 2048));
  fs::path path;
  {
    CheckpointWriter writer(folder_, 1, 1, 1);
    writer.Write("model", *model);
    path = writer.Commit().path;
  }
  EXPECT_EQ(WithMemory(24 * kMiB, [&] { CheckpointReader(path).Read("model", *model); }), 0);
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
    EXPECT_THAT([&] { ParseSafetensors(bytes, "model.safetensors"); },
                ThrowsMessage<Error>(HasSubstr("model.safetensors")))
        << bytes;
  }
}

TEST_F(Checkpoint, AppearsUnderItsNameWithAManifestOfItsFiles) {
  const CheckpointInfo info = Write(9, 2);
  EXPECT_EQ(info.path, folder_ / "step-9-attempt-2");
  const std::string manifest = Bytes(info.path / "manifest.json");
  EXPECT_EQ(info.digest, "sha256:" + HexSha256(manifest));
  const auto json = nlohmann::json::parse(manifest);
  EXPECT_EQ(json["format"], "attune-checkpoint/1");
  EXPECT_EQ(json["step"], 9);
  EXPECT_EQ(json["world_size"], 2);
  EXPECT_THAT(json["files"], SizeIs(2));
  EXPECT_EQ(json["files"]["tensors.safetensors"]["sha256"],
            HexSha256(Bytes(info.path / "tensors.safetensors")));

  std::int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(info.path)) bytes += entry.file_size();
  EXPECT_EQ(info.bytes, bytes);
}

TEST_F(Checkpoint, WithoutCommitNothingStays) {
  {
    CheckpointWriter writer(folder_, 1, 1, 1);
    writer.WriteText("half", "written");
    ASSERT_THAT(Names(), SizeIs(1));
    EXPECT_EQ(Names()[0][0], '.');
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(Checkpoint, AnExistingOneIsNeverReplaced) {
  Write(3);
  EXPECT_THAT([this] { Write(3); }, ThrowsMessage<Error>(HasSubstr("step-3-attempt-1")));
  EXPECT_THAT(Names(), SizeIs(1));
}

TEST_F(Checkpoint, AFlippedByteIsAnErrorThatNamesTheFile) {
  const CheckpointInfo info = Write(1);
  const fs::path file = info.path / "tensors.safetensors";
  std::string bytes = Bytes(file);
  bytes.back() ^= 1;
  Overwrite(file, bytes);
  EXPECT_THAT([&] { CheckpointReader(info.path).ReadTensors("tensors"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("tensors.safetensors"), HasSubstr("altered"))));
}

TEST_F(Checkpoint, AShortenedOrMissingFileIsAnError) {
  const CheckpointInfo info = Write(1);
  Overwrite(info.path / "config.json", "{}");
  EXPECT_THAT([&] { CheckpointReader(info.path).config(); },
              ThrowsMessage<Error>(HasSubstr("has 2 bytes")));
  EXPECT_THAT([&] { CheckpointReader(info.path).ReadText("other"); },
              ThrowsMessage<Error>(HasSubstr("no file other")));
}

TEST_F(Checkpoint, AnotherManifestThanExpectedIsAnError) {
  const CheckpointInfo info = Write(1);
  EXPECT_EQ(CheckpointReader(info.path, info.digest).step(), 1);
  EXPECT_THROW(CheckpointReader(info.path, "sha256:0"), Error);
  EXPECT_THAT([this] { CheckpointReader{folder_}; },
              ThrowsMessage<Error>(HasSubstr("no manifest.json")));
}

TEST_F(Checkpoint, AManifestCannotNameFilesElsewhere) {
  const CheckpointInfo info = Write(1);
  Overwrite(info.path / "manifest.json",
            R"({"format": "attune-checkpoint/1", "step": 1, "world_size": 1,
                "files": {"../secret": {"bytes": 1, "sha256": ""}}})");
  EXPECT_THAT([&] { CheckpointReader{info.path}; }, ThrowsMessage<Error>(HasSubstr("../secret")));
}

nn::Sequential Net(std::int64_t hidden = 4) {
  return nn::Sequential(nn::Linear(3, hidden), nn::BatchNorm1d(hidden), nn::Linear(hidden, 1));
}

TEST_F(Checkpoint, AModulesParametersAndBuffersComeBack) {
  nn::Sequential before = Net();
  before->forward(torch::randn({8, 3}));  // moves the running statistics
  CheckpointWriter writer(folder_, 1, 1, 1);
  writer.Write("model", *before);
  const CheckpointReader reader(writer.Commit().path);

  nn::Sequential after = Net();
  reader.Read("model", *after);
  const TensorMap expected = StateOf(*before);
  const TensorMap actual = StateOf(*after);
  ASSERT_THAT(expected, SizeIs(9));
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(tensor.equal(actual.at(name))) << name;
}

TEST_F(Checkpoint, AModuleOfAnotherShapeIsRefusedAndUntouched) {
  nn::Sequential small = Net(4);
  nn::Sequential large = Net(5);
  const auto before = large->parameters()[0].clone();
  EXPECT_THAT([&] { LoadState(*large, StateOf(*small), "model.safetensors"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("0.bias"), HasSubstr("[4]"), HasSubstr("[5]"))));
  EXPECT_TRUE(before.equal(large->parameters()[0]));
}

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(std::vector<torch::Tensor>)>;

class OptimizerState : public Checkpoint,
                       public testing::WithParamInterface<std::pair<const char*, MakeOptimizer>> {};

void Train(nn::Sequential& net, optim::Optimizer& optimizer, int steps) {
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    net->forward(torch::arange(12, torch::kFloat).reshape({4, 3})).square().mean().backward();
    optimizer.step();
  }
}

TEST_P(OptimizerState, TrainingGoesOnExactlyAsWithoutAStop) {
  nn::Sequential net = Net();
  const auto optimizer = GetParam().second(net->parameters());
  Train(net, *optimizer, 3);
  CheckpointWriter writer(folder_, 3, 1, 1);
  writer.Write("model", *net);
  writer.Write("optimizer", *optimizer);
  const CheckpointReader reader(writer.Commit().path);
  Train(net, *optimizer, 3);

  nn::Sequential resumed = Net();
  const auto resumed_optimizer = GetParam().second(resumed->parameters());
  reader.Read("model", *resumed);
  reader.Read("optimizer", *resumed_optimizer);
  Train(resumed, *resumed_optimizer, 3);
  for (const auto& [name, tensor] : StateOf(*net)) {
    EXPECT_TRUE(tensor.equal(StateOf(*resumed).at(name))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerState,
    testing::Values(std::pair("Sgd", MakeOptimizer([](auto p) {
                                return std::make_unique<optim::SGD>(
                                    p, optim::SGDOptions(0.01).momentum(0.9));
                              })),
                    std::pair("Adam", MakeOptimizer([](auto p) {
                                return std::make_unique<optim::Adam>(
                                    p, optim::AdamOptions(0.01).amsgrad(true));
                              })),
                    std::pair("AdamW", MakeOptimizer([](auto p) {
                                return std::make_unique<optim::AdamW>(p, optim::AdamWOptions(0.01));
                              })),
                    std::pair("RmsProp", MakeOptimizer([](auto p) {
                                return std::make_unique<optim::RMSprop>(
                                    p, optim::RMSpropOptions(0.01).momentum(0.9).centered(true));
                              })),
                    std::pair("Adagrad", MakeOptimizer([](auto p) {
                                return std::make_unique<optim::Adagrad>(
                                    p, optim::AdagradOptions(0.01));
                              }))),
    [](const auto& test) { return test.param.first; });

TEST(OptimizerStateErrors, StateOfAnotherOptimizerIsRefused) {
  nn::Sequential net = Net();
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  optim::AdamW adamw(net->parameters(), optim::AdamWOptions(0.1));
  Train(net, adamw, 1);
  EXPECT_THAT([&] { LoadState(sgd, StateOf(adamw), "optimizer.safetensors"); },
              ThrowsMessage<Error>(HasSubstr("exp_avg")));

  nn::Sequential other = Net(5);
  optim::AdamW mismatched(other->parameters(), optim::AdamWOptions(0.1));
  EXPECT_THAT([&] { LoadState(mismatched, StateOf(adamw), "optimizer.safetensors"); },
              ThrowsMessage<Error>(HasSubstr("its parameter is")));
}

}  // namespace
}  // namespace attune::trainable
