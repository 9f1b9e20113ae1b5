// A program with code before Main(): it reads its arguments, prints, and loads until the test opens
// the other end of its gate.

#include <attune/main.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <tuple>

int main(int argc, char** argv) {
  std::printf("loading with %s\n", argc > 1 ? argv[1] : "nothing");
  const double scale = argc > 1 ? std::atof(argv[1]) : 0;
  if (const char* gate = std::getenv("EARLY_GATE")) std::ifstream waits(gate);
  return attune::Main(argc, argv, [scale](attune::Context& context) {
    std::ignore = context.Report({{"score", scale * context.config().Real("x")}});
  });
}
