// The shortest trial there is: one report, and the end.

#include <attune/attune.h>

#include <tuple>

int main(int argc, char** argv) {
  return attune::Main(argc, argv, [](attune::Context& context) {
    std::ignore = context.Report({{"loss", context.config().Real("x")}});
  });
}
