#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace attune::agent {

// TLS towards a server that is known by the fingerprint of its certificate (tls/certificate.h) and
// by nothing else: whose name it bears and who has signed it is not asked. Checked at each
// handshake, before anything is said.
class PinnedServer {
 public:
  explicit PinnedServer(std::string fingerprint);

  std::shared_ptr<grpc::ChannelCredentials> Credentials() const;

  // The fingerprint that the server showed at the last handshake, where it was another one; empty
  // otherwise, and once it has been asked for. By any thread.
  std::string TakeOther() const;

 private:
  class Seen;
  class Verifier;

  std::string fingerprint_;
  std::shared_ptr<Seen> seen_;
};

}  // namespace attune::agent
