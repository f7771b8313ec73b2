#include <filesystem>
#include <memory>
#include <optional>

#include "cli/config_arguments.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/report/layer_probe_table.h"

#include <nlohmann/json.hpp>

namespace sparsight::cli {
namespace {

struct MoeArguments {
  std::string input, out, routing, save_routing, mode = "eval";
  std::optional<std::string> seed;
  ConfigArguments config;
  std::vector<int64_t> grid;
  int64_t prefix = 0;
  bool float64 = false;
};

// Checks before any computation that the output files are writable and differ from the inputs and from each other.
void check_outputs(const MoeArguments& arguments) {
  std::vector<std::pair<std::string, std::string>> used{{"", arguments.input}, {"--routing", arguments.routing}};
  for (const auto& [flag, path] :
       {std::pair<std::string, std::string>{"--out", arguments.out}, {"--save-routing", arguments.save_routing}}) {
    if (path.empty()) continue;
    for (const auto& [other, taken] : used) {
      std::error_code none;
      if (taken == path || std::filesystem::equivalent(taken, path, none))
        fail_usage(flag, " ", path, " is also ",
                   other.empty() || other == "--routing" ? "an input" : "the file of " + other,
                   "; choose another file");
    }
    const AtomicFile writable(path);
    used.emplace_back(flag, path);
  }
}

Routing only_routing(const std::string& path) {
  const Routings routings = read_routings(path);
  if (routings.size() != 1)
    fail(path, " contains the routing of ", routings.size(),
         " layers, expected 1; write it with sparsight moe --save-routing");
  return routings.begin()->second;
}

void run_layer(const MoeArguments& arguments) {
  ConfigArguments config = arguments.config;
  if (arguments.seed) config.overrides.push_back("run.seed=" + *arguments.seed);
  check_outputs(arguments);
  LayerProbeOptions options{config.resolved(), arguments.mode == "train", arguments.float64, arguments.prefix};
  if (!arguments.grid.empty()) options.grid_h = arguments.grid[0], options.grid_w = arguments.grid[1];
  apply_threads(read_section<RunOptions>(options.config, "run"));
  if (!arguments.routing.empty()) options.routing = only_routing(arguments.routing);
  const LayerProbe probe = run_layer_probe(read_layer_probe_input(arguments.input), options);
  if (!probe.initialised.empty()) log_info("sampled from the seed: ", join(probe.initialised));
  output() << layer_probe_table(probe);
  if (!arguments.save_routing.empty()) {
    write_routings(arguments.save_routing, {{probe.output.routing.layer, detached(probe.output.routing)}});
    output() << "routing: " << printable(arguments.save_routing) << "\n";
  }
  if (arguments.out.empty()) return;
  const Json settings{{"moe", options.config.at("moe")},
                      {"experts", options.config.at("experts")},
                      {"router", options.config.at("router")},
                      {"capacity", options.config.at("capacity")},
                      {"losses", options.config.at("losses")},
                      {"run", options.config.at("run")},
                      {"mode", arguments.mode},
                      {"float64", arguments.float64}};
  write_safetensors(arguments.out, {probe.tensors, {{"settings", settings.dump()}}});
  output() << "tensors: " << printable(arguments.out) << "\n";
}

}  // namespace

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
  verb->callback([arguments] { run_layer(*arguments); });
}

}  // namespace sparsight::cli
