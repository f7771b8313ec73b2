#include "cli/cmd_demo.h"

#include <memory>

#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace sparsight::cli {

void add_demo(CLI::App& app) {
  auto arguments = std::make_shared<DemoArguments>();
  CLI::App* verb = add_verb(
      app, "demo", "Train a small MoE model on generated images, explain it and write its report; needs no files",
      "sparsight demo\n"
      "sparsight demo --set train.epochs=1                      (in a fifth of the time)\n"
      "sparsight demo --with-dense\n"
      "sparsight demo --print-config > my.toml");
  verb->add_option("--out", arguments->out, "Run folder to create")->capture_default_str()->type_name("DIR");
  add_set_option(*verb, arguments->overrides, "Override a setting of the demo's configuration; may be repeated");
  CLI::Option* with_dense =
      verb->add_flag("--with-dense", arguments->with_dense,
                     "Also train the dense counterpart into DIR_dense, and compare the two in the report");
  CLI::Option* overwrite = verb->add_flag("--overwrite", arguments->overwrite, "Replace existing runs in the folders");
  verb->add_flag("--print-config", arguments->print_config,
                 "Only print the demo's configuration, to start one of your own from")
      ->excludes(with_dense, overwrite);
  verb->callback([arguments] { run_demo(*arguments); });
}

}  // namespace sparsight::cli
