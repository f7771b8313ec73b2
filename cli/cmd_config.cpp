#include <memory>

#include "cli/config_arguments.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/config_text.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/log.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/report/cost_table.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/training_setup.h"

namespace sparsight::cli {
namespace {

void add_show(CLI::App& config) {
  const auto arguments = std::make_shared<ConfigArguments>();
  CLI::App* verb = add_verb(config, "show", "Print every setting with its value and where it came from",
                            "sparsight config show configs/demo.toml --set optimizer.name=sgd");
  arguments->declare(verb);
  verb->callback([arguments] {
    const Config config = arguments->read();
    output() << toml_with_origins(resolve(config, config_sections()), config);
  });
}

void add_check(CLI::App& config) {
  const auto arguments = std::make_shared<ConfigArguments>();
  CLI::App* verb =
      add_verb(config, "check", "Check a configuration: read it, open its data and build its model, without training",
               "sparsight config check my.toml");
  arguments->declare(verb);
  verb->callback([arguments] {
    const Json config = arguments->resolved();
    // `fresh` initialises or reads the weights, which is worth checking only if they come from a file.
    const bool reads_weights = !config.at("train").at("init_from").get<std::string>().empty();
    make_training_setup(config, /*fresh=*/reads_weights);
    log_info("the configuration is valid");
  });
}

struct CostArguments {
  ConfigArguments config;
  std::vector<int64_t> image{3, 64, 64};
  int64_t classes = 2;
  std::string flops = "multiply_adds";
};

void add_cost(CLI::App& config) {
  const auto arguments = std::make_shared<CostArguments>();
  CLI::App* verb = add_verb(config, "cost",
                            "Print the cost of each part of the model: parameters (total and per token), weight bytes, "
                            "multiply-adds and elementwise operations per image",
                            "sparsight config cost configs/demo.toml --image 1,32,32 --classes 12\n"
                            "sparsight config cost configs/pmoe/wrn.toml --image 3,64,64 --flops flops_elementwise");
  arguments->config.declare(verb);
  verb->add_option("--image", arguments->image, "Channels, height and width of the images")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::Range(1, 4096));
  verb->add_option("--classes", arguments->classes, "Number of classes")->check(CLI::Range(2, 1000000));
  std::string conventions;
  for (const CostConvention& c : cost_conventions()) conventions += cat("\n  ", c.name, ": ", c.summary);
  verb->add_option("--flops", arguments->flops, "What to count as FLOPs per image:" + conventions);
  verb->callback([arguments] {
    const std::vector<int64_t>& image = arguments->image;
    const ImageShape shape{image[0], image[1], image[2], arguments->classes};
    const Json config = arguments->config.resolved();
    const CostOptions options{cost_convention(arguments->flops), config.at("loader").at("batch").get<int64_t>()};
    output() << cost_table(model_cost(config, shape, options), options.convention);
  });
}

void add_docs(CLI::App& config) {
  const auto pages = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = add_verb(config, "docs", "Print the reference of all settings as Markdown",
                            "sparsight config docs > docs/configuration.md\n"
                            "sparsight config docs --update docs/routing.md docs/moe.md");
  verb->add_option("--update", *pages, "Regenerate the component tables in these Markdown pages instead")
      ->type_name("PAGE");
  verb->callback([pages] {
    if (pages->empty()) output() << configuration_reference(config_sections());
    for (const std::string& page : *pages)
      write_file_atomically(page, with_tables(read_file(page, kMaxTextBytes), config_sections()));
  });
}

}  // namespace

void add_config(CLI::App& app) {
  CLI::App* verb = add_verb(app, "config", "Show, check and document configurations",
                            "sparsight config show configs/demo.toml --set train.epochs=2\n"
                            "sparsight config check my.toml");
  verb->require_subcommand(1);
  add_show(*verb);
  add_check(*verb);
  add_cost(*verb);
  add_docs(*verb);
}

}  // namespace sparsight::cli
