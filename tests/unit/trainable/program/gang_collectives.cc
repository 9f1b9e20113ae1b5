// Collectives as a training program calls them. A wrong result fails the rank.

#include <attune/collectives.h>
#include <attune/error.h>
#include <torch/types.h>

#include <cmath>
#include <iostream>
#include <stdexcept>
#include <string>

#include "tests/unit/trainable/program/gang_modes.h"

namespace gang {
namespace {

using attune::ReduceOp;

void Expect(bool truth, const std::string& what) {
  if (!truth) throw std::runtime_error("not true: " + what);
}

void ExpectEqual(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  if (got.scalar_type() == wanted.scalar_type() && at::equal(got, wanted)) return;
  std::cout << what << " gives\n" << got << "\nand not\n" << wanted << std::endl;
  throw std::runtime_error("wrong result: " + what);
}

double Sum(int n) { return n * (n + 1) / 2.0; }

double Product(int n) { return n < 2 ? 1 : n * Product(n - 1); }

at::Tensor Pair(double a, double b) { return torch::tensor({a, b}); }

void Reduce(attune::Context& context) {
  const double value_of_rank = context.rank() + 1;
  const int n = context.world_size();
  const std::vector<std::pair<ReduceOp, at::Tensor>> wanted = {
      {ReduceOp::kSum, Pair(Sum(n), 0.5 * n)},
      {ReduceOp::kMean, Pair(Sum(n) / n, 0.5)},
      {ReduceOp::kMin, Pair(1, 0.5)},
      {ReduceOp::kMax, Pair(n, 0.5)},
      {ReduceOp::kProduct, Pair(Product(n), std::pow(0.5, n))}};
  for (const auto& [op, result] : wanted) {
    for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
      at::Tensor tensor = Pair(value_of_rank, 0.5).to(type);
      attune::AllReduce(context, tensor, op);
      ExpectEqual(tensor, result.to(type), "AllReduce " + std::to_string(static_cast<int>(op)));
    }
    at::Tensor places = at::zeros({n, 2}) + Pair(value_of_rank, 0.5);
    places[n - 1] += 0;
    ExpectEqual(attune::ReduceScatter(context, places, op), result.to(at::kFloat),
                "ReduceScatter " + std::to_string(static_cast<int>(op)));
  }
  at::Tensor integers = at::full({3}, context.rank() + 1, at::kLong);
  attune::AllReduce(context, integers);
  ExpectEqual(integers, at::full({3}, static_cast<std::int64_t>(Sum(n)), at::kLong), "of integers");

  // A non-contiguous view of a larger tensor, and a tensor that requires a gradient.
  at::Tensor whole = at::full({2, 3}, value_of_rank);
  at::Tensor columns = whole.slice(1, 0, 2);
  attune::AllReduce(context, columns);
  ExpectEqual(whole.select(1, 0), at::full({2}, Sum(n)), "AllReduce in place");
  ExpectEqual(whole.select(1, 2), at::full({2}, value_of_rank), "the columns next to it");
  at::Tensor trained = at::full({2}, value_of_rank).set_requires_grad(true);
  attune::AllReduce(context, trained);
  ExpectEqual(trained.detach(), at::full({2}, Sum(n)), "AllReduce of a parameter");

  at::Tensor numbers = at::arange(n, at::kFloat).mul_(10).unsqueeze(1) + (value_of_rank - 1);
  ExpectEqual(attune::ReduceScatter(context, numbers),
              at::full({1}, 10.0 * context.rank() * n + Sum(n) - n), "each rank's own place");
}

void Spread(attune::Context& context) {
  const int last = context.world_size() - 1;
  for (const int root : {0, last}) {
    at::Tensor tensor = at::full({2, 2}, context.rank(), at::kFloat);
    attune::Broadcast(context, tensor, root);
    ExpectEqual(tensor, at::full({2, 2}, root, at::kFloat), "Broadcast");
    at::Tensor flags = at::full({2}, context.rank() == root, at::kBool);
    attune::Broadcast(context, flags, root);
    ExpectEqual(flags, at::ones({2}, at::kBool), "Broadcast of flags");

    const std::string text =
        "{\"from\": " + std::to_string(root) + "}" + std::string(context.rank() * 5, '\0');
    const std::string wanted =
        "{\"from\": " + std::to_string(root) + "}" + std::string(root * 5, '\0');
    Expect(attune::BroadcastObject(context, text, root) == wanted, "BroadcastObject of a text");
    Expect(attune::BroadcastObject(context, std::string(), root).empty(), "of an empty one");
    const attune::Config config({{"lr", 0.1 + root}, {"layers", std::int64_t{3}}});
    Expect(attune::BroadcastObject(context, context.rank() == root ? config : attune::Config(),
                                   root) == config,
           "BroadcastObject of a configuration");
  }
  const at::Tensor row = Pair(context.rank(), -1).to(at::kFloat);
  const at::Tensor all = attune::AllGather(context, row);
  Expect(all.dim() == 2 && all.size(0) == context.world_size(), "AllGather's shape");
  for (int rank = 0; rank <= last; ++rank) {
    ExpectEqual(all[rank], Pair(rank, -1).to(at::kFloat), "AllGather");
  }
  Expect(attune::AllGather(context, at::empty({0})).size(0) == context.world_size(), "of nothing");
  attune::Barrier(context);
}

template <typename F>
void ExpectRefusal(const F& call, const std::string& part) {
  try {
    call();
  } catch (const attune::Error& error) {
    Expect(std::string(error.what()).find(part) != std::string::npos, error.what());
    return;
  }
  throw std::runtime_error("not refused: " + part);
}

void Refuse(attune::Context& context) {
  at::Tensor integers = at::ones({2}, at::kLong);
  at::Tensor flags = at::ones({2}, at::kBool);
  at::Tensor none;
  ExpectRefusal([&] { attune::AllReduce(context, integers, ReduceOp::kMean); },
                "is not an integer");
  ExpectRefusal([&] { attune::AllReduce(context, flags); }, "type Bool");
  ExpectRefusal([&] { attune::AllReduce(context, none); }, "not defined");
  ExpectRefusal([&] { attune::Broadcast(context, integers, 7); }, "root: 7");
  ExpectRefusal([&] { attune::ReduceScatter(context, at::ones({9})); }, "number of ranks");
  if (attune::IsDistributed(context)) {
    ExpectRefusal([&] { attune::Barrier(context, {.timeout = std::chrono::milliseconds(0)}); },
                  "timeout: 0");
  }
}

}  // namespace

void Collectives(attune::Context& context) {
  const std::string mode = context.config().TextOr("mode", "values");
  const attune::CollectiveOptions short_timeout{.timeout = std::chrono::seconds(1)};
  const bool is_rank_1 = context.rank() == 1;
  attune::Barrier(context);
  if (mode == "leaves") {
    if (is_rank_1) return;
    attune::Barrier(context, short_timeout);
  } else if (mode == "another_call") {
    at::Tensor tensor = at::ones({3});
    is_rank_1 ? attune::Broadcast(context, tensor, 2) : attune::AllReduce(context, tensor);
  } else if (mode == "another_shape") {
    at::Tensor tensor = at::ones({is_rank_1 ? 4 : 3});
    attune::AllReduce(context, tensor);
  } else {
    Reduce(context);
    Spread(context);
    Refuse(context);
    Expect(attune::IsDistributed(context) == (context.world_size() > 1), "IsDistributed");
  }
  if (!context.Report({{"done", 1}})) return;
}

}  // namespace gang
