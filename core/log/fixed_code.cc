#include "core/log/fixed_code.h"

#include <utility>
#include <vector>

namespace attune {

void FixCode(SweepSpec& spec, const std::string& digest) {
  spec.program.code->digest = digest;
  spec.program.code->patched.clear();
  std::vector<Parameter> parameters = spec.space.parameters();
  for (Parameter& parameter : parameters) parameter.patches = false;
  spec.space = SearchSpace(std::move(parameters));
}

}  // namespace attune
