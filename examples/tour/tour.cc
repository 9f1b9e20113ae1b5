// Shows functions of the SDK apart from models, loaders and reports; see README.md.
//
//   ./tour --workers 2 --max-step 4 --checkpoint-dir /tmp/tour

#include <attune/attune.h>
#include <attune/sync_batch_norm.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/serialize.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "examples/tour/data.h"

namespace {

namespace fs = std::filesystem;

using attune::Config;
using attune::Context;

void Print(const Context& context, const std::string& what) {
  // Writes once, because ranks share the output.
  std::cout << "rank " + std::to_string(context.rank()) + ": " + what + "\n" << std::flush;
}

void Introduce(const Context& context) {
  std::ostringstream text;
  text << "local rank " << context.local_rank() << " of " << context.local_world_size() << " on";
  for (const c10::Device& device : context.devices()) text << " " << device;
  text << ", " << context.args().size() << " arguments, continues after step " << context.step()
       << " (time " << context.time() << ") until " << context.max_step();
  Print(context, text.str());
}

void ReadConfiguration(const Context& context) {
  const Config& config = context.config();
  const bool is_verbose = config.BoolOr("verbose", false);
  const std::string name = config.Has("name") ? config.Text("name") : "nobody";
  Config created({{"verbose", is_verbose}, {"name", name}});
  const Config read = Config::FromJson(created.ToJson());
  if (read.Bool("verbose")) Print(context, "is verbose");
  for (const auto& [parameter, value] : created.values()) Print(context, "knows " + parameter);
  for (const std::string& unread : read.Unread()) Print(context, "has not read " + unread);
}

void UseCollectives(Context& context) {
  if (!attune::IsDistributed(context)) return;
  at::Tensor chosen = torch::full({1}, context.rank() + 7);
  attune::Broadcast(context, chosen, /*root=*/1);
  // Each rank gets its part of the sum.
  const at::Tensor part = attune::ReduceScatter(context, torch::ones({context.world_size(), 2}));
  // LibTorch's process group has collectives that attune/collectives.h does not have.
  std::vector<at::Tensor> tensors{torch::ones({1})};
  context.process_group().allreduce(tensors)->wait();
  Print(context, "chose " + std::to_string(chosen.item<std::int64_t>()) + ", has " +
                     std::to_string(part.sum().item<std::int64_t>()) + " of a sum, among " +
                     std::to_string(tensors[0].item<std::int64_t>()));
}

// Ranks look up rows of a table, so gradients are sparse: they contain only these rows. The NoSync
// guard delays the synchronization until the last part of a batch.
double TrainTable(Context& context) {
  auto table =
      context.PrepareModel(torch::nn::Embedding(torch::nn::EmbeddingOptions(100, 4).sparse(true)));
  torch::optim::SGD sgd(table->parameters(), 0.1);
  std::optional<attune::NoSync> local = table.no_sync();
  table(torch::tensor({context.rank()})).sum().backward();
  local.reset();
  table(torch::tensor({context.rank() + 50})).sum().backward();
  sgd.step();
  if (table.sync_times().backward < 0) throw attune::Error("time runs backwards");
  return static_cast<double>(table->weight.grad().coalesce().indices().numel());
}

// LBFGS computes the loss several times in a step and chooses the step size by it. So all ranks
// must return the same loss.
double TrainWithLbfgs(Context& context) {
  auto line = context.PrepareModel(torch::nn::Linear(2, 1));
  torch::optim::LBFGS lbfgs(line->parameters(), torch::optim::LBFGSOptions(0.5));
  const at::Tensor x = torch::randn({16, 2});
  const auto closure = [&] {
    lbfgs.zero_grad();
    at::Tensor loss = torch::mse_loss(line(x), x.sum(1, /*keepdim=*/true));
    loss.backward();
    loss = loss.detach();
    attune::AllReduce(context, loss, attune::ReduceOp::kMean);
    return loss;
  };
  lbfgs.step(closure);
  return closure().item<double>();
}

void PrintModules(Context& context) {
  attune::SyncBatchNorm norm(4);
  std::ostringstream text;
  norm->pretty_print(text);
  const attune::GradScaler scaler({.init_scale = 1024});
  Print(context, text.str() + ", and a scaler by " + std::to_string(scaler.get_scale()));
}

void Save(Context& context, const torch::nn::Linear& model, attune::CheckpointWriter& checkpoint) {
  checkpoint.Write("nets/line", *model);  // nets/line.safetensors
  checkpoint.WriteText("notes/step.txt", "written after step " + std::to_string(context.step()));
  checkpoint.set_background(false);  // Report() returns after the checkpoint is on disk
  if (checkpoint.background())
    throw attune::Error("the checkpoint is still saved in the background");
}

void Load(const attune::CheckpointReader& checkpoint, torch::nn::Linear& model) {
  checkpoint.Read("nets/line", *model);
  if (!checkpoint.Has("notes/step.txt")) throw attune::Error("no notes");
  std::cout << checkpoint.ReadText("notes/step.txt") + ", at time " +
                   std::to_string(checkpoint.time()) + ", with " +
                   std::to_string(checkpoint.ReadTensors("nets/line").size()) + " tensors in " +
                   checkpoint.AsDirectory().filename().string() + "\n";
}

// Saves a checkpoint without a report, from a folder with files of another library.
void SaveByHand(const Context& context) {
  if (context.rank() != 0) return;
  const fs::path folder = fs::temp_directory_path() / ("tour-" + std::to_string(getpid()));
  fs::create_directories(folder / "own" / "weights");
  torch::save(torch::ones({3}), folder / "own" / "weights" / "ones.pt");
  attune::CheckpointWriter writer(folder / "checkpoints", /*step=*/1, /*attempt=*/1,
                                  /*world_size=*/1);
  writer.Write(attune::Checkpoint::FromDirectory(folder / "own"));
  attune::ShardWriter(writer.folder(), /*rank=*/0).Write("part", attune::TensorMap{});
  const attune::CheckpointInfo saved = writer.Commit();
  const attune::CheckpointReader reader(saved.path, saved.digest);
  Print(context, "saved " + std::to_string(reader.Shard(0).ReadTensors("part").size()) +
                     " tensors of rank 0 in " + saved.path.filename().string());
  fs::remove_all(folder);
}

// Training without a prepared model, for example with another library. The program must call
// SeedStep() after its setup, so that the random numbers of the next step do not depend on it.
double DrawWithoutModel(Context& context) {
  context.SeedStep();
  return torch::rand({1}).item<double>();
}

// Each step draws different numbers on each rank, and the same numbers after a resume. The SDK
// seeds them; this program does not.
void Train(Context& context) {
  Introduce(context);
  ReadConfiguration(context);
  UseCollectives(context);
  tour::ReadStream(context);
  tour::DrawByWeight(context);
  tour::SampleByHand(context);
  SaveByHand(context);
  PrintModules(context);
  Print(context, "touched " + std::to_string(TrainTable(context)) + " rows");
  Print(context, "LBFGS ends with a loss of " + std::to_string(TrainWithLbfgs(context)));

  Print(context, "draws " + std::to_string(DrawWithoutModel(context)));

  torch::nn::Linear line(1, 1);
  auto model = context.PrepareModel(line);
  if (context.resumed()) Load(*context.checkpoint(), line);
  const auto save = [&](auto& checkpoint) { Save(context, line, checkpoint); };
  attune::Metrics metrics;
  do {
    const at::Tensor noise = torch::dropout(torch::ones({16}), 0.5, /*train=*/true);
    std::ostringstream drawn;
    drawn << "step " << context.step() + 1 << " drops";
    for (const at::Tensor& value : noise.unbind())
      drawn << (value.item<double>() == 0 ? " x" : " .");
    Print(context, drawn.str());
    metrics = context.ReduceMean({{"dropped", 16 - noise.count_nonzero().item<double>()}});
    if (context.step() + 1 == 4) context.Stop();
  } while (context.Report(metrics, save));
}

}  // namespace

int main(int argc, char** argv) { return attune::Main(argc, argv, Train); }
