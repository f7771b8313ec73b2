// The sparsight program: `sparsight <verb> ...`. Exit codes: 0 done, 1 the work failed, 2 wrong usage.
#include <exception>
#include <iostream>

#include "cli/verbs.h"
#include "sparsight/core/error.h"

int main(int argc, char** argv) {
  using namespace sparsight;
  CLI::App app("Train, evaluate, explain and deploy image models made of routed experts.", "sparsight");
  app.require_subcommand(1);
  cli::add_version(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return error.exit_code();
  } catch (const std::exception& error) {
    std::cerr << "internal error: " << error.what() << "\n";
    return 1;
  }
}
