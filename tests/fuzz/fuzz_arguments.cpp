// The input is a command line, one argument a line. It is parsed by the program's own declarations of verbs and flags,
// without running a verb. The verbs' work is not linked: the few functions that declarations call are these or in
// fuzz_verbs.
#include <algorithm>
#include <iostream>
#include <sstream>
#include <vector>

#include "cli/usage.h"
#include "cli/verbs.h"
#include "sparsight/ops/packed_experts.h"
#include "sparsight/train/run_config.h"
#include "tests/fuzz/fuzz.h"

namespace sparsight {

const std::vector<std::string>& weight_type_names() {
  static const std::vector<std::string> names{"fp32", "bf16", "int8"};
  return names;
}

namespace {

struct TrainLike {
  int64_t epochs = 1;
  void declare(OptionSet& set) { set.integer("epochs", &epochs, {1, 1000}, "passes"); }
};

void disarm(CLI::App& app) {
  app.callback(nullptr);
  app.preparse_callback(nullptr);
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) disarm(*verb);
}

void parse(std::vector<std::string> arguments) {
  CLI::App app;
  cli::add_program(app);
  disarm(app);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  cli::parsed(app, [&] { app.parse(arguments); });
}

}  // namespace

std::vector<Section> config_sections() { return {plain_section<TrainLike>("train", "settings")}; }

}  // namespace sparsight

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto& help = *new std::ostringstream;  // for as long as std::cout
  static const auto* const redirected = std::cout.rdbuf(help.rdbuf());
  (void)redirected;
  help.str("");
  std::vector<std::string> arguments;
  std::istringstream lines{std::string(sparsight::text_of(data, size))};
  for (std::string line; std::getline(lines, line);) arguments.push_back(line);
  return sparsight::try_reader([&] { sparsight::parse(arguments); });
}
