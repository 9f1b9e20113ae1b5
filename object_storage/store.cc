#include "object_storage/store.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/message_limits.h"
#include "base/result.h"
#include "base/utf8.h"
#include "checkpoints/piece.h"
#include "json/parse.h"
#include "object_storage/errors.h"
#include "system/files.h"
#include "system/pause.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::object_storage {
namespace {

// Attempts of each request of an upload, so that one failure does not repeat a file of many parts.
// rclone repeats its own attempts that often, so 3 are 9. Other operations are repeated as a whole.
constexpr int kUploadRequestTries = 3;
constexpr int kBackoffDoublingsMax = 6;

// Whether rclone stores and lists a file under this very name.
Status CheckName(const std::string& name) {
  std::string fault = checkpoints::NameFault(name);
  if (fault.empty() && (!IsUtf8(name) || HasControlCharacters(name)))
    fault = "has control characters or invalid UTF-8; rename the file";
  if (fault.empty()) return {};
  return Invalid('"' + CutEnd(ValidUtf8(name), kPlaceBytesMax) + "\" " + fault);
}

// A manifest's name is also a filter of rclone, in which other characters have a meaning.
Status CheckManifest(const std::string& name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  if (!name.empty() && name.find_first_not_of(kAllowed) == name.npos) return CheckName(name);
  return Invalid("the manifest's name \"" + CutEnd(ValidUtf8(name), kPlaceBytesMax) +
                 "\" must have only letters, digits, `.`, `_` and `-`");
}

Result<StoredFiles> SizesOf(const UploadRequest& request) {
  StoredFiles sizes;
  std::vector<std::string> names = request.files;
  names.push_back(request.manifest);
  for (const std::string& name : names) {
    if (Status valid = CheckName(name); !valid.ok()) return valid.error();
    const auto opened = checkpoints::OpenFile(request.folder, name);
    if (!opened.ok()) return opened.error();
    sizes[name] = opened->bytes;
  }
  return sizes;
}

// Parses the output of `rclone lsjson`.
Result<StoredFiles> ParseList(const std::string& text) {
  const auto json = ParseJson<nlohmann::json>(text);
  if (!json.is_array())
    return Error{ErrorCode::kUnavailable, "rclone printed a list that is not JSON"};
  StoredFiles files;
  for (const nlohmann::json& each : json) {
    const auto path = each.find("Path");
    const auto size = each.find("Size");
    if (path == each.end() || !path->is_string() || size == each.end() ||
        !size->is_number_unsigned())
      continue;
    std::string name = path->get<std::string>();
    if (checkpoints::NameFault(name).empty()) files.emplace(std::move(name), size->get<uint64_t>());
  }
  return files;
}

}  // namespace

Result<ObjectStore> ObjectStore::Open(const Address& address, const Environment& environment,
                                      const StoreOptions& options) {
  if (Status complete = CheckEnvironment(address, environment); !complete.ok())
    return complete.error();
  Result<Rclone> rclone = FindRclone(environment);
  if (!rclone.ok()) return rclone.error();
  return ObjectStore(address, RcloneEnvironment(address, environment, options.parts), options,
                     *std::move(rclone));
}

Result<ObjectStore> ObjectStore::Open(std::string_view address, const Environment& environment,
                                      const Variables& variables, const StoreOptions& options) {
  const Result<Address> parsed = ParseAddress(address);
  if (!parsed.ok()) return parsed.error();
  return Open(*parsed, WithVariables(environment, variables), options);
}

ObjectStore::ObjectStore(Address address, Environment environment, const StoreOptions& options,
                         Rclone rclone)
    : address_(std::move(address)),
      environment_(std::move(environment)),
      options_(options),
      rclone_(std::move(rclone)) {}

Result<Uploaded> ObjectStore::Upload(const UploadRequest& request,
                                     const std::stop_token& stop) const {
  for (const Status& valid : {CheckName(request.path), CheckManifest(request.manifest)}) {
    if (!valid.ok()) return valid.error();
  }
  const Result<StoredFiles> sizes = SizesOf(request);
  if (!sizes.ok()) return sizes.error();
  std::optional<Uploaded> uploaded;
  const Status done = Repeat("cannot upload to", request.path, stop,
                             [&] { return TryUpload(request, *sizes, uploaded, stop); });
  if (!done.ok()) return done.error();
  return *uploaded;
}

