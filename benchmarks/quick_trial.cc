// The shortest possible trial: it reports once and ends.

#include <attune/attune.h>

#include <tuple>

int main(int argc, char** argv) {
  return attune::Main(argc, argv, [](attune::Context& context) {
    std::ignore = context.Report({{"loss", context.config().Real("x")}});
  });
}
