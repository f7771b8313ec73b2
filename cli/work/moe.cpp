#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/cmd_moe.h"
#include "cli/output.h"
#include "cli/work/read_config.h"
#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/models/routing_record.h"
#include "sparsight/report/run/layer_probe_table.h"

namespace sparsight::cli {
namespace {

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

// Images are identified by their position in the file of tokens.
void save_routing(const std::string& path, const Routing& routing) {
  std::vector<RoutedImage> images;
  for (int64_t i = 0; i < routing.layout.images; ++i) images.push_back({std::to_string(i)});
  RoutingRecordWriter writer(path);
  writer.add({{routing.layer, detached(routing)}}, images);
  writer.commit({});
}

}  // namespace

void run_moe(const MoeArguments& arguments) {
  ConfigArguments config = arguments.config;
  if (arguments.seed) config.overrides.push_back("run.seed=" + *arguments.seed);
  check_outputs(arguments);
  LayerProbeOptions options{resolved_config(config), arguments.mode == "train", arguments.float64, arguments.prefix};
  if (!arguments.grid.empty()) options.grid_h = arguments.grid[0], options.grid_w = arguments.grid[1];
  apply_threads(read_section<RunOptions>(options.config, "run"));
  if (!arguments.routing.empty()) options.routing = only_routing(arguments.routing);
  const LayerProbe probe = run_layer_probe(read_layer_probe_input(arguments.input), options);
  if (!probe.initialised.empty()) log_info("sampled from the seed: ", join(probe.initialised));
  output() << layer_probe_table(probe);
  if (!arguments.save_routing.empty()) {
    save_routing(arguments.save_routing, probe.output.routing);
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

}  // namespace sparsight::cli
