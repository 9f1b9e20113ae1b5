#include "attune/metrics.h"

#include <iomanip>
#include <sstream>

namespace attune::inline sdk {

std::string ToText(const Metrics& metrics) {
  std::ostringstream out;
  out << std::setprecision(6);
  for (const auto& [name, value] : metrics) {
    if (out.tellp() > 0) out << "  ";
    out << name << " " << value;
  }
  return out.str();
}

}  // namespace attune::inline sdk
