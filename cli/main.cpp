// The sparsight program: `sparsight <verb> ...`. Exit codes: 0 done, 1 the work failed, 2 wrong usage.
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "cli/spin_briefly.h"
#include "cli/usage.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"

namespace sparsight {
namespace {

// torch's errors go on with the places in its sources.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// torch's allocator throws no std::bad_alloc.
bool lacks_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) ||
         std::string(error.what()).find("you tried to allocate") != std::string::npos;
}

int run(int argc, char** argv) {
  CLI::App app("Train, evaluate, explain and deploy image models made of routed experts.", "sparsight");
  app.require_subcommand(1);
  app.footer("Each verb explains itself with an example: sparsight <verb> --help");
  app.set_version_flag("--version", "sparsight " SPARSIGHT_VERSION);
  cli::add_global_flags(app);
  cli::add_train(app);
  cli::add_eval(app);
  cli::add_predict(app);
  cli::add_explain(app);
  cli::add_report(app);
  cli::add_reproduce(app);
  cli::add_moe(app);
  cli::add_data(app);
  cli::add_config(app);
  cli::add_bench(app);
  cli::add_doctor(app);
  cli::add_version(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    fail_usage(cli::describe_usage_error(app, error));
  }
  return 0;
}

}  // namespace
}  // namespace sparsight

int main(int argc, char** argv) {
  sparsight::cli::spin_briefly(argc, argv);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails like one on a full disk
  try {
    const int code = sparsight::run(argc, argv);
    if (!std::cout.flush()) sparsight::fail("cannot write to the standard output; is it closed, or its disk full?");
    return code;
  } catch (const sparsight::Error& error) {
    sparsight::log_line("error", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    const std::string what = sparsight::first_line(error.what());
    if (sparsight::lacks_memory(error))
      sparsight::log_line("error", "not enough memory (" + what + "); make the model or what it is given smaller");
    else
      sparsight::log_line("internal error", what);
    return 1;
  }
}
