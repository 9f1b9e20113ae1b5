#include "trainable/driver/trainer_messages.h"

#include <utility>
#include <vector>

#include "attune/error.h"
#include "json/parse.h"

namespace attune::inline sdk::trainable {
namespace {

using nlohmann::json;

// CBOR (RFC 8949), which has infinities, NaN and bytes.
std::string ToCbor(const json& value) {
  const std::vector<std::uint8_t> bytes = json::to_cbor(value);
  return {bytes.begin(), bytes.end()};
}

json FromCbor(std::string_view bytes) {
  json value = json::from_cbor(bytes, /*strict=*/true, /*allow_exceptions=*/false);
  if (!value.is_object()) throw Error("driver: a malformed message");
  return value;
}

json Bytes(const std::string& text) {
  return json::binary(std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string Text(const json& bytes) {
  const auto& binary = bytes.get_binary();
  return {binary.begin(), binary.end()};
}

json ToJson(const TrainOptions& options) {
  return {{"num_steps", options.num_steps}, {"profile", options.profile}};
}

TrainOptions ReadTrainOptions(const json& from) {
  return {.num_steps = from.at("num_steps"), .profile = from.at("profile")};
}

json ToJson(const DistributedModelOptions& options) {
  return {{"broadcast_buffers", options.broadcast_buffers},
          {"find_unused_parameters", options.find_unused_parameters},
          {"static_graph", options.static_graph},
          {"bucket_bytes", options.bucket_bytes},
          {"first_bucket_bytes", options.first_bucket_bytes},
          {"gradient_compression", options.gradient_compression}};
}

DistributedModelOptions ReadModelOptions(const json& from) {
  return {.broadcast_buffers = from.at("broadcast_buffers"),
          .find_unused_parameters = from.at("find_unused_parameters"),
          .static_graph = from.at("static_graph"),
          .bucket_bytes = from.at("bucket_bytes"),
          .first_bucket_bytes = from.at("first_bucket_bytes"),
          .gradient_compression = from.at("gradient_compression")};
}

json ToJson(const DoNothing&) { return json::object(); }
json ToJson(const DoTrain& train) { return ToJson(train.options); }
json ToJson(const DoValidate& validate) { return ToJson(validate.options); }
json ToJson(const DoStepSchedulers& step) {
  return {{"metric", step.metric ? json(*step.metric) : json()}};
}
json ToJson(const DoLoad&) { return json::object(); }
json ToJson(const DoApply& apply) {
  return {{"apply", AddressOf(apply.apply)}, {"function", Bytes(apply.function)}};
}
json ToJson(const DoSendState&) { return json::object(); }

// The index of the alternative selects the type; both ends are the same program.
decltype(Command::what) ReadWhat(std::size_t index, const json& from) {
  switch (index) {
    case 0:
      return DoNothing{};
    case 1:
      return DoTrain{ReadTrainOptions(from)};
    case 2:
      return DoValidate{ReadTrainOptions(from)};
    case 3: {
      const json& metric = from.at("metric");
      return DoStepSchedulers{metric.is_null() ? std::nullopt
                                               : std::optional<double>(metric.get<double>())};
    }
    case 4:
      return DoLoad{};
    case 5:
      return DoApply{FunctionAt<void(Training&, const std::string&, Packer&)>(from.at("apply")),
                     Text(from.at("function"))};
    case 6:
      return DoSendState{};
    default:
      throw Error("driver: an unknown command");
  }
}

}  // namespace

std::string ToBytes(const TrainerSettings& settings) {
  const TorchTrainerOptions& options = settings.options;
  return ToCbor({{"factory", AddressOf(settings.factory)},
                 {"creators", Bytes(settings.creators)},
                 {"batch_factor", settings.batch_factor},
                 {"use_fp16", options.use_fp16},
                 {"use_bf16", options.use_bf16},
                 {"batch_size", options.batch_size},
                 {"data_threads", options.data_threads},
                 {"scheduler_step_freq", options.scheduler_step_freq},
                 {"resize_rule", options.resize_rule},
                 {"model", ToJson(options.model)}});
}

TrainerSettings ReadSettings(std::string_view bytes) {
  const json from = FromCbor(bytes);
  TrainerSettings settings;
  settings.factory = FunctionAt<std::unique_ptr<Training>(
      Context&, const std::string&, const TorchTrainerOptions&)>(from.at("factory"));
  settings.creators = Text(from.at("creators"));
  settings.batch_factor = from.at("batch_factor");
  TorchTrainerOptions& options = settings.options;
  options.use_fp16 = from.at("use_fp16");
  options.use_bf16 = from.at("use_bf16");
  options.batch_size = from.at("batch_size");
  options.data_threads = from.at("data_threads");
  options.scheduler_step_freq = from.at("scheduler_step_freq");
  options.resize_rule = from.at("resize_rule");
  options.model = ReadModelOptions(from.at("model"));
  return settings;
}

std::string ToBytes(const Command& command) {
  return ToCbor({{"what", command.what.index()},
                 {"with", std::visit([](const auto& what) { return ToJson(what); }, command.what)},
                 {"number", command.number}});
}

Command ReadCommand(std::string_view bytes) {
  const json from = FromCbor(bytes);
  return {.what = ReadWhat(from.at("what"), from.at("with")), .number = from.at("number")};
}

std::string ToBytes(const Answer& answer) {
  const PassResult& pass = answer.pass;
  return ToCbor({{"epoch", answer.epoch},
                 {"applied", Bytes(answer.applied.bytes)},
                 {"sums", pass.sums},
                 {"weights", pass.weights},
                 {"samples", pass.samples},
                 {"batches", pass.batches},
                 {"times",
                  {pass.times.total, pass.times.data, pass.times.forward, pass.times.backward,
                   pass.times.communication}}});
}

Answer ReadAnswer(std::string_view bytes) {
  const json from = FromCbor(bytes);
  Answer answer;
  answer.epoch = from.at("epoch");
  answer.applied.bytes = Text(from.at("applied"));
  from.at("sums").get_to(answer.pass.sums);
  from.at("weights").get_to(answer.pass.weights);
  answer.pass.samples = from.at("samples");
  answer.pass.batches = from.at("batches");
  const json& times = from.at("times");
  answer.pass.times = {times.at(0), times.at(1), times.at(2), times.at(3), times.at(4)};
  return answer;
}

}  // namespace attune::inline sdk::trainable
