#include <utility>

#include "base/message_limits.h"
#include "server/rpc/sessions.h"

// The part of Sessions on object stores. It changes nothing in the log.
namespace attune::server {
namespace {

constexpr size_t kSkippedUploadsMax = 1000;  // of one connection

}  // namespace

void Sessions::OnStorage(SessionId id, const v1::StorageStatus& status) {
  Session* session = FindGreeted(id);
  if (session == nullptr) return;
  session->storage_problem = CutEnd(status.problem(), kProblemBytesMax);
  for (const std::string& path : status.skipped()) {
    if (session->skipped_uploads.size() >= kSkippedUploadsMax) break;
    session->skipped_uploads.insert(path);
  }
  if (session->stays) CheckReleases();
  ReadNextOrHold(id, *session);
}

std::optional<Sessions::StorageUse> Sessions::StorageUseOf(const std::string& executor) const {
  if (!Connected(executor)) return std::nullopt;
  const Session& session = sessions_.at(executors_.at(executor).session);
  return StorageUse{session.hello.stores(), session.storage_problem, session.skipped_uploads};
}

// An executor whose uploads are paused does not wait for them.
bool Sessions::IsUploading(const Session& session) const {
  return session.hello.stores() && session.storage_problem.empty() &&
         options_.is_uploading(session.hello.name());
}

void Sessions::CheckReleases() {
  submissions_.Post([this](const Brain& brain) {
    for (auto& [id, session] : sessions_) {
      if (!session.closing) ReleaseIfUnneeded(session, brain);
    }
  });
}

void Sessions::SetUploads(const std::string& executor, v1::Uploads uploads) {
  v1::Uploads& known = uploads_[executor];
  known = std::move(uploads);
  if (!Connected(executor)) return;
  const Session& session = sessions_.at(executors_.at(executor).session);
  if (session.revision > 0) SendUploads(session);
}

// Also sends an empty list, because the executor may have one from an earlier process of the
// server.
void Sessions::SendUploads(const Session& session) const {
  if (!session.hello.stores()) return;
  v1::ToExecutor message;
  message.mutable_uploads();
  if (const auto known = uploads_.find(session.hello.name()); known != uploads_.end())
    *message.mutable_uploads() = known->second;
  session.link->Send(std::move(message));
}

}  // namespace attune::server
