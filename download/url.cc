#include "download/url.h"

#include <algorithm>

namespace attune::download {
namespace {

constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+";

// The offset of the host, after the scheme; 0: there is no scheme.
size_t HostOffset(std::string_view url) {
  const size_t scheme = url.find("://");
  return scheme == url.npos ? 0 : scheme + 3;
}

}  // namespace

std::string WithoutSecrets(std::string_view url) {
  std::string shown(url.substr(0, url.find_first_of("?#")));
  const size_t host = HostOffset(shown);
  const size_t at = std::string_view(shown).substr(0, shown.find('/', host)).rfind('@');
  if (at != shown.npos && at >= host) shown.erase(host, at + 1 - host);
  return shown;
}

std::string FileName(std::string_view url) {
  const std::string path = WithoutSecrets(url);
  const size_t slash = path.find('/', HostOffset(path));
  std::string name = slash == path.npos ? "" : path.substr(path.rfind('/') + 1);
  for (char& c : name) {
    if (kNameCharacters.find(c) == kNameCharacters.npos) c = '_';
  }
  name.erase(0, name.find_first_not_of('.'));
  // The end of a long name has the extension.
  if (name.size() > kFileNameBytesMax) name.erase(0, name.size() - kFileNameBytesMax);
  name.erase(0, name.find_first_not_of('.'));
  return name.empty() ? "data" : name;
}

}  // namespace attune::download
