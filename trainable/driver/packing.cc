#include "attune/packing.h"

#include <torch/types.h>

#include <cstring>

#include "attune/checkpoint.h"
#include "attune/error.h"
#include "trainable/checkpoints/mapped_file.h"
#include "trainable/checkpoints/safetensors.h"
#include "trainable/driver/message.h"
#include "trainable/driver/trainer_state.h"

namespace attune::inline sdk::trainable {

// The bytes contain everything except the tensors. The name of a tensor in the file is its index.
struct Packer::State {
  std::string bytes;
  TensorMap tensors;
};

Packer::Packer() : state_(std::make_unique<State>()) {}
Packer::~Packer() = default;
Packer::Packer(Packer&&) noexcept = default;

void Packer::Put(const void* bytes, std::size_t size) {
  state_->bytes.append(static_cast<const char*>(bytes), size);
}

void Packer::Put(const at::Tensor& tensor) {
  Pack(*this, tensor.defined());
  if (tensor.defined()) state_->tensors[std::to_string(state_->tensors.size())] = tensor;
}

Message Packer::Finish() {
  Message message{.bytes = std::move(state_->bytes), .file = {}};
  if (!state_->tensors.empty()) message.file = ToMemory(state_->tensors);
  return message;
}

struct Unpacker::State {
  std::shared_ptr<const Message> message;
  Tensors tensors;
  std::size_t taken = 0;  // number of bytes read
  std::size_t taken_tensors = 0;
  std::optional<MappedFile> file;
  TensorMap views;  // views into the file
};

Unpacker::Unpacker(std::shared_ptr<const Message> message, Tensors tensors)
    : state_(new State{.message = std::move(message), .tensors = tensors}) {}
Unpacker::~Unpacker() = default;
Unpacker::Unpacker(Unpacker&&) noexcept = default;

void Unpacker::Take(void* bytes, std::size_t size) {
  const std::string& all = state_->message->bytes;
  if (size > all.size() - state_->taken) throw Error("driver: a malformed message");
  if (size > 0) std::memcpy(bytes, all.data() + state_->taken, size);
  state_->taken += size;
}

at::Tensor Unpacker::TakeTensor() {
  if (!Unpack<bool>(*this)) return {};
  State& state = *state_;
  if (!state.file) {
    state.file.emplace(PathOf(state.message->file));
    state.views = ViewSafetensors(state.file->bytes(), "driver");
  }
  const at::Tensor& view = state.views.at(std::to_string(state.taken_tensors++));
  return state.tensors == Tensors::kViews ? view : view.clone();
}

void Codec<std::string>::Pack(Packer& packer, const std::string& text) {
  trainable::Pack(packer, text.size());
  packer.Put(text.data(), text.size());
}

std::string Codec<std::string>::Unpack(Unpacker& unpacker) {
  std::string text(trainable::Unpack<std::size_t>(unpacker), '\0');
  unpacker.Take(text.data(), text.size());
  return text;
}

void Codec<at::Tensor>::Pack(Packer& packer, const at::Tensor& tensor) { packer.Put(tensor); }
at::Tensor Codec<at::Tensor>::Unpack(Unpacker& unpacker) { return unpacker.TakeTensor(); }

using Values = std::map<std::string, Config::Value>;

void Codec<Config>::Pack(Packer& packer, const Config& config) {
  trainable::Pack<Values>(packer, config.values());
}

Config Codec<Config>::Unpack(Unpacker& unpacker) {
  return Config(trainable::Unpack<Values>(unpacker));
}

}  // namespace attune::inline sdk::trainable
