#include "attune/collectives.h"

#include <torch/types.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <sstream>
#include <utility>
#include <vector>

#include "attune/error.h"
#include "trainable/distributed/process_groups.h"

namespace attune::inline sdk {
namespace {

const char* NameOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMean:
      return "mean";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
  }
  throw Error("ReduceOp: invalid value");
}

// Gloo has no mean; it is computed as a sum and divided afterwards.
c10d::ReduceOp OperationOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return c10d::ReduceOp::SUM;
    case ReduceOp::kMin:
      return c10d::ReduceOp::MIN;
    case ReduceOp::kMax:
      return c10d::ReduceOp::MAX;
    case ReduceOp::kProduct:
      return c10d::ReduceOp::PRODUCT;
  }
  throw Error("ReduceOp: invalid value");
}

std::string Describe(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << tensor.sizes() << " on "
       << c10::DeviceTypeName(tensor.device().type(), /*lower_case=*/true);
  return text.str();
}

void CheckDefined(const char* name, const at::Tensor& tensor) {
  if (!tensor.defined()) throw Error(std::string(name) + ": the tensor is not defined");
}

void CheckReducible(const char* name, const at::Tensor& tensor, ReduceOp op) {
  CheckDefined(name, tensor);
  if (tensor.scalar_type() == at::kBool) {
    throw Error(std::string(name) +
                ": a tensor of type Bool cannot be reduced; use .to(torch::kByte)");
  }
  if (op == ReduceOp::kMean && !tensor.is_floating_point()) {
    throw Error(std::string(name) + ": the mean of a tensor of type " +
                c10::toString(tensor.scalar_type()) +
                " is not an integer; use ReduceOp::kSum, or .to(torch::kFloat)");
  }
}

void CheckRoot(const char* name, const Context& context, int root) {
  if (root >= 0 && root < context.world_size()) return;
  throw Error(std::string(name) + ": root: " + std::to_string(root) +
              " is not a rank; ranks are 0 to " + std::to_string(context.world_size() - 1));
}

// Converts to a form that the group can send: contiguous, and of a supported type.
at::Tensor ToWire(const at::Tensor& tensor) {
  const at::Tensor contiguous = tensor.detach().contiguous();
  return contiguous.scalar_type() == at::kBool ? contiguous.view(at::kByte) : contiguous;
}

// Copies the result in `wire` back, unless `wire` shares the memory of `tensor`.
void CopyBack(at::Tensor& tensor, const at::Tensor& wire) {
  if (wire.is_alias_of(tensor)) return;
  tensor.detach().copy_(wire.view(tensor.scalar_type()));
}

void SendFromRoot(c10d::ProcessGroup& group, const at::Tensor& tensor, int root,
                  const CollectiveOptions& options) {
  if (tensor.numel() == 0) return;
  std::vector<at::Tensor> tensors{tensor};
  c10d::BroadcastOptions broadcast;
  broadcast.rootRank = root;
  broadcast.timeout = options.timeout;
  group.broadcast(tensors, broadcast)->wait();
}

}  // namespace

bool IsDistributed(const Context& context) { return context.world_size() > 1; }

void AllReduce(Context& context, at::Tensor& tensor, ReduceOp op,
               const CollectiveOptions& options) {
  CheckReducible("AllReduce", tensor, op);
  if (!IsDistributed(context)) return;
  context.groups().AwaitAll(
      "AllReduce", "AllReduce of the " + std::string(NameOf(op)) + " of " + Describe(tensor),
      options.timeout);
  if (tensor.numel() == 0) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors{ToWire(tensor)};
  c10d::AllreduceOptions allreduce;
  allreduce.reduceOp = OperationOf(op);
  allreduce.timeout = options.timeout;
  context.process_group().allreduce(tensors, allreduce)->wait();
  if (op == ReduceOp::kMean) tensors[0].div_(context.world_size());
  CopyBack(tensor, tensors[0]);
}

