#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "cli/verbs.h"
#include "sparsight/core/error.h"

namespace sparsight::cli {
namespace {

namespace fs = std::filesystem;

// The benchmarks are a separate program, searched for next to this one (installed), in the bench/ build folder, then on
// PATH.
std::string bench_program() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<fs::path> folders{here, here.parent_path() / "bench"};
  const char* path = std::getenv("PATH");
  std::istringstream rest(path ? path : "");
  for (std::string folder; std::getline(rest, folder, ':');) folders.emplace_back(folder);
  std::error_code ignored;
  for (const fs::path& folder : folders)
    if (fs::is_regular_file(folder / "sparsight_bench", ignored)) return folder / "sparsight_bench";
  fail("the benchmarks are not built; ./dev bench builds and runs them (or configure with -DSPARSIGHT_BUILD_BENCH=ON)");
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* verb =
      add_verb(app, "bench", "Run the benchmarks on this machine",
               "sparsight bench\n"
               "sparsight bench random   (only those whose name matches)\n"
               "sparsight bench moe --tokens 49,197 --experts 8   (expert kernels against the machine's limits)");
  const auto filter = std::make_shared<std::string>(".");
  verb->add_option("filter", *filter,
                   "Run only benchmarks whose name matches; further options are passed on to them (see sparsight bench "
                   "moe --help)")
      ->type_name("REGEX");
  verb->allow_extras()->fallthrough(false);  // otherwise the program's own options would claim them
  verb->set_help_flag();
  verb->callback([verb, filter] {
    if (const auto words = verb->remaining();
        *filter == "." && !words.empty() && (words[0] == "--help" || words[0] == "-h"))
      throw CLI::CallForHelp();
    const std::string program = bench_program();
    std::vector<std::string> arguments{program, *filter};
    for (const std::string& extra : verb->remaining()) arguments.push_back(extra);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    execv(program.c_str(), pointers.data());
    fail("cannot start ", program, "; is it executable?");
  });
}

}  // namespace sparsight::cli
