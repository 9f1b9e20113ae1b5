#include "system/secret.h"

namespace attune {

bool SecretsMatch(std::string_view shown, std::string_view known) {
  unsigned difference = shown.size() == known.size() ? 0 : 1;
  for (size_t i = 0; i < shown.size(); ++i) {
    const char other = known.empty() ? '\0' : known[i % known.size()];
    difference |= static_cast<unsigned char>(shown[i] ^ other);
  }
  return difference == 0;
}

}  // namespace attune
