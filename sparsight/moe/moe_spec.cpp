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
  set.integer("shared", &shared, {0, 4096}, "experts that see every token, added without a gate (DeepSeek)");
  set.integer("shared_hidden", &shared_hidden, {0, 1 << 20}, "hidden width of a shared expert; 0: that of the others");
  set.flag("output_sigmoid", &output_sigmoid, "a sigmoid on the layer's output");
}

void RouterScopeOptions::declare(OptionSet& set) {
  set.choice(
      "scope", &scope, {"layer", "model"},
      "a router for each MoE layer, or one that looks at the tokens before the first MoE block and decides for all "
      "(Mobile V-MoE)");
}

std::shared_ptr<Experts> MoeSpec::make_experts(int64_t width, int64_t mlp_hidden, int64_t outputs) const {
  return make_kind({options.experts, width, options.hidden_for(mlp_hidden), outputs});
}

std::shared_ptr<Experts> MoeSpec::make_shared_experts(int64_t width, int64_t mlp_hidden, int64_t outputs) const {
  if (options.shared == 0) return nullptr;
  return make_kind({options.shared, width, options.shared_hidden_for(mlp_hidden), outputs});
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
               read_shared<RouterScopeOptions>(resolved, "router"),
               // Checkpoints from before the section existed have no limit.
               resolved.contains("capacity") ? read_section<CapacityOptions>(resolved, "capacity") : CapacityOptions(),
               read_section<LossOptions>(resolved, "losses"),
               {},
               {}};
  spec.make_router = [resolved](RouterShape shape) { return make_component(routers(), resolved, "router", shape); };
  const Json experts = resolved.value("experts", Json{{"name", "mlp"}});  // checkpoints from before had no other kind
  spec.make_kind = [experts](ExpertShape shape) {
    return make_component(expert_kinds(), Json{{"experts", experts}}, "experts", shape);
  };
  return spec;
}

MoeSpec default_moe_spec(const std::vector<int64_t>& blocks) {
  MoeSpec spec = read_moe_spec({{"moe", Json::object()},
                                {"experts", {{"name", "mlp"}}},
                                {"capacity", Json::object()},
                                {"losses", Json::object()},
                                {"router", {{"name", "softmax_topk"}}}});
  spec.options.blocks = blocks;
  return spec;
}

}  // namespace sparsight
