#include "server/http/transport/certificate.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/result.h"
#include "logging/log.h"

namespace attune::server {
namespace {

// delay before unusable files that have not changed are read again
constexpr std::chrono::minutes kRetry{1};

// OpenSSL must not ask for the passphrase of a key.
int NoPassphrase(char*, int, int, void*) { return 0; }

// The error for a file that OpenSSL refused, perhaps because it is unreadable.
Error FileError(const std::string& flag, const std::filesystem::path& file,
                const std::string& why) {
  ERR_clear_error();
  errno = 0;
  const bool readable = std::ifstream(file).good();
  return {ErrorCode::kInvalid,
          flag + " " + file.string() + ": " +
              (readable ? why : "cannot be read: " + std::string(std::strerror(errno)))};
}

}  // namespace

Certificate::Certificate(std::filesystem::path certificate, std::filesystem::path key)
    : certificate_(std::move(certificate)), key_(std::move(key)) {}

Certificate::~Certificate() = default;

Result<std::shared_ptr<Certificate>> Certificate::Load(std::filesystem::path certificate,
                                                       std::filesystem::path key) {
  std::shared_ptr<Certificate> loaded(new Certificate(std::move(certificate), std::move(key)));
  if (Status read = loaded->Read(); !read.ok()) return read.error();
  return loaded;
}

Certificate::Stamp Certificate::ReadStamp() const {
  Stamp stamp{};
  for (size_t i = 0; const std::filesystem::path& file : {certificate_, key_}) {
    struct stat found {};
    ::stat(file.c_str(), &found);
    stamp[i++] = static_cast<int64_t>(found.st_ino);
    stamp[i++] = found.st_ctim.tv_sec;
    stamp[i++] = found.st_ctim.tv_nsec;
  }
  return stamp;
}

// REQUIRES: no other thread uses the object, or mutex_ is held.
Status Certificate::Read() {
  const Stamp stamp =
      ReadStamp();  // taken first, so that a change during the read is noticed next time
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return Error{ErrorCode::kUnavailable, "OpenSSL has no memory for TLS"};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_default_passwd_cb(context.get(), NoPassphrase);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_.c_str()) != 1)
    return FileError("--tls-cert", certificate_, "does not contain a PEM certificate");
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_.c_str(), SSL_FILETYPE_PEM) != 1)
    return FileError("--tls-key", key_,
                     "does not contain a PEM private key without passphrase for the "
                     "certificate in " +
                         certificate_.string());
  context_ = context;
  read_ = stamp;
  return {};
}

SSL* Certificate::Accept(int socket) {
  const std::lock_guard lock(mutex_);
  if (const Stamp now = ReadStamp();
      now != read_ && (now != refused_ || Clock::now() >= retry_at_)) {
    // The files may be half replaced. If they are unusable, the earlier certificate stays in use.
    if (const Status read = Read(); !read.ok()) {
      refused_ = now;
      retry_at_ = Clock::now() + kRetry;
      logging::Warn("the earlier TLS certificate stays in use: {}", read.error().message);
    }
  }
  SSL* tls = SSL_new(context_.get());
  if (tls == nullptr) return nullptr;
  SSL_set_fd(tls, socket);
  SSL_set_accept_state(tls);
  return tls;
}

bool Certificate::IsFor(std::string_view host) const {
  const std::lock_guard lock(mutex_);
  X509* const shown = SSL_CTX_get0_certificate(context_.get());
  if (X509_check_host(shown, host.data(), host.size(), 0, nullptr) == 1) return true;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return X509_check_ip_asc(shown, std::string(host).c_str(), 0) == 1;
}

std::string Certificate::Name() const {
  const std::lock_guard lock(mutex_);
  X509* const shown = SSL_CTX_get0_certificate(context_.get());
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(shown, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int kind = 0;
    const auto* text = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &kind));
    if (kind != GEN_DNS) continue;
    const std::string name(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                           static_cast<size_t>(ASN1_STRING_length(text)));
    if (!name.starts_with('*')) return name;
  }
  std::array<char, 256> common{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, common.data(),
                            static_cast<int>(common.size()));
  return common[0] == '*' ? "" : common.data();
}

}  // namespace attune::server
