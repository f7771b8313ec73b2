#include "cli/cmd_config.h"

#include <memory>

#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/cost/convention.h"
#include "sparsight/cost/ranks_cost.h"

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

void add_ranks_options(CLI::App& verb, ConfigCostArguments& arguments) {
  CLI::Option* ranks = verb.add_option("--ranks", arguments.ranks,
                                       "Print what a training step takes on so many ranks, data and expert parallel: "
                                       "1,2,4,8, or the doublings of a range, 1..1000")
                           ->type_name("LIST");
  std::string names;
  for (const Network& network : networks()) names += cat("\n  ", network.name, ": ", network.summary);
  verb.add_option("--network", arguments.networks, "Networks between ranks (default: all):" + names)
      ->delimiter(',')
      ->needs(ranks)
      ->type_name("NAME ...");
  CLI::Option* rate = verb.add_option("--flops-per-second", arguments.flops_per_second,
                                      "FLOP/s of a rank in training (default: what this machine does in matrix "
                                      "products)")
                          ->needs(ranks)
                          ->check(CLI::Range(1.0, 1e18))
                          ->type_name("RATE");
  verb.add_option("--step-seconds", arguments.step_seconds, "Seconds of a step on one rank, as measured")
      ->needs(ranks)
      ->excludes(rate)
      ->check(CLI::Range(1e-9, 1e9))
      ->type_name("S");
  verb.add_option("--format", arguments.format, "Format of the result of --ranks")
      ->needs(ranks)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

}  // namespace

void add_cost(CLI::App& app) {
  const auto arguments = std::make_shared<ConfigCostArguments>();
  CLI::App* verb = add_verb(app, "cost",
                            "Print the cost of each part of the model: parameters (total and per token), weight bytes, "
                            "multiply-adds and elementwise operations per image; with --ranks, of a step on several "
                            "ranks",
                            "sparsight cost configs/demo.toml --image 1,32,32 --classes 12\n"
                            "sparsight cost configs/pmoe/wrn.toml --image 3,64,64 --flops flops_elementwise\n"
                            "sparsight cost configs/demo.toml --image 1,32,32 --ranks 1..1000\n"
                            "sparsight cost configs/demo.toml --image 1,32,32 --ranks 1,2,4 --network 10gbe "
                            "--step-seconds 0.2");
  arguments->config.declare(verb);
  verb->add_option("--image", arguments->image, "Channels, height and width of the images")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::Range(1, 4096));
  verb->add_option("--classes", arguments->classes, "Number of classes")->check(CLI::Range(2, 1000000));
  std::string conventions;
  for (const CostConvention& c : cost_conventions()) conventions += cat("\n  ", c.name, ": ", c.summary);
  verb->add_option("--flops", arguments->flops, "What to count as FLOPs per image:" + conventions);
  add_ranks_options(*verb, *arguments);
  verb->callback([arguments] {
    cost_convention(arguments->flops);  // an unknown name is an error before the configuration is read
    if (!arguments->ranks.empty()) parse_ranks(arguments->ranks);
    for (const std::string& name : arguments->networks) find_network(name);
    run_config_cost(*arguments);
  });
}

namespace {

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
