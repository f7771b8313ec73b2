#include "sparsight/moe/moe_spec.h"

#include "sparsight/core/config.h"
#include "sparsight/moe/register_moe.h"

namespace sparsight {

void MoeOptions::declare(OptionSet& set) {
  set.integers(
      "blocks", &blocks, {-1000, 999},
      "blocks whose MLP is replaced by an MoE layer; negative numbers count from the end; empty: a dense model");
  set.integer("experts", &experts, {1, 65536}, "experts of each MoE layer");
  set.integer("hidden", &hidden, {0, 1 << 20}, "hidden width of an expert; 0: that of the MLP it replaces");
  set.choice("expert", &expert, expert_kinds().names(), "kind of expert");
  set.choice("activation", &activation, activation_names(), "activation of the experts");
}

std::shared_ptr<Experts> MoeSpec::make_experts(int64_t width, int64_t mlp_hidden) const {
  const ExpertShape shape{options.experts, width, options.hidden ? options.hidden : mlp_hidden,
                          parse_activation(options.activation)};
  return expert_kinds().make(options.expert, Json::object(), "moe", shape);
}

std::vector<bool> MoeSpec::places(int64_t depth) const {
  std::vector<bool> chosen(static_cast<size_t>(depth), false);
  for (const int64_t block : options.blocks) {
    const int64_t index = block < 0 ? depth + block : block;
    if (index < 0 || index >= depth)
      fail_usage("[moe] blocks: there is no block ", block, " in a model of ", depth, " blocks; allowed are ", -depth,
                 " to ", depth - 1);
    chosen[static_cast<size_t>(index)] = true;
  }
  return chosen;
}

MoeSpec read_moe_spec(const Json& resolved) {
  MoeSpec spec{read_section<MoeOptions>(resolved, "moe"),
               // Checkpoints from before the section existed have no limit.
               resolved.contains("capacity") ? read_section<CapacityOptions>(resolved, "capacity") : CapacityOptions(),
               read_section<LossOptions>(resolved, "losses"),
               {}};
  spec.make_router = [resolved](RouterShape shape) { return make_component(routers(), resolved, "router", shape); };
  return spec;
}

MoeSpec default_moe_spec(const std::vector<int64_t>& blocks) {
  MoeSpec spec = read_moe_spec({{"moe", Json::object()},
                                {"capacity", Json::object()},
                                {"losses", Json::object()},
                                {"router", {{"name", "softmax_topk"}}}});
  spec.options.blocks = blocks;
  return spec;
}

}  // namespace sparsight
