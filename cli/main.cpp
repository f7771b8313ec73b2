// The sparsight program: `sparsight <verb> ...`. Exit codes: 0 done, 1 the work failed, 2 wrong usage.
#include <csignal>

#include "cli/spin_briefly.h"
#include "cli/usage.h"
#include "cli/verbs.h"

namespace sparsight {
namespace {

int run(int argc, char** argv) {
  CLI::App app("Train, evaluate, explain and deploy image models made of routed experts.", "sparsight");
  app.require_subcommand(1);
  app.footer("Each verb explains itself with an example: sparsight <verb> --help");
  app.set_version_flag("--version", "sparsight " SPARSIGHT_VERSION);
  cli::add_global_flags(app);
  cli::add_train(app);
  cli::add_eval(app);
  cli::add_compare(app);
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
  return cli::parsed(app, [&] { app.parse(argc, argv); });
}

}  // namespace
}  // namespace sparsight

int main(int argc, char** argv) {
  sparsight::cli::spin_briefly(argc, argv);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails like one on a full disk
  return sparsight::cli::exit_code_of([&] { return sparsight::run(argc, argv); });
}