void Broadcast(Context& context, at::Tensor& tensor, int root, const CollectiveOptions& options) {
  CheckDefined("Broadcast", tensor);
  CheckRoot("Broadcast", context, root);
  if (!IsDistributed(context)) return;
  context.groups().AwaitAll(
      "Broadcast", "Broadcast from rank " + std::to_string(root) + " of " + Describe(tensor),
      options.timeout);
  const at::NoGradGuard no_grad;
  const at::Tensor wire = ToWire(tensor);
  SendFromRoot(context.process_group(), wire, root, options);
  CopyBack(tensor, wire);
}

at::Tensor AllGather(Context& context, const at::Tensor& tensor, const CollectiveOptions& options) {
  CheckDefined("AllGather", tensor);
  const at::NoGradGuard no_grad;
  if (!IsDistributed(context)) return tensor.detach().unsqueeze(0).clone();
  context.groups().AwaitAll("AllGather", "AllGather of " + Describe(tensor), options.timeout);
  std::vector<at::Tensor> inputs{ToWire(tensor)};
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape.insert(shape.begin(), context.world_size());
  const at::Tensor gathered = at::empty(shape, inputs[0].options());
  if (tensor.numel() > 0) {
    std::vector<std::vector<at::Tensor>> outputs{gathered.unbind(0)};
    c10d::AllgatherOptions allgather;
    allgather.timeout = options.timeout;
    context.process_group().allgather(outputs, inputs, allgather)->wait();
  }
  return gathered.view(tensor.scalar_type());
}

at::Tensor ReduceScatter(Context& context, const at::Tensor& tensor, ReduceOp op,
                         const CollectiveOptions& options) {
  CheckReducible("ReduceScatter", tensor, op);
  const std::int64_t world_size = context.world_size();
  if (tensor.dim() == 0 || tensor.size(0) != world_size) {
    throw Error("ReduceScatter: the tensor's first dimension must be the number of ranks, " +
                std::to_string(world_size) + "; it is " + Describe(tensor));
  }
  const at::NoGradGuard no_grad;
  if (!IsDistributed(context)) return tensor.detach().select(0, 0).clone();
  context.groups().AwaitAll(
      "ReduceScatter",
      "ReduceScatter of the " + std::string(NameOf(op)) + " of " + Describe(tensor),
      options.timeout);
  at::Tensor input = ToWire(tensor);
  at::Tensor output = at::empty_like(input.slice(0, 0, 1));
  if (tensor.numel() == 0) return output.squeeze(0);
  c10d::ReduceScatterOptions reduce_scatter;
  reduce_scatter.reduceOp = OperationOf(op);
  reduce_scatter.timeout = options.timeout;
  context.process_group()._reduce_scatter_base(output, input, reduce_scatter)->wait();
  if (op == ReduceOp::kMean) output.div_(world_size);
  return output.squeeze(0);
}

void Barrier(Context& context, const CollectiveOptions& options) {
  if (!IsDistributed(context)) return;
  context.groups().AwaitAll("Barrier", "Barrier", options.timeout);
}

std::string BroadcastObject(Context& context, const std::string& text, int root,
                            const CollectiveOptions& options) {
  CheckRoot("BroadcastObject", context, root);
  if (!IsDistributed(context)) return text;
  context.groups().AwaitAll("BroadcastObject", "BroadcastObject from rank " + std::to_string(root),
                            options.timeout);
  at::Tensor size = at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong);
  SendFromRoot(context.process_group(), size, root, options);
  std::string received = context.rank() == root ? text : std::string(size.item<std::int64_t>(), 0);
  SendFromRoot(context.process_group(),
               at::from_blob(received.data(), {std::ssize(received)}, at::TensorOptions(at::kByte)),
               root, options);
  return received;
}

Config BroadcastObject(Context& context, const Config& config, int root,
                       const CollectiveOptions& options) {
  return Config::FromJson(BroadcastObject(context, config.ToJson(), root, options));
}

}  // namespace attune::inline sdk
