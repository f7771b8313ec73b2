#include "cli/cmd_watch.h"

#include <memory>

#include "cli/verbs.h"

namespace sparsight::cli {

void add_watch(CLI::App& app) {
  const auto arguments = std::make_shared<WatchArguments>();
  CLI::App* verb = add_verb(app, "watch", "Follow a training in the terminal: curves, speed, load of the experts",
                            "sparsight watch runs/demo\n"
                            "sparsight watch runs/demo --every 10\n"
                            "sparsight watch runs/demo --once");
  verb->add_option("run", arguments->run, "Run folder")->required()->type_name("RUN");
  verb->add_option("--every", arguments->every, "Seconds between two looks at the run")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str()
      ->type_name("SECONDS");
  verb->add_flag("--once", arguments->once, "Show how far the run is, and end");
  verb->callback([arguments] { run_watch(*arguments); });
}

}  // namespace sparsight::cli
