#include <iostream>
#include <memory>

#include "cli/config_arguments.h"
#include "cli/verbs.h"
#include "sparsight/analysis/model_cost.h"
#include "sparsight/core/config_text.h"
#include "sparsight/core/log.h"
#include "sparsight/report/cost_table.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/training_setup.h"

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
  CLI::App* check =
      add_verb(*verb, "check",
               "Say whether a configuration is right: read it, open its data and build its model, without training",
               "sparsight config check my.toml");
  check_arguments->declare(check);
  check->callback([check_arguments] {
    const Json config = check_arguments->resolved();
    // The initial weights, which `fresh` makes or reads, are only of interest where they come from a file.
    const bool reads_weights = !config.at("train").at("init_from").get<std::string>().empty();
    make_training_setup(config, /*fresh=*/reads_weights);
    log_info("the configuration is right");
  });

  struct CostArguments {
    ConfigArguments config;
    std::vector<int64_t> image{3, 64, 64};
    int64_t classes = 2;
  };
  const auto cost_arguments = std::make_shared<CostArguments>();
  CLI::App* cost = add_verb(*verb, "cost",
                            "Print what the parts of a vit, wide_resnet or patch_cnn cost an image: parameters and "
                            "multiply-adds",
                            "sparsight config cost configs/demo.toml --image 1,32,32 --classes 12\n"
                            "sparsight config cost configs/pmoe/wrn.toml --image 3,64,64 --classes 2");
  cost_arguments->config.declare(cost);
  cost->add_option("--image", cost_arguments->image, "Channels, height and width of the images")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::Range(1, 4096));
  cost->add_option("--classes", cost_arguments->classes, "Classes of the data")->check(CLI::Range(2, 1000000));
  cost->callback([cost_arguments] {
    const std::vector<int64_t>& image = cost_arguments->image;
    const ImageShape shape{image[0], image[1], image[2], cost_arguments->classes};
    std::cout << cost_table(model_cost(cost_arguments->config.resolved(), shape));
  });

  add_verb(*verb, "docs", "Print the reference of all settings as Markdown",
           "sparsight config docs > docs/configuration.md")
      ->callback([] { std::cout << configuration_reference(config_sections()); });
}

}  // namespace sparsight::cli
