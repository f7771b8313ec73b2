#include <iostream>
#include <memory>

#include "cli/config_arguments.h"
#include "cli/verbs.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/report/moe_trial_table.h"
#include "sparsight/train/train_options.h"

#include <nlohmann/json.hpp>

namespace sparsight::cli {
namespace {

struct MoeArguments {
  std::string input, out, mode = "eval";
  int64_t seed = -1;
  ConfigArguments config;
  bool float64 = false;
};

void run_layer(const MoeArguments& arguments) {
  ConfigArguments config = arguments.config;
  if (arguments.seed >= 0) config.overrides.push_back("run.seed=" + std::to_string(arguments.seed));
  const MoeTrialOptions options{config.resolved(), arguments.mode == "train", arguments.float64};
  apply_threads(read_section<RunOptions>(options.config, "run"));
  const MoeTrial trial = run_moe_trial(read_moe_trial_input(arguments.input), options);
  if (!trial.drawn.empty()) log_info("drawn from the seed: ", join(trial.drawn));
  std::cout << moe_trial_table(trial);
  if (arguments.out.empty()) return;
  const Json settings{{"moe", options.config.at("moe")},       {"experts", options.config.at("experts")},
                      {"router", options.config.at("router")}, {"capacity", options.config.at("capacity")},
                      {"losses", options.config.at("losses")}, {"mode", arguments.mode}};
  write_safetensors(arguments.out, {trial.tensors, {{"settings", settings.dump()}}});
  std::cout << "tensors: " << arguments.out << "\n";
}

}  // namespace

void add_moe(CLI::App& app) {
  auto arguments = std::make_shared<MoeArguments>();
  CLI::App* verb =
      add_verb(app, "moe", "Run one MoE layer on tokens from a file and keep all that it computes",
               "sparsight moe tokens.npy --set moe.experts=16 --set router.k=2 --out layer.safetensors\n"
               "sparsight moe case.safetensors --mode train --float64 --config layer.toml --out layer.safetensors");
  verb->add_option(
          "input", arguments->input,
          ".npy file of tokens [N,D] or [B,S,D], or safetensors file with \"tokens\" and, if wanted, \"grad\", "
          "\"noise\", \"valid\" and weights under their names")
      ->required()
      ->type_name("FILE");
  arguments->config.declare(verb, "--config");
  verb->add_option("--out", arguments->out,
                   "safetensors file to write: output, scores, choices, gates, losses, gradients")
      ->type_name("FILE");
  verb->add_option("--mode", arguments->mode, "train (noise, losses) or eval")
      ->check(CLI::IsMember({"train", "eval"}))
      ->capture_default_str();
  verb->add_option("--seed", arguments->seed,
                   "Seed of weights and noise that the file does not give (default: run.seed)")
      ->check(CLI::Range(int64_t{0}, INT64_MAX))
      ->type_name("N");
  verb->add_flag("--float64", arguments->float64, "Compute in 64 bits");
  verb->callback([arguments] { run_layer(*arguments); });
}

}  // namespace sparsight::cli
