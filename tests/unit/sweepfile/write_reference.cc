#include <fstream>
#include <iostream>
#include <sstream>

#include "cli/algorithms.h"
#include "sweepfile/schema.h"
#include "tests/unit/sweepfile/reference.h"

// Writes docs/schemas/sweep-v1.json and the tables of docs/reference/sweep-file.md. Run by the
// target `schema`; takes the folder docs/.
int main(int argc, char** argv) {
  using namespace attune::sweepfile;  // NOLINT(build/namespaces)
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " DOCS-FOLDER\n";
    return 2;
  }
  const std::string docs = argv[1];
  const attune::Algorithms& algorithms = attune::cli::AllAlgorithms();
  std::ofstream(docs + "/schemas/sweep-v1.json") << SweepSchema(algorithms).dump(2) << "\n";

  std::stringstream read;
  read << std::ifstream(docs + "/reference/sweep-file.md").rdbuf();
  std::string page = read.str();
  const size_t begin = page.find(kReferenceBegin);
  const size_t end = page.find(kReferenceEnd);
  if (begin == page.npos || end == page.npos) {
    std::cerr << docs << "/reference/sweep-file.md lacks its lines keys: begin and keys: end\n";
    return 1;
  }
  const size_t tables = begin + kReferenceBegin.size();
  page.replace(tables, end - tables, "\n" + KeyReference(algorithms));
  std::ofstream(docs + "/reference/sweep-file.md") << page;
  return 0;
}