// Lists the files before the manifest is sent, because rclone passes over files that have
// disappeared since.
Status ObjectStore::TryUpload(const UploadRequest& request, const StoredFiles& sizes,
                              std::optional<Uploaded>& uploaded,
                              const std::stop_token& stop) const {
  for (bool has_sent = false;; has_sent = true) {
    const Result<StoredFiles> stored = TryList(request.path, stop);
    if (!stored.ok()) return stored.error();
    const auto is_missing = [&](const std::string& name) {
      const auto found = stored->find(name);
      return found == stored->end() || found->second != sizes.at(name);
    };
    std::vector<std::string> missing;
    std::ranges::copy_if(request.files, std::back_inserter(missing), is_missing);
    const bool lacks_manifest = is_missing(request.manifest);
    if (!uploaded) {
      uploaded = Uploaded{missing.size() + (lacks_manifest ? 1 : 0),
                          lacks_manifest ? sizes.at(request.manifest) : 0};
      for (const std::string& name : missing) uploaded->bytes += sizes.at(name);
    }
    if (missing.empty()) return lacks_manifest ? Send(request, {request.manifest}, stop) : Status();
    if (has_sent)
      return Error{ErrorCode::kUnavailable, missing.front() + " is not stored with its size of " +
                                                std::to_string(sizes.at(missing.front())) +
                                                " bytes"};
    if (Status sent = Send(request, missing, stop); !sent.ok()) return sent;
  }
}

Status ObjectStore::Send(const UploadRequest& request, const std::vector<std::string>& files,
                         const std::stop_token& stop) const {
  std::string lines;
  for (const std::string& name : files) lines += name + '\n';
  const UniqueFd list(memfd_create("files", MFD_CLOEXEC));
  if (!list || !WriteAt(list.get(), lines, 0))
    return SystemError("cannot pass the names of files to rclone", errno);
  const Result<std::string> sent =
      Run({"copy", "--files-from-raw=/dev/fd/" + std::to_string(kInheritedFd), "--no-check-dest",
           std::filesystem::absolute(request.folder), RemotePath(address_, request.path)},
          stop, kUploadRequestTries, list.get());
  return sent.ok() ? Status() : sent.error();
}

Result<StoredFiles> ObjectStore::List(const std::string& path, const std::stop_token& stop) const {
  if (Status valid = CheckName(path); !valid.ok()) return valid.error();
  return Repeat("cannot list", path, stop, [&] { return TryList(path, stop); });
}

Result<StoredFiles> ObjectStore::TryList(const std::string& path,
                                         const std::stop_token& stop) const {
  const Result<std::string> text = Run({"lsjson", "--recursive", "--files-only", "--no-modtime",
                                        "--no-mimetype", "--fast-list", RemotePath(address_, path)},
                                       stop);
  if (text.ok()) return ParseList(*text);
  const bool is_missing = text.error().code == ErrorCode::kNotFound;
  if (is_missing && address_.provider == Provider::kFolder) return StoredFiles{};
  return ExplainNotFound(text.error());
}

Status ObjectStore::Remove(const std::string& path, const std::string& manifest,
                           const std::stop_token& stop) const {
  for (const Status& valid : {CheckName(path), CheckManifest(manifest)}) {
    if (!valid.ok()) return valid.error();
  }
  return Repeat("cannot delete", path, stop, [&] { return TryRemove(path, manifest, stop); });
}

Status ObjectStore::TryRemove(const std::string& path, const std::string& manifest,
                              const std::stop_token& stop) const {
  const bool is_folder = address_.provider == Provider::kFolder;
  std::error_code unknown;
  if (is_folder && !std::filesystem::exists(address_.prefix + '/' + path, unknown)) return {};
  const std::string place = RemotePath(address_, path);
  // In a bucket, `purge` also deletes earlier versions of the files, and needs the right to do so.
  const std::string remaining = is_folder ? "purge" : "delete";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"delete", "--include=" + manifest, place}, {remaining, place}}) {
    const Result<std::string> removed = Run(command, stop);
    if (!removed.ok()) return ExplainNotFound(removed.error());
  }
  return {};
}

