#include "trainable/distributed/compression.h"

#include <utility>
#include <vector>

namespace attune::inline sdk::trainable {
namespace {

class CompressionHook final
    : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  CompressionHook(c10::ScalarType type, const c10::intrusive_ptr<c10d::ProcessGroup>& group)
      : CppCommHookInterface(group), type_(type) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const at::Tensor gradients = bucket.getBufferRef();
    const int world_size = state_->getSize();
    if (gradients.is_sparse()) {
      // Sparse gradients are not compressed, because they consist mostly of indices.
      std::vector<at::Tensor> mean{gradients / world_size};
      const auto result = [mean](c10::ivalue::Future&) { return c10::IValue(mean[0]); };
      return state_->allreduce(mean)->getFuture()->then(result, c10::TensorType::get());
    }
    // Divides first: the sum may exceed the range of the smaller type even if the mean does not.
    std::vector<at::Tensor> sent{(gradients / world_size).to(type_)};
    const auto decompress = [gradients, mean = sent[0]](c10::ivalue::Future&) {
      gradients.copy_(mean);
      return c10::IValue(gradients);
    };
    return state_->allreduce(sent)->getFuture()->then(decompress, c10::TensorType::get());
  }

 private:
  const c10::ScalarType type_;
};

}  // namespace

std::unique_ptr<c10d::CommHookInterface> MakeCompressionHook(
    GradientCompression compression, const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  switch (compression) {
    case GradientCompression::kNone:
      return nullptr;
    case GradientCompression::kFp16:
      return std::make_unique<CompressionHook>(at::kHalf, group);
    case GradientCompression::kBf16:
      return std::make_unique<CompressionHook>(at::kBFloat16, group);
  }
  return nullptr;
}

}  // namespace attune::inline sdk::trainable
