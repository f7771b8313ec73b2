#include "cli/cmd_moe.h"

#include <memory>

#include "cli/verbs.h"

namespace sparsight::cli {

void add_moe(CLI::App& app) {
  auto arguments = std::make_shared<MoeArguments>();
  CLI::App* verb =
      add_verb(app, "moe", "Run one MoE layer on tokens from a file and write everything it computes",
               "sparsight moe tokens.npy --set moe.experts=16 --set router.k=2 --out layer.safetensors\n"
               "sparsight moe case.safetensors --mode train --float64 --config layer.toml --out layer.safetensors");
  verb->add_option(
          "input", arguments->input,
          ".npy file of tokens [N,D] or [B,S,D], or safetensors file with \"tokens\" and optionally \"grad\", "
          "\"noise\" or \"noise.<purpose>\", \"valid\", \"token_id\", \"target\", \"priority\" and weights by name "
          "(docs/moe.md)")
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
                   "Seed for weights and noise that the file does not contain (sets run.seed)")
      ->type_name("N");
  verb->add_option("--prefix", arguments->prefix,
                   "Number of leading tokens per image that are not patches: 1 for a class token")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 32))
      ->type_name("N");
  verb->add_option("--grid", arguments->grid,
                   "Height and width of the patch grid that the other tokens of an image form")
      ->expected(2)
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->type_name("H,W");
  verb->add_option("--routing", arguments->routing,
                   "Apply the routing in this file (written by --save-routing) instead of the router's")
      ->type_name("FILE");
  verb->add_option("--save-routing", arguments->save_routing, "Write the routing to this file")->type_name("FILE");
  verb->add_flag("--float64", arguments->float64, "Compute in float64");
  verb->callback([arguments] { run_moe(*arguments); });
}

}  // namespace sparsight::cli