Status ObjectStore::RemoveAbandonedParts(const std::string& path, std::chrono::hours age,
                                         const std::stop_token& stop) const {
  if (Status valid = CheckName(path); !valid.ok()) return valid;
  if (address_.provider != Provider::kS3) return {};
  return Repeat("cannot delete parts of unfinished uploads to", path, stop, [&]() -> Status {
    const Result<std::string> removed =
        Run({"backend", "cleanup", RemotePath(address_, path),
             "--option=max-age=" + std::to_string(age.count()) + 'h'},
            stop);
    return removed.ok() ? Status() : ExplainNotFound(removed.error());
  });
}

Result<Process> ObjectStore::StartReading(const std::string& path, const std::string& file,
                                          uint64_t offset) const {
  return Process::Start(
      rclone_.program,
      Arguments({"cat", "--offset=" + std::to_string(offset), RemotePath(address_, path) + file},
                1),
      environment_);
}

std::vector<std::string> ObjectStore::Arguments(std::vector<std::string> command,
                                                int request_tries) const {
  const std::string transfers = std::to_string(options_.transfers);
  for (const std::string& option : std::initializer_list<std::string>{
           "--retries=1", "--low-level-retries=" + std::to_string(request_tries),
           "--transfers=" + transfers, "--checkers=" + transfers,
           "--buffer-size=" + std::to_string(options_.buffer_bytes) + 'B',
           "--contimeout=" + std::to_string(options_.connect_timeout.count()) + "ms",
           "--timeout=" + std::to_string(options_.stall_timeout.count()) + "ms", "--stats=0",
           "--multi-thread-streams=0"})  // they would use more memory than the options allow
    command.push_back(option);
  if (options_.bytes_per_second_max != 0)
    command.push_back("--bwlimit=" + std::to_string(options_.bytes_per_second_max) + 'B');
  return command;
}

Result<std::string> ObjectStore::Run(std::vector<std::string> command, const std::stop_token& stop,
                                     int request_tries, int inherited_fd) const {
  Result<Process> process = Process::Start(
      rclone_.program, Arguments(std::move(command), request_tries), environment_, inherited_fd);
  if (!process.ok()) return process.error();
  Result<std::string> output = process->ReadAll(kListBytesMax, stop);
  if (!output.ok()) return output;
  const Result<ProcessEnd> end = process->Wait(stop);
  if (!end.ok()) return end.error();
  if (end->exit_code != 0) return RcloneError(*end, environment_);
  return output;
}

template <class Attempt>
auto ObjectStore::Repeat(std::string_view operation, const std::string& path,
                         const std::stop_token& stop, Attempt attempt) const
    -> decltype(attempt()) {
  for (int number = 1;; ++number) {
    auto result = attempt();
    if (result.ok()) return result;
    if (result.error().code != ErrorCode::kUnavailable || !WaitForAttempt(number + 1, stop))
      return ErrorOf(operation, path, result.error());
  }
}

bool ObjectStore::WaitForAttempt(int number, const std::stop_token& stop) const {
  if (number > options_.tries) return false;
  const auto delay = options_.backoff * (1 << std::min(number - 2, kBackoffDoublingsMax));
  return !PauseUnlessStopped(delay, stop);
}

Error ObjectStore::ExplainNotFound(const Error& error) const {
  if (error.code != ErrorCode::kNotFound || address_.provider == Provider::kFolder) return error;
  return Invalid("there is no bucket " + address_.bucket + "; create it, or correct the address (" +
                 error.message + ')');
}

Error ObjectStore::ErrorOf(std::string_view operation, const std::string& path,
                           const Error& error) const {
  std::string text =
      ToString(address_) + ": " + std::string(operation) + ' ' + path + ": " + error.message;
  if (error.code == ErrorCode::kDenied)
    text += "; check that the credentials are valid and may read, write and list there";
  if (error.code == ErrorCode::kStorageFull) text += "; delete objects or raise the quota";
  return {error.code, std::move(text)};
}

}  // namespace attune::object_storage
