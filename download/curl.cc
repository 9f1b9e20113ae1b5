#include "download/curl.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

namespace attune::download {
namespace {

constexpr char kLibrary[] = "libcurl.so.4";

// The certificates of authorities on Debian, Fedora, openSUSE and Alpine.
constexpr std::array<const char*, 4> kCertificates{"/etc/ssl/certs/ca-certificates.crt",
                                                   "/etc/pki/tls/certs/ca-bundle.crt",
                                                   "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

std::string FindCertificates(const Curl& curl) {
  if (const char* named = std::getenv("SSL_CERT_FILE"); named != nullptr && *named != '\0')
    return named;
  const curl_version_info_data& version = *curl.version_info(CURLVERSION_NOW);
  const char* own = version.age >= CURLVERSION_SEVENTH ? version.cainfo : nullptr;
  if (own != nullptr && access(own, R_OK) == 0) return "";
  for (const char* file : kCertificates) {
    if (access(file, R_OK) == 0) return file;
  }
  return "";
}

template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Result<Curl> OpenCurl(const std::string& library) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 "downloads need libcurl: " + std::string(dlerror()) +
                     "; install libcurl4 (Debian, Ubuntu) or libcurl (Fedora, RHEL) on this host"};
  }
  Curl curl;
  const bool is_complete = Find(opened, "curl_global_init", curl.global_init) &&
                           Find(opened, "curl_version_info", curl.version_info) &&
                           Find(opened, "curl_easy_init", curl.easy_init) &&
                           Find(opened, "curl_easy_cleanup", curl.easy_cleanup) &&
                           Find(opened, "curl_easy_setopt", curl.easy_setopt) &&
                           Find(opened, "curl_easy_getinfo", curl.easy_getinfo) &&
                           Find(opened, "curl_easy_perform", curl.easy_perform) &&
                           Find(opened, "curl_easy_strerror", curl.easy_strerror);
  if (!is_complete) {
    return Error{ErrorCode::kUnavailable, library + " is not libcurl; install libcurl4"};
  }
  if (const CURLcode ready = curl.global_init(CURL_GLOBAL_DEFAULT); ready != CURLE_OK) {
    return Error{ErrorCode::kUnavailable,
                 library + " cannot be used: " + curl.easy_strerror(ready)};
  }
  curl.certificates = FindCertificates(curl);
  return curl;
}

Result<const Curl*> SharedCurl() {
  static std::mutex mutex;
  static std::optional<Curl> curl;
  const std::lock_guard lock(mutex);
  if (!curl) {
    Result<Curl> opened = OpenCurl(kLibrary);
    if (!opened.ok()) return opened.error();
    curl = *std::move(opened);
  }
  return &*curl;
}

}  // namespace attune::download
