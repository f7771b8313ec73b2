// Trains with the router of nearest_centre.h: train_with_my_router CONFIG.toml RUN_FOLDER
#include <iostream>

#include <sparsight/core/config.h>
#include <sparsight/core/error.h>
#include <sparsight/moe/register_moe.h>
#include <sparsight/train/run_config.h>
#include <sparsight/train/train_run.h>

#include "nearest_centre.h"

int main(int argc, char** argv) {
  using namespace sparsight;
  if (argc != 3) {
    std::cerr << "usage: train_with_my_router CONFIG.toml RUN_FOLDER\n";
    return 2;
  }
  // One line makes the name known to configurations, --help texts and error messages. It must come first.
  routers().add<NearestCentreOptions>("nearest_centre", "the experts whose centres are nearest to the token",
                                      [](const NearestCentreOptions& options, RouterShape shape) {
                                        return std::make_shared<NearestCentreRouter>(options, shape);
                                      });
  try {
    start_training(resolve(Config::from_file(argv[1]), config_sections()), argv[2], /*overwrite=*/false, std::cout);
  } catch (const Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return error.exit_code();
  }
}
