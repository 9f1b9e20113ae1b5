#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "attune/config.h"
#include "attune/context.h"

namespace at {
class Tensor;
}

// Collectives on tensors: every rank of the gang calls the same ones in the same order, from the
// thread that runs the training code. Tensors lie on the CPU (Gloo) or on the rank's device (NCCL),
// and have the same type and shape on every rank, unless it says otherwise. Nothing here is
// differentiated through.
//
// Before anything is sent the ranks see that all of them have come with the same call, by the
// gang's store, which costs a fraction of a millisecond. Each throws attune::Error when a rank has
// not called within the timeout, naming the ranks that are missing; and on every rank when they
// call different ones, saying which rank calls what. What a rank that dies meanwhile brings about
// is an exception too. In a gang of one nothing is communicated.
namespace attune::inline sdk {

// What becomes of an element that every rank has one of.
enum class ReduceOp { kSum, kMean, kMin, kMax, kProduct };

// Of any collective.
struct CollectiveOptions {
  // How long to wait for the other ranks, and then for the data.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
};

// Whether there is more than one rank.
bool IsDistributed(const Context& context);

// Every rank's `tensor` becomes the sum (mean, …) over ranks, in place. kMean takes floating point.
void AllReduce(Context& context, at::Tensor& tensor, ReduceOp op = ReduceOp::kSum,
               const CollectiveOptions& options = {});

// Every rank's `tensor` becomes that of rank `root`, in place.
void Broadcast(Context& context, at::Tensor& tensor, int root = 0,
               const CollectiveOptions& options = {});

// The tensors of all ranks, stacked by rank: [world_size, ...shape of tensor].
at::Tensor AllGather(Context& context, const at::Tensor& tensor,
                     const CollectiveOptions& options = {});

// `tensor` is [world_size, ...shape]; what is in place r of it, reduced over ranks, is what rank r
// gets: [...shape]. Each rank thus has its own part of what AllReduce gives to all, for less than
// that where the group can do it, as NCCL can.
at::Tensor ReduceScatter(Context& context, const at::Tensor& tensor, ReduceOp op = ReduceOp::kSum,
                         const CollectiveOptions& options = {});

// Returns once every rank has called it.
void Barrier(Context& context, const CollectiveOptions& options = {});

// Rank `root`'s text or configuration on every rank; what the others bring is ignored and may have
// another length. Anything else travels as text, such as JSON.
std::string BroadcastObject(Context& context, const std::string& text, int root = 0,
                            const CollectiveOptions& options = {});
Config BroadcastObject(Context& context, const Config& config, int root = 0,
                       const CollectiveOptions& options = {});

}  // namespace attune::inline sdk
