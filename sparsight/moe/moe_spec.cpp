#include "sparsight/moe/moe_spec.h"

#include "sparsight/core/block_list.h"
#include "sparsight/core/config.h"
#include "sparsight/dist/exact_parts.h"
#include "sparsight/moe/dispatch/expert_parallel.h"
#include "sparsight/moe/register_moe.h"

namespace sparsight {

void MoeOptions::declare(OptionSet& set) {
  set.integers(
      "blocks", &blocks, {-1000, 999},
      "blocks whose MLP is replaced by an MoE layer; negative numbers count from the end; empty: a dense model");
  set.integer("experts", &experts, {1, 65536}, "number of experts in each MoE layer");
  set.integer("hidden", &hidden, {0, 1 << 20}, "hidden width of an expert; 0: that of the MLP it replaces");
  set.integer("shared", &shared, {0, 4096},
              "number of shared experts, which see every token and have no gate (DeepSeek)");
  set.integer("shared_hidden", &shared_hidden, {0, 1 << 20}, "hidden width of a shared expert; 0: that of the others");
  set.flag("output_sigmoid", &output_sigmoid, "apply a sigmoid to the layer's output");
  set.choice(
      "gates", &gates, {"auto", "router", "sum_to_one", "one"},
      "router: as the router gives them; sum_to_one: divided by their sum over the token's experts; one: ungated "
      "experts, the task's loss does not train the router; auto: sum_to_one if train.init_from upcycles a dense "
      "model, else router");
  set.tables("layer", &layer,
             "settings of single blocks: {blocks = [8, 10], experts = 16, router = {k = 1}, ...}, with the tables "
             "router, expert, capacity and losses");
  set.tables("schedule", &schedule,
             "settings that change during training: {setting = \"router.k\", from = 4, to = 1, begin = 0, end = 0.5, "
             "shape = \"linear\"}; of [router], [capacity] and [losses]");
}

GateRule MoeOptions::gate_rule() const {
  return gates == "sum_to_one" ? GateRule::sum_to_one : gates == "one" ? GateRule::one : GateRule::router;
}

void RouterScopeOptions::declare(OptionSet& set) {
  set.choice(
      "scope", &scope, {"auto", "layer", "model"},
      "layer: one router per MoE layer; model: one router before the first MoE block decides for all (Mobile V-MoE); "
      "auto: model for per_image where the model can share a router, else layer");
}

namespace {

// The setting `k` of the configured router, or 1 if it has none: used by the default Router::cost().
int64_t choices_setting(const Json& router) {
  int64_t k = 1;
  routers().get(router.at("name").get<std::string>()).describe([&](OptionSet& set) {
    const Option* option = set.find("k");
    if (!option) return;
    const Json value = router.contains("k") ? router.at("k") : option->get();
    if (value.is_number_integer()) k = value.get<int64_t>();
  });
  return k;
}

}  // namespace

bool MoeSpec::shares_router() const {
  if (router.scope != "auto") return router.scope == "model";
  if (options.blocks.empty() && options.layer.empty()) return false;  // a dense model has no routers
  return make_router({1, options.experts})->decides_for_model();
}

std::shared_ptr<Experts> MoeSpec::make_experts(int64_t width, int64_t mlp_hidden, int64_t outputs) const {
  const int64_t parts = ranks.parts->size();
  if (options.experts % parts != 0)
    fail_usage("dist.expert_parallel = ", parts, " cannot spread ", options.experts,
               " experts equally; choose a divisor of it, or a multiple of ", parts, " as moe.experts");
  return make_kind({options.experts / parts, width, options.hidden_for(mlp_hidden), outputs});
}

std::shared_ptr<Experts> MoeSpec::make_shared_experts(int64_t width, int64_t mlp_hidden, int64_t outputs) const {
  if (options.shared == 0) return nullptr;
  return make_kind({options.shared, width, options.shared_hidden_for(mlp_hidden), outputs});
}

void MoeSpec::spread_experts(const dist::ExpertRanks& over) {
  ranks = over;
  const bool exact = std::dynamic_pointer_cast<dist::ExactParts>(over.parts) != nullptr;
  dispatcher = over.parts->size() > 1 || exact ? expert_parallel_dispatcher(over.parts) : local_dispatcher();
  for (Override& some : overrides) {
    auto spec = std::make_shared<MoeSpec>(*some.spec);
    spec->spread_experts(over);
    some.spec = spec;
  }
}

namespace {

// Applies an entry to the section [router] or [experts]: another component starts from its own defaults.
void change_component(Json& section, const Json& change, const char* name) {
  if (!change.is_object()) fail_usage(name, " must be a table, got ", shown(change));
  if (change.contains("name") && change.at("name") != section.value("name", Json()))
    section = change;
  else
    section.update(change);
}

// One entry of [[moe.layer]]. shares_router: that of [moe].
MoeSpec::Override read_override(const Json& entry, Json resolved, bool shares_router) {
  MoeSpec::Override result;
  Json& moe = resolved["moe"];
  moe.erase("layer");
  bool has_blocks = false;
  for (const auto& [key, value] : entry.items()) {
    if (shares_router && (key == "router" || key == "capacity" || key == "losses"))
      fail_usage("moe.layer: one router decides for all MoE layers, so ", key,
                 " cannot differ between them; remove it, or set router.scope = \"layer\" for a router in each layer");
    if (key == "router" && value.is_object() && value.contains("scope"))
      fail_usage("moe.layer: scope applies to all MoE layers; set it in [router]");
    if (key == "router" || key == "expert")
      change_component(resolved[key == "expert" ? "experts" : "router"], value, key.c_str());
    else if (key == "capacity" || key == "losses")
      change_component(resolved[key], value, key.c_str());
    else if (key == "schedule" || key == "layer")
      fail_usage("moe.layer has no setting ", key, "; set it in [moe]");
    else
      moe[key] = value;
    has_blocks = has_blocks || key == "blocks";
  }
  if (!has_blocks) fail_usage("an entry of moe.layer needs blocks, as in blocks = [8, 10]; got ", shown(entry));
  resolved["router"]["scope"] = shares_router ? "model" : "layer";
  result.spec = std::make_shared<MoeSpec>(read_moe_spec(resolved));
  result.blocks = result.spec->options.blocks;
  return result;
}

}  // namespace

std::vector<const MoeSpec*> MoeSpec::layers(int64_t depth) const {
  std::vector<const MoeSpec*> chosen(static_cast<size_t>(depth), nullptr);
  for (const size_t block : block_indices(options.blocks, depth, "[moe]")) chosen[block] = this;
  std::vector<std::vector<int64_t>> overridden;
  for (const Override& some : overrides) overridden.push_back(some.blocks);
  const std::vector<int64_t> block_to_override = list_of_each_block(overridden, depth, "[[moe.layer]]");
  for (size_t i = 0; i < chosen.size(); ++i)
    if (block_to_override[i] >= 0) chosen[i] = overrides[static_cast<size_t>(block_to_override[i])].spec.get();
  if (overrides.empty() || !shares_router()) return chosen;
  for (const MoeSpec* spec : chosen)
    if (spec && spec->options.experts != options.experts)
      fail_usage("one router decides for all MoE layers, so all need the same number of experts; got ", options.experts,
                 " and ", spec->options.experts, "; set router.scope = \"layer\" for a router in each layer");
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
  spec.make_router = [resolved](RouterShape shape) {
    const std::shared_ptr<Router> router = make_router(resolved, shape);
    router->assume_choices(choices_setting(resolved.at("router")));
    return router;
  };
  const Json experts = resolved.value("experts", Json{{"name", "mlp"}});  // older checkpoints have no other kind
  spec.make_kind = [experts](ExpertShape shape) {
    auto kind = make_component(expert_kinds(), Json{{"experts", experts}}, "experts", shape);
    if (!kind) fail("the function that makes the experts ", shown(experts.at("name")), " returned null");
    return kind;
  };
  if (!spec.options.layer.empty())
    for (const bool shared = spec.shares_router(); const Json& entry : spec.options.layer)
      spec.overrides.push_back(read_override(entry, resolved, shared));
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
