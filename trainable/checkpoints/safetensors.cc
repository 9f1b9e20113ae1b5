#include "trainable/checkpoints/safetensors.h"

#include <torch/types.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "attune/error.h"
#include "json/parse.h"

namespace attune::inline sdk::trainable {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::pair<at::ScalarType, const char*> kTypes[] = {
    {at::kDouble, "F64"},
    {at::kFloat, "F32"},
    {at::kHalf, "F16"},
    {at::kBFloat16, "BF16"},
    {at::kFloat8_e4m3fn, "F8_E4M3"},
    {at::kFloat8_e5m2, "F8_E5M2"},
    {at::kFloat8_e8m0fnu, "F8_E8M0"},
    {at::kComplexFloat, "C64"},
    {at::kLong, "I64"},
    {at::kInt, "I32"},
    {at::kShort, "I16"},
    {at::kChar, "I8"},
    {at::kUInt64, "U64"},
    {at::kUInt32, "U32"},
    {at::kUInt16, "U16"},
    {at::kByte, "U8"},
    {at::kBool, "BOOL"},
};

const char* TypeName(at::ScalarType type, const std::string& tensor) {
  for (const auto& [known, name] : kTypes) {
    if (known == type) return name;
  }
  throw Error("tensor " + tensor + ": safetensors has no type " + c10::toString(type));
}

at::ScalarType TypeOf(const std::string& name, const std::string& where) {
  for (const auto& [type, known] : kTypes) {
    if (name == known) return type;
  }
  throw Error(where + ": type " + name + " is not supported");
}

struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The number of bytes of a tensor with this shape; nullopt if the shape is impossible.
std::optional<std::uint64_t> BytesOf(const Entry& entry) {
  std::uint64_t bytes = c10::elementSize(entry.type);
  for (const std::int64_t extent : entry.shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) return 0;
    if (bytes > std::numeric_limits<std::int64_t>::max() / static_cast<std::uint64_t>(extent)) {
      return std::nullopt;
    }
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

std::vector<Entry> ParseHeader(std::string_view header, const std::string& where) {
  std::vector<Entry> entries;
  try {
    const auto json = ParseJsonOrThrow<nlohmann::json>(header);
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") continue;
      Entry entry{.name = name,
                  .type = TypeOf(value.at("dtype").get<std::string>(), where + ": tensor " + name),
                  .shape = value.at("shape").get<std::vector<std::int64_t>>()};
      const auto& offsets = value.at("data_offsets");
      entry.begin = offsets.at(0).get<std::uint64_t>();
      entry.end = offsets.at(1).get<std::uint64_t>();
      entries.push_back(std::move(entry));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(where + ": its header is not a safetensors header: " + error.what());
  }
  return entries;
}

at::Tensor TensorAt(const char* bytes, const Entry& entry) {
  const at::TensorOptions options(entry.type);
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes) % c10::elementSize(entry.type) == 0;
  // LibTorch has no read-only tensors, hence the const_cast.
  if (aligned) return at::from_blob(const_cast<char*>(bytes), entry.shape, options);
  at::Tensor tensor = at::empty(entry.shape, options);
  std::memcpy(tensor.mutable_data_ptr(), bytes, entry.end - entry.begin);
  return tensor;
}

// Whether the tensor's bytes in memory equal those in the file.
bool HasFileLayout(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

}  // namespace

void WriteSafetensors(const std::filesystem::path& file, const TensorMap& tensors) {
  WriteSafetensors(NewFile(file), tensors);
}

void WriteSafetensors(NewFile file, const TensorMap& tensors) {
  // Sorts by element size, largest first, so that the offset of each tensor is a multiple of its
  // element size.
  std::vector<std::pair<std::string, at::Tensor>> data(tensors.begin(), tensors.end());
  for (const auto& [name, tensor] : data) {
    if (!tensor.defined()) throw Error("tensor " + name + ": is undefined");
  }
  std::ranges::stable_sort(data, std::ranges::greater(),
                           [](const auto& item) { return item.second.element_size(); });
  nlohmann::json header = nlohmann::json::object();
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : data) {
    const std::uint64_t end = offset + tensor.numel() * tensor.element_size();
    header[name] = {{"dtype", TypeName(tensor.scalar_type(), name)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }

  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // keeps the data aligned for readers that map it
  if (text.size() > kMaxSafetensorsHeaderBytes) {
    throw Error("too many tensors for one file");
  }
  const std::uint64_t length = text.size();
  file.Append({reinterpret_cast<const char*>(&length), sizeof(length)});
  file.Append(text);
  at::Tensor buffer;  // shared by all tensors that must be copied
  for (const auto& [name, tensor] : data) {
    if (HasFileLayout(tensor)) continue;
    const auto bytes = static_cast<std::int64_t>(tensor.numel() * tensor.element_size());
    if (!buffer.defined() || buffer.numel() < bytes) buffer = at::empty({bytes}, at::kByte);
  }
  for (const auto& [name, tensor] : data) {
    at::Tensor contiguous = tensor.detach();
    if (!HasFileLayout(contiguous)) {
      contiguous = at::from_blob(buffer.mutable_data_ptr(), tensor.sizes(),
                                 at::TensorOptions(tensor.scalar_type()));
      contiguous.copy_(tensor.detach());
    }
    file.Append({static_cast<const char*>(contiguous.const_data_ptr()), contiguous.nbytes()});
  }
}

TensorMap ViewSafetensors(std::string_view bytes, const std::string& where) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) throw Error(where + ": too short for a safetensors file");
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMaxSafetensorsHeaderBytes || length > bytes.size() - sizeof(length)) {
    throw Error(where + ": its header has " + std::to_string(length) +
                " bytes, which is more than the file");
  }

  const std::string_view header = bytes.substr(sizeof(length), length);
  const std::string_view data = bytes.substr(sizeof(length) + length);

  TensorMap tensors;
  std::uint64_t used = 0;
  for (const Entry& entry : ParseHeader(header, where)) {
    const std::string who = where + ": tensor " + entry.name;
    if (entry.begin > entry.end || entry.end > data.size()) {
      throw Error(who + " is outside the file");
    }
    if (BytesOf(entry) != entry.end - entry.begin) {
      throw Error(who + ": its shape needs a different number of bytes");
    }
    used += entry.end - entry.begin;
    tensors.emplace(entry.name, TensorAt(data.data() + entry.begin, entry));
  }
  if (used != data.size()) throw Error(where + ": its tensors do not fill the file");
  return tensors;
}

}  // namespace attune::inline sdk::trainable
