// The sparsight program: `sparsight <verb> ...`.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include <c10/util/Exception.h>

#include "cli/usage.h"
#include "cli/verbs.h"
#include "sparsight/cli/main.h"
#include "sparsight/core/log.h"

namespace sparsight {
namespace {

// A file that is opened while one of the standard descriptors is closed would take its number, and get the log.
void open_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) == -1) open("/dev/null", O_RDWR);  // takes the lowest free number: this one
}
// torch's warnings, which may quote names and values, become lines of the log.
class LoggedWarnings : public c10::WarningHandler {
  void process(const c10::Warning& warning) override { log_warning(warning.msg()); }
};

int run(int argc, char** argv) {
  CLI::App app;
  cli::add_program(app);
  return cli::parsed(app, [&] { app.parse(argc, argv); });
}

}  // namespace

void cli::add_program(CLI::App& app) {
  app.name("sparsight");
  app.description("Train, evaluate, explain and deploy mixture-of-experts image models.");
  app.require_subcommand(1);
  app.footer("Help and examples for a verb: sparsight <verb> --help");
  app.set_version_flag("--version", "sparsight " SPARSIGHT_VERSION);
  add_global_flags(app);
  add_train(app);
  add_eval(app);
  add_compare(app);
  add_predict(app);
  add_explain(app);
  add_report(app);
  add_reproduce(app);
  add_moe(app);
  add_data(app);
  add_config(app);
  add_bench(app);
  add_doctor(app);
  add_version(app);
}

int main(int argc, char** argv, const std::function<void()>& register_components) {
  open_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails like one on a full disk
  static LoggedWarnings warnings;
  c10::WarningUtils::set_warning_handler(&warnings);
  return cli::exit_code_of([&] {
    if (register_components) register_components();
    return run(argc, argv);
  });
}

}  // namespace sparsight
