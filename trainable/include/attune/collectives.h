#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "attune/config.h"
#include "attune/context.h"

namespace at {
class Tensor;
}

// Collectives on tensors. Every rank of the gang calls the same ones in the same order, from the
// thread that runs the training code. Tensors are on the CPU (Gloo) or on the rank's device (NCCL).
// They have the same type and shape on every rank, unless a function says otherwise. Nothing here
// is differentiable.
//
// Before data is sent, the ranks check through the gang's store that all of them made the same
// call. This costs a fraction of a millisecond. Each function throws attune::Error with the missing
// ranks if a rank has not called it within the timeout. If ranks make different calls, it throws on
// every rank and names the calls. The death of a rank during the call also throws. In a gang of
// one, nothing is communicated.
namespace attune::inline sdk {

// The operation that combines the values of all ranks.
enum class ReduceOp { kSum, kMean, kMin, kMax, kProduct };

// Options of any collective.
struct CollectiveOptions {
  // How long to wait for the other ranks to call, and again for the data.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
};

// Whether there is more than one rank.
bool IsDistributed(const Context& context);

// Replaces `tensor` on every rank with the sum (mean, …) over ranks, in place. kMean needs a
// floating-point type.
void AllReduce(Context& context, at::Tensor& tensor, ReduceOp op = ReduceOp::kSum,
               const CollectiveOptions& options = {});

// Replaces `tensor` on every rank with the tensor of rank `root`, in place.
void Broadcast(Context& context, at::Tensor& tensor, int root = 0,
               const CollectiveOptions& options = {});

// Returns the tensors of all ranks, stacked by rank: [world_size, ...shape of tensor].
at::Tensor AllGather(Context& context, const at::Tensor& tensor,
                     const CollectiveOptions& options = {});

// `tensor` is [world_size, ...shape]. Rank r gets row r of it, reduced over ranks: [...shape]. Each
// rank gets only its part of the result of AllReduce. Backends such as NCCL do this with less
// communication.
at::Tensor ReduceScatter(Context& context, const at::Tensor& tensor, ReduceOp op = ReduceOp::kSum,
                         const CollectiveOptions& options = {});

// Returns once every rank has called it.
void Barrier(Context& context, const CollectiveOptions& options = {});

// Returns the text or configuration of rank `root` on every rank. The values of other ranks are
// ignored and may differ in length. Convert other types to text, such as JSON.
std::string BroadcastObject(Context& context, const std::string& text, int root = 0,
                            const CollectiveOptions& options = {});
Config BroadcastObject(Context& context, const Config& config, int root = 0,
                       const CollectiveOptions& options = {});

}  // namespace attune::inline sdk
