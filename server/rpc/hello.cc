#include "server/rpc/hello.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/version.h"
#include "core/log/joining.h"
#include "core/state/state.h"
#include "server/rpc/convert.h"

namespace attune::server {
namespace {

std::string OtherFormat(const v1::Hello& hello) {
  return "the executor has version " + (hello.version().empty() ? "?" : hello.version()) +
         " of Attune, which speaks format " + std::to_string(hello.format()) +
         "; this server has version " + kVersion + ", which speaks format " +
         std::to_string(kFormat) + "; install the same version on both";
}

// The time that the executor has left; 0, which means unlimited, if it gives none or years.
Seconds TimeLeft(const v1::Hello& hello) {
  constexpr int64_t kYearsMs = int64_t{10} * 365 * 24 * 3600 * 1000;
  const int64_t left = hello.time_left_ms();
  return Seconds(left > 0 && left < kYearsMs ? static_cast<double>(left) / 1000 : 0);
}

}  // namespace

v1::Refusal MakeRefusal(v1::Refusal::Code code, const std::string& message) {
  v1::Refusal refusal;
  refusal.set_code(code);
  refusal.set_message(message);
  return refusal;
}

std::optional<v1::Refusal> CheckHello(const v1::Hello& hello, bool may_join) {
  if (!may_join)
    return MakeRefusal(v1::Refusal::BAD_TOKEN,
                       "the token does not allow an executor to join this server; pass its "
                       "DATA-DIR/join with --token-file, or another token with the role executor");
  if (hello.ByteSizeLong() > kHelloBytesMax)
    return MakeRefusal(v1::Refusal::BAD_HELLO,
                       "the executor's first message has " + std::to_string(hello.ByteSizeLong()) +
                           " bytes; at most " + std::to_string(kHelloBytesMax) + " are allowed");
  if (hello.format() != kFormat) return MakeRefusal(v1::Refusal::VERSION, OtherFormat(hello));
  if (const Status checked = CheckJoin(ToJoinCommand(hello)); !checked.ok())
    return MakeRefusal(v1::Refusal::BAD_HELLO, checked.error().message);
  return std::nullopt;
}

JoinExecutor ToJoinCommand(const v1::Hello& hello) {
  return {.name = hello.name(),
          .instance = hello.instance(),
          .address = hello.address(),
          .resources = FromProto(hello.resources()),
          .spans = hello.spans(),
          .folder = hello.folder(),
          .labels = FromProto(hello.labels()),
          .time_left = TimeLeft(hello),
          .sweeps = FromProto(hello.sweeps())};
}

std::vector<SweepFiles> LostSweeps(const State& state, const v1::Hello& hello) {
  std::vector<SweepFiles> lost = FromProto(hello.sweeps());
  std::erase_if(lost, [&](const SweepFiles& files) {
    const bool is_known =
        files.sweep <= state.last_sweep && files.identity == IdentityOf(state, files.sweep);
    const bool is_of_this_log =
        std::ranges::find(state.parts, files.identity, &LogPart::identity) != state.parts.end();
    return is_known || !is_of_this_log;
  });
  return lost;
}

void SetSender(const v1::Hello& hello, Command& command) {
  if (auto* record = std::get_if<RecordFact>(&command)) record->executor = hello.name();
  if (auto* record = std::get_if<RecordEnvironment>(&command)) record->executor = hello.name();
  if (auto* removal = std::get_if<RecordRemoval>(&command)) removal->executor = hello.name();
  if (auto* removal = std::get_if<RecordSweepRemoval>(&command)) {
    removal->executor = hello.name();
    removal->folder = FolderOf(hello.name(), hello.folder());
  }
}

}  // namespace attune::server
