#pragma once

#include "sweepfile/document.h"
#include "sweepfile/sweepfile.h"

namespace attune::sweepfile {

// ParseSweep of a text that has been read.
Parsed ParseDocument(Document document, const ParseOptions& options);

}  // namespace attune::sweepfile
