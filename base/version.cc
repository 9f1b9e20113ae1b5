#include "base/version.h"

namespace attune {

const char* const kVersion = ATTUNE_VERSION;

}  // namespace attune
