#include "cli/front/start_full_program.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  sparsight::cli::set_arguments(argv);
  return sparsight::cli::run_program(argc, argv);
}
