#include "cli/cmd_config.h"

#include <memory>

#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/cost/convention.h"

namespace sparsight::cli {
namespace {

void add_show(CLI::App& config) {
  const auto arguments = std::make_shared<ConfigArguments>();
  CLI::App* verb = add_verb(config, "show", "Print every setting with its value and where it came from",
                            "sparsight config show configs/demo.toml --set optimizer.name=sgd");
  arguments->declare(verb);
  verb->callback([arguments] { run_config_show(*arguments); });
}

void add_check(CLI::App& config) {
  const auto arguments = std::make_shared<ConfigArguments>();
  CLI::App* verb =
      add_verb(config, "check", "Check a configuration: read it, open its data and build its model, without training",
               "sparsight config check my.toml");
  arguments->declare(verb);
  verb->callback([arguments] { run_config_check(*arguments); });
}

void add_cost(CLI::App& config) {
  const auto arguments = std::make_shared<ConfigCostArguments>();
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
    cost_convention(arguments->flops);  // an unknown name is an error before the configuration is read
    run_config_cost(*arguments);
  });
}

void add_catalogue(CLI::App& config) {
  CLI::App* verb = add_verb(config, "catalogue", "Print the names of all settings and components as a JSON object",
                            "sparsight config catalogue");
  verb->callback([] { run_config_catalogue(); });
}

void add_docs(CLI::App& config) {
  const auto pages = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = add_verb(config, "docs", "Print the reference of all settings as Markdown",
                            "sparsight config docs > docs/configuration.md\n"
                            "sparsight config docs --update docs/routing.md docs/moe.md");
  verb->add_option("--update", *pages, "Regenerate the component tables in these Markdown pages instead")
      ->type_name("PAGE");
  verb->callback([pages] { run_config_docs(*pages); });
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
  add_catalogue(*verb);
  add_docs(*verb);
}

}  // namespace sparsight::cli
