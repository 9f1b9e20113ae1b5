#include "executor/transfer/direct_sender.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "attune/v1/executor.pb.h"
#include "base/result.h"
#include "base/utf8.h"
#include "checkpoints/manifest.h"
#include "checkpoints/piece.h"
#include "code/pack.h"
#include "code/tree.h"
#include "executor/transfer/checkpoint_sender.h"
#include "logging/log.h"

namespace attune::agent {
namespace {

constexpr size_t kSendBytesMax = 1 << 30;  // per call of sendfile()
constexpr std::chrono::milliseconds kPause{100};

// The folder with the copy of the snapshot that is asked for.
Result<std::filesystem::path> CopyOf(const std::filesystem::path& code, const std::string& digest) {
  if (!checkpoints::IsDigest(digest))
    return Error{ErrorCode::kNotFound, '"' + digest + "\" is not a digest"};
  return code / digest.substr(checkpoints::kDigestPrefix.size());
}

Result<checkpoints::OpenedFile> Open(const gang::Folders& folders,
                                     const std::filesystem::path& code,
                                     const v1::DirectRequest& request) {
  if (!request.code().empty()) {
    const Result<std::filesystem::path> copy = CopyOf(code, request.code());
    if (!copy.ok()) return copy.error();
    if (request.file() != code::kManifestPart)
      return Error{ErrorCode::kNotFound, '"' + request.file() + "\" is no part of a snapshot"};
    return checkpoints::OpenFile(*copy, request.file());
  }
  const auto folder =
      CheckpointFolderPath(folders, request.sweep(), request.trial(), request.folder());
  if (!folder)
    return Error{ErrorCode::kNotFound,
                 '"' + request.folder() + "\" is not the folder of a checkpoint"};
  return checkpoints::OpenFile(*folder, request.file());
}

bool SendFile(int socket, const checkpoints::OpenedFile& opened, uint64_t offset) {
  auto at = static_cast<off_t>(offset);
  while (static_cast<uint64_t>(at) < opened.bytes) {
    const ssize_t sent = sendfile(socket, opened.file.get(), &at,
                                  std::min<uint64_t>(opened.bytes - at, kSendBytesMax));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;  // the file became shorter, or the peer is gone
  }
  return true;
}

bool SendError(int socket, const Error& error) {
  v1::DirectAnswer answer;
  answer.set_error(ValidUtf8(error.message));
  return SendMessage(socket, answer);
}

// Keeps a write to a closed connection from killing the process.
void BlockBrokenPipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

DirectSender::DirectSender(gang::Folders folders, std::filesystem::path code,
                           const std::string& address, DirectTimeouts timeouts)
    : folders_(std::move(folders)), code_(std::move(code)), timeouts_(timeouts) {
  if (address.empty()) return;
  Result<Listener> listener = Listen(address);
  if (!listener.ok()) {
    logging::Warn("this executor sends files only through the server: {}",
                  listener.error().message);
    return;
  }
  listener_ = std::move(listener.value());
  thread_ = std::thread([this] { Accept(); });
}

DirectSender::~DirectSender() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (const Reader& reader : readers_) shutdown(reader.socket.get(), SHUT_RDWR);
  }
  shutdown(listener_.socket.get(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  for (Reader& reader : readers_) reader.thread.join();
}

void DirectSender::Accept() {
  for (;;) {
    UniqueFd socket(accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int error = errno;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    if (socket)
      Admit(std::move(socket));
    else if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)
      std::this_thread::sleep_for(kPause);
  }
}

void DirectSender::Admit(UniqueFd socket) {
  std::list<Reader> gone;
  const std::lock_guard lock(mutex_);
  for (auto reader = readers_.begin(); reader != readers_.end();) {
    const auto next = std::next(reader);
    if (reader->done) gone.splice(gone.end(), readers_, reader);
    reader = next;
  }
  for (Reader& reader : gone) reader.thread.join();
  if (stop_ || readers_.size() >= kDirectReadersMax) return;
  Reader& reader = readers_.emplace_back();
  reader.socket = std::move(socket);
  reader.thread = std::thread([this, &reader] {
    Serve(reader.socket.get());
    const std::lock_guard done(mutex_);
    shutdown(reader.socket.get(), SHUT_RDWR);
    reader.done = true;
  });
}

void DirectSender::Serve(int socket) {
  BlockBrokenPipes();
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  SetTimeouts(socket, timeouts_.greeting, timeouts_.greeting);
  if (!AuthenticateFetcher(socket, key_)) return;
  SetTimeouts(socket, timeouts_.idle, timeouts_.taking);
  while (Answer(socket)) {
  }
}

bool DirectSender::Answer(int socket) {
  v1::DirectRequest request;
  if (!ReceiveMessage(socket, request)) return false;
  if (!request.code().empty() && request.file() == code::kPackPart)
    return AnswerPack(socket, request);
  const Result<checkpoints::OpenedFile> opened = Open(folders_, code_, request);
  if (!opened.ok()) return SendError(socket, opened.error());
  v1::DirectAnswer answer;
  answer.set_file_bytes(opened->bytes);
  return SendMessage(socket, answer) && SendFile(socket, *opened, request.offset());
}

bool DirectSender::AnswerPack(int socket, const v1::DirectRequest& request) {
  const Result<std::filesystem::path> copy = CopyOf(code_, request.code());
  if (!copy.ok()) return SendError(socket, copy.error());
  const Result<code::Manifest> manifest = code::ReadCopiedManifest(*copy);
  if (!manifest.ok()) return SendError(socket, manifest.error());
  v1::DirectAnswer answer;
  answer.set_file_bytes(manifest->bytes());
  if (!SendMessage(socket, answer)) return false;
  for (const code::PackPart& part :
       code::PartsOfPack(manifest->files, request.offset(), manifest->bytes())) {
    const auto opened = checkpoints::OpenFile(code::TreeOf(*copy), part.file->path);
    // The receiver compares hashes. It must get the right number of bytes.
    if (!opened.ok() || opened->bytes != part.file->bytes) return false;
    if (!SendFile(socket, *opened, part.offset)) return false;
  }
  return true;
}

}  // namespace attune::agent
