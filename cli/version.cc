#include "cli/version.h"

namespace attune::cli {

const char* const kVersion = ATTUNE_VERSION;

}  // namespace attune::cli
