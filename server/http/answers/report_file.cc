#include "server/http/answers/report_file.h"

#include <array>
#include <cstdint>
#include <utility>

#include "server/http/transport/gzip.h"

namespace attune::server {
namespace {

constexpr std::string_view kPlace = "<!-- The server puts the title and the answers here. -->";

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// Escapes all bytes except letters and digits, so that the text is safe in queries and in HTML.
std::string EscapeQuery(std::string_view text) {
  constexpr std::string_view kHexDigits = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const auto byte = static_cast<unsigned char>(c);
    if (plain) {
      escaped += c;
    } else {
      escaped += {'%', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    }
  }
  return escaped;
}

// RFC 4648, section 4.
std::string Base64(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t at = i; at < i + 3; ++at)
      group = group << 8 | (at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0);
    std::array<char, 4> letters = {kLetters[group >> 18], kLetters[group >> 12 & 63],
                                   kLetters[group >> 6 & 63], kLetters[group & 63]};
    if (i + 2 >= bytes.size()) letters[3] = '=';
    if (i + 1 >= bytes.size()) letters[2] = '=';
    text.append(letters.data(), letters.size());
  }
  return text;
}

}  // namespace

std::optional<ReportFile> ReportFile::Begin(std::string page, std::string_view title) {
  const size_t place = page.find(kPlace);
  if (place == page.npos) return std::nullopt;
  std::string end = page.substr(place + kPlace.size());
  page.resize(place);
  return ReportFile(page + "<title>" + EscapeHtml(title) + "</title>\n", std::move(end));
}

std::string ReportFile::Pack(std::string_view path, const Query& query, std::string_view body) {
  std::string packed =
      "<script type=\"application/octet-stream\" data-answer=\"" + std::string(path);
  std::string separator = "?";
  for (const auto& [name, value] : query) {
    packed += separator + name + "=" + EscapeQuery(value);
    separator = "&amp;";
  }
  return packed + "\">" + Base64(Gzip(body, GzipEffort::kSmall)) + "</script>\n";
}

}  // namespace attune::server
