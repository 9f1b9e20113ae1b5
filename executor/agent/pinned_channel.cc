#include "executor/agent/pinned_channel.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#include "tls/certificate.h"

namespace attune::agent {

class PinnedServer::UnexpectedFingerprint {
 public:
  void Set(std::string other) {
    const std::lock_guard lock(mutex_);
    other_ = std::move(other);
  }
  std::string Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(other_, {});
  }

 private:
  std::mutex mutex_;
  std::string other_;
};

class PinnedServer::Verifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  Verifier(std::string fingerprint, std::shared_ptr<UnexpectedFingerprint> seen)
      : fingerprint_(std::move(fingerprint)), seen_(std::move(seen)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    const grpc::string_ref pem = request->peer_cert();
    const std::string shown =
        tls::Fingerprint(std::string_view(pem.data(), pem.size())).value_or("none");
    const bool right = shown == fingerprint_;
    seen_->Set(right ? "" : shown);
    *status = right ? grpc::Status::OK
                    : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                   "its certificate has the fingerprint " + shown);
    return true;
  }

  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string fingerprint_;
  const std::shared_ptr<UnexpectedFingerprint> seen_;
};

PinnedServer::PinnedServer(std::string fingerprint)
    : fingerprint_(std::move(fingerprint)), seen_(std::make_shared<UnexpectedFingerprint>()) {}

std::shared_ptr<grpc::ChannelCredentials> PinnedServer::Credentials() const {
  using namespace grpc::experimental;
  TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      ExternalCertificateVerifier::Create<Verifier>(fingerprint_, seen_));
  // gRPC requires root certificates even if it does not verify them. Without this one, it would
  // load the system's, which a minimal host may not have.
  if (const auto nobody = tls::MakeIdentity()) {
    options.set_certificate_provider(
        std::make_shared<StaticDataCertificateProvider>(nobody->certificate));
    options.watch_root_certs();
  }
  return TlsCredentials(options);
}

std::string PinnedServer::TakeUnexpectedFingerprint() const { return seen_->Take(); }

}  // namespace attune::agent
