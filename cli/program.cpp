// The sparsight program: `sparsight <verb> ...`.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "cli/usage.h"
#include "cli/verbs.h"
#include "sparsight/cli/main.h"

namespace sparsight {
namespace {

// A file that is opened while one of the standard descriptors is closed would take its number, and get the log.
void open_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) == -1) open("/dev/null", O_RDWR);  // takes the lowest free number: this one
}

int run(int argc, char** argv) {
  CLI::App app("Train, evaluate, explain and deploy mixture-of-experts image models.", "sparsight");
  app.require_subcommand(1);
  app.footer("Help and examples for a verb: sparsight <verb> --help");
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

int main(int argc, char** argv, const std::function<void()>& register_components) {
  open_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails like one on a full disk
  return cli::exit_code_of([&] {
    if (register_components) register_components();
    return run(argc, argv);
  });
}

}  // namespace sparsight
