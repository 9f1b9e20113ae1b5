#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace attune::agent {

// TLS to a server that is identified only by the fingerprint of its certificate
// (tls/certificate.h). The name and the signature of the certificate do not matter. The fingerprint
// is checked at each handshake, before any data is sent.
class PinnedServer {
 public:
  explicit PinnedServer(std::string fingerprint);

  std::shared_ptr<grpc::ChannelCredentials> Credentials() const;

  // The fingerprint from the last handshake if it was not the expected one; otherwise empty. A
  // second call returns an empty string. Thread-safe.
  std::string TakeUnexpectedFingerprint() const;

 private:
  class UnexpectedFingerprint;
  class Verifier;

  std::string fingerprint_;
  std::shared_ptr<UnexpectedFingerprint> seen_;
};

}  // namespace attune::agent
