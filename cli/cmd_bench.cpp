#include <unistd.h>

#include <filesystem>
#include <memory>

#include "cli/verbs.h"
#include "sparsight/core/error.h"

namespace sparsight::cli {
namespace {

namespace fs = std::filesystem;

// The benchmarks are a program of their own, beside this one (installed) or in the build folder next to this one's.
std::string bench_program() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& candidate : {here / "sparsight_bench", here.parent_path() / "bench" / "sparsight_bench"})
    if (fs::exists(candidate)) return candidate;
  fail("the benchmarks are not built; ./dev bench builds and runs them (or configure with -DSPARSIGHT_BUILD_BENCH=ON)");
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* verb = add_verb(app, "bench", "Measure how fast the parts are on this machine",
                            "sparsight bench\nsparsight bench random   (only those whose name matches)\nsparsight "
                            "bench moe      (experts against the machine's limits)");
  const auto filter = std::make_shared<std::string>(".");
  verb->add_option("filter", *filter, "Run only benchmarks whose name matches this expression")->type_name("REGEX");
  verb->callback([filter] {
    const std::string program = bench_program();
    execl(program.c_str(), program.c_str(), filter->c_str(), nullptr);
    fail("cannot start ", program, "; is it executable?");
  });
}

}  // namespace sparsight::cli
