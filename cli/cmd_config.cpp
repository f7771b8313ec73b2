#include <iostream>
#include <memory>

#include "cli/config_arguments.h"
#include "cli/verbs.h"
#include "sparsight/core/config_text.h"
#include "sparsight/core/log.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/report/cost_table.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/training_setup.h"

namespace sparsight::cli {
namespace {
constexpr size_t kMaxPageBytes = 16 << 20;
}  // namespace

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
    std::cout << toml_with_origins(resolve(config, config_sections()), config);
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
    std::string flops = "multiply_adds";
  };
  const auto cost_arguments = std::make_shared<CostArguments>();
  CLI::App* cost = add_verb(*verb, "cost",
                            "Print what the parts of the model cost an image: parameters, those that one token uses, "
                            "bytes of weights, multiply-adds, elementwise operations",
                            "sparsight config cost configs/demo.toml --image 1,32,32 --classes 12\n"
                            "sparsight config cost configs/pmoe/wrn.toml --image 3,64,64 --flops flops_elementwise");
  cost_arguments->config.declare(cost);
  cost->add_option("--image", cost_arguments->image, "Channels, height and width of the images")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::Range(1, 4096));
  cost->add_option("--classes", cost_arguments->classes, "Classes of the data")->check(CLI::Range(2, 1000000));
  std::string conventions;
  for (const CostConvention& c : cost_conventions()) conventions += cat("\n  ", c.name, ": ", c.summary);
  cost->add_option("--flops", cost_arguments->flops, "What counts as the FLOPs of an image:" + conventions);
  cost->callback([cost_arguments] {
    const std::vector<int64_t>& image = cost_arguments->image;
    const ImageShape shape{image[0], image[1], image[2], cost_arguments->classes};
    const Json config = cost_arguments->config.resolved();
    const CostOptions options{cost_convention(cost_arguments->flops), config.at("loader").at("batch").get<int64_t>()};
    std::cout << cost_table(model_cost(config, shape, options), options.convention);
  });

  const auto pages = std::make_shared<std::vector<std::string>>();
  CLI::App* docs = add_verb(*verb, "docs", "Print the reference of all settings as Markdown",
                            "sparsight config docs > docs/configuration.md\n"
                            "sparsight config docs --update docs/routing.md docs/moe.md");
  docs->add_option("--update", *pages, "Write the tables of components in these Markdown pages anew instead")
      ->type_name("PAGE");
  docs->callback([pages] {
    if (pages->empty()) std::cout << configuration_reference(config_sections());
    for (const std::string& page : *pages)
      write_file_atomically(page, with_tables(read_file(page, kMaxPageBytes), config_sections()));
  });
}

}  // namespace sparsight::cli
