// sparsight::main: the whole program in one process.
#include <c10/util/Exception.h>

#include "cli/program.h"
#include "cli/work/program_path.h"
#include "sparsight/cli/main.h"
#include "sparsight/core/log.h"
#include "sparsight/dg/algorithms/register_domain_algorithms.h"
#include "sparsight/ops/caching_allocator.h"
#include "sparsight/ops/torch_arithmetic.h"

namespace sparsight {
namespace {

// torch's warnings, which may quote names and values, become lines of the log.
class LoggedWarnings : public c10::WarningHandler {
  void process(const c10::Warning& warning) override { log_warning(warning.msg()); }
};

}  // namespace

int main(int argc, char** argv, const std::function<void()>& register_components) {
  cli::program_path();  // before any other process inherits what it reads
  static LoggedWarnings warnings;
  c10::WarningUtils::set_warning_handler(&warnings);
  use_caching_allocator();
  register_domain_algorithms(algorithms());
  return cli::run_program(argc, argv, [&] {
    hold_torch_to_arithmetic();
    if (register_components) register_components();
  });
}

}  // namespace sparsight
