// The input is a command line, one argument a line. It is parsed by the program's own declarations of verbs and flags,
// without running a verb: as in the front program, whose part they are, the verbs' work is not linked.
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>

#include "cli/catalogue.h"
#include "cli/usage.h"
#include "cli/verbs.h"
#include "tests/fuzz/fuzz.h"

namespace sparsight {

namespace {

// A command line without errors ends here, before any verb runs.
struct ParserOnly : CLI::App {
  void pre_callback() override { throw CLI::Success(); }
};

void parse(std::vector<std::string> arguments) {
  ParserOnly app;
  cli::add_program(app);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  cli::parsed(app, [&] { app.parse(arguments); });
}

}  // namespace

const nlohmann::ordered_json& cli::catalogue() {
  static const nlohmann::ordered_json names{{"settings", {"train.epochs"}},
                                            {"components",
                                             {{"domainbed", {"pacs"}},
                                              {"dg_model", {"vit"}},
                                              {"ablation", {"k"}},
                                              {"attack", {"fgsm"}},
                                              {"clustering", {"spectral_ward"}}}}};
  return names;
}

}  // namespace sparsight

// Help goes to standard output.
extern "C" int LLVMFuzzerInitialize(int*, char***) { return std::freopen("/dev/null", "w", stdout) ? 0 : 1; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> arguments;
  std::istringstream lines{std::string(sparsight::as_text(data, size))};
  for (std::string line; std::getline(lines, line);) arguments.push_back(line);
  return sparsight::try_reader([&] { sparsight::parse(arguments); });
}
