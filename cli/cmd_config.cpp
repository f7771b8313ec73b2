#include <iostream>
#include <memory>

#include "cli/config_arguments.h"
#include "cli/verbs.h"
#include "sparsight/core/config_text.h"
#include "sparsight/core/log.h"
#include "sparsight/train/run_config.h"

namespace sparsight::cli {
void add_config(CLI::App& app) {
  CLI::App* verb = add_verb(app, "config", "Look at configurations",
                            "sparsight config show configs/demo.toml --set train.epochs=2\n"
                            "sparsight config check my.toml");
  verb->require_subcommand(1);

  const auto show_arguments = std::make_shared<ConfigArguments>();
  CLI::App* show = add_verb(*verb, "show", "Print every setting with its value and where it came from",
                            "sparsight config show configs/demo.toml --set optimizer.name=sgd");
  show_arguments->declare(show);
  show->callback([show_arguments] {
    const Config config = show_arguments->read();
    std::cout << toml_with_origins(resolve(config, config_sections()), config.with_present_names(config_sections()));
  });

  const auto check_arguments = std::make_shared<ConfigArguments>();
  CLI::App* check = add_verb(*verb, "check", "Say whether a configuration is right, without running it",
                             "sparsight config check my.toml");
  check_arguments->declare(check);
  check->callback([check_arguments] {
    check_arguments->resolved();
    log_info("the configuration is right");
  });

  add_verb(*verb, "docs", "Print the reference of all settings as Markdown",
           "sparsight config docs > docs/configuration.md")
      ->callback([] { std::cout << configuration_reference(config_sections()); });
}

}  // namespace sparsight::cli
