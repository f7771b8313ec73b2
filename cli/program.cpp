#include "cli/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "cli/usage.h"
#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

// A file that is opened while one of the standard descriptors is closed would take its number, and get the log.
void open_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) == -1) open("/dev/null", O_RDWR);  // takes the lowest free number: this one
}
}  // namespace

void add_program(CLI::App& app) {
  app.name("sparsight");
  app.description("Train, evaluate, explain and deploy mixture-of-experts image models.");
  app.require_subcommand(1);
  app.footer("Help and examples for a verb: sparsight <verb> --help");
  app.set_version_flag("--version", "sparsight " SPARSIGHT_VERSION);
  add_global_flags(app);
  add_demo(app);
  add_train(app);
  add_sweep(app);
  add_eval(app);
  add_attack(app);
  add_compare(app);
  add_predict(app);
  add_explain(app);
  add_prune(app);
  add_export(app);
  add_serve(app);
  add_inspect(app);
  add_models(app);
  add_weights(app);
  add_watch(app);
  add_report(app);
  add_reproduce(app);
  add_superclass(app);
  add_dg(app);
  add_moe(app);
  add_data(app);
  add_config(app);
  add_cost(app);
  add_bench(app);
  add_doctor(app);
  add_version(app);
  add_completion(app);
  add_help(app);
}

int run_program(int argc, char** argv, const std::function<void()>& prepare) {
  open_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails like one on a full disk
  return to_exit_code([&] {
    if (prepare) prepare();
    CLI::App app;
    add_program(app);
    return parsed(app, [&] { app.parse(argc, argv); });
  });
}

}  // namespace sparsight::cli
