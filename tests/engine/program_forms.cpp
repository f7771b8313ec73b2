#include "tests/engine/program_forms.h"

#include <nlohmann/json.hpp>

#include "sparsight/engine/program_builder.h"
#include "sparsight/engine/routers/expert_picks.h"
#include "sparsight/engine/routers/fixed.h"
#include "sparsight/engine/routers/sigmoid_bias.h"
#include "sparsight/engine/routers/soft.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/engine/routers/two_level.h"
#include "sparsight/engine/routers/varying.h"
#include "sparsight/engine/steps/attention_pool.h"
#include "sparsight/engine/steps/experts.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/pixels.h"
#include "sparsight/engine/steps/rows.h"
#include "tests/engine/program_parts.h"

namespace sparsight::engine_test {
namespace {

using namespace engine;  // NOLINT(google-build-using-namespace): all of it is about programs

// What a form changes in a small transformer with one MoE layer: a class token and 16 patches.
struct Changes {
  std::function<std::unique_ptr<Router>(Parts&)> router = {};
  std::function<std::unique_ptr<Experts>(Parts&)> experts = {};
  RoutePolicy policy = {};
  bool class_token = true, reads_one_token = false, shares = false, qk_norm = false, pools_by_attention = false;
};

std::unique_ptr<Router> best_two(Parts& parts) {
  return std::make_unique<TopKRouter>(parts.logits(), TopKRule{.k = 2});
}

Program transformer(WeightType type, const Changes& changes) {
  Parts parts{type};
  ProgramBuilder builder({3, 8, 8, {0.5, 0.4, 0.3}, {0.2, 0.2, 0.25}}, {type});
  const Shape tokens{.prefix = changes.class_token ? 1 : 0, .height = 4, .width = 4, .columns = kWidth};
  const Shape first = changes.reads_one_token ? Shape::vector(kWidth) : tokens;
  const Value planes = builder.planes();
  const Value x = builder.add<EmbedStep>(
      planes, builder.new_value(tokens), 3, PatchEmbedding(parts.linear(12, kWidth), 2),
      changes.class_token ? parts.numbers(kWidth) : std::vector<float>{}, parts.numbers(16 * kWidth));
  const Value y = builder.add<BlockStep>(parts.block(x, builder.new_value(tokens), std::nullopt, changes.qk_norm));
  const Value seen = builder.add<NormStep>(y, builder.new_value(tokens), parts.norm());
  builder.add_route("blocks.0.mlp", seen, (changes.router ? changes.router : best_two)(parts), changes.policy);
  Value z = builder.add<ExpertsStep>("blocks.0.mlp", builder.find_routing("blocks.0.mlp"), seen, y,
                                     builder.new_value(tokens), changes.experts ? changes.experts(parts) : parts.mlps(),
                                     changes.reads_one_token ? 1 : tokens.rows());
  if (changes.shares)
    z = builder.add<SharedExpertsStep>(seen, z, builder.new_value(tokens), parts.mlps(2, Activation::silu));
  if (changes.reads_one_token) z = builder.add<PoolStep>(z, builder.new_value(first), PoolStep::Pool::first);
  const Value last =
      builder.add<BlockStep>(parts.block(z, builder.new_value(first), Activation::gelu, changes.qk_norm));
  Value features;
  if (changes.pools_by_attention) {
    Shape pairs = tokens;
    pairs.columns = 2 * kWidth;
    const Value kv = builder.add<LinearStep>(last, Value{}, builder.new_value(pairs), parts.linear(kWidth, 2 * kWidth));
    features = builder.add<AttentionPoolStep>(kv, builder.new_value(Shape::vector(kWidth)), parts.numbers(kWidth), 2);
  } else if (changes.class_token) {
    features = builder.add<PoolStep>(last, builder.new_value(Shape::vector(kWidth)), PoolStep::Pool::first);
  } else {
    features = add_mean(builder, last);
  }
  Program program = builder.finish(features, add_linear(builder, features, parts.linear(kWidth, kClasses)));
  program.info.classes = {"a", "b", "c", "d", "e \xc3\xa9"};
  return program;
}

ProgramForm routed(const std::string& name, const Changes& changes) {
  return {name, [changes](WeightType type) { return transformer(type, changes); }};
}
ProgramForm router(const std::string& name, std::function<std::unique_ptr<Router>(Parts&)> make) {
  return routed(name, {.router = std::move(make)});
}

template <class Kind, class... Arguments>
auto making(const Arguments&... arguments) {
  return [=](Parts& parts) -> std::unique_ptr<Router> { return std::make_unique<Kind>(parts.logits(), arguments...); };
}

ProgramForm by_image(const std::string& name, const ImageVector& vector, int64_t k, bool class_token = true) {
  return routed(name, {.router = [=](Parts& parts) -> std::unique_ptr<Router> {
                         ImageVector seen = vector;
                         if (seen.norm)
                           seen.norm_weight = parts.numbers.around(1, kWidth), seen.norm_bias = parts.numbers(kWidth);
                         return std::make_unique<TopKRouter>(parts.logits(), TopKRule{.k = k}, seen);
                       },
                       .class_token = class_token});
}

void add_top_k(std::vector<ProgramForm>& forms) {
  using Source = ImageVector::Source;
  forms.push_back(router("top_1", making<TopKRouter>(TopKRule{.k = 1})));
  forms.push_back(router("top_2_of_chosen", making<TopKRouter>(TopKRule{.k = 2, .gates = Gates::of_chosen})));
  forms.push_back(router("top_3_sigmoid", making<TopKRouter>(TopKRule{.k = 3, .gates = Gates::sigmoid})));
  forms.push_back(
      router("top_2_above", making<TopKRouter>(TopKRule{.k = 2, .drops_later = true, .later_above = 0.25})));
  forms.push_back(router("top_2_first", making<TopKRouter>(TopKRule{.k = 2, .drops_later = true})));
  forms.push_back(router("cosine", [](Parts& parts) -> std::unique_ptr<Router> {
    return std::make_unique<TopKRouter>(RouterLogits(parts.map(kWidth, 6), parts.map(6, kExperts, false)),
                                        TopKRule{.k = 2});
  }));
  forms.push_back(by_image("image_top_1", {.source = Source::automatic}, 1));
  forms.push_back(by_image("image_top_2", {.source = Source::mean_all, .norm = true}, 2));
  forms.push_back(by_image("image_patches", {.source = Source::mean_patches}, 2));
  forms.push_back(by_image("image_without_class_token", {.source = Source::automatic}, 2, false));
  Changes first = {.reads_one_token = true};
  forms.push_back(routed("first_token", first));
  first.router = [](Parts& parts) -> std::unique_ptr<Router> {
    return std::make_unique<TopKRouter>(parts.logits(), TopKRule{.k = 2}, ImageVector{});
  };
  forms.push_back(routed("first_token_of_image", first));
  forms.push_back(routed("qk_norm", {.qk_norm = true}));
  forms.push_back(routed("attention_pool", {.class_token = false, .pools_by_attention = true}));
  forms.push_back(routed("attention_pool_of_patches", {.pools_by_attention = true}));
}

void add_other_routers(std::vector<ProgramForm>& forms) {
  using Gated = PatchChoiceRouter::PatchGates;
  forms.push_back(router("top_p", making<TopPRouter>(0.7, int64_t{3})));
  forms.push_back(router("relu", making<ReluRouter>()));
  forms.push_back(router("sigmoid_bias", making<SigmoidBiasRouter>(std::vector<float>{0.1F, -0.2F, 0.3F, 0},
                                                                   SigmoidBiasRule{.k = 2, .scale = 2.5})));
  forms.push_back(router("sigmoid_bias_groups",
                         making<SigmoidBiasRouter>(std::vector<float>{0.1F, -0.2F, 0.3F, 0},
                                                   SigmoidBiasRule{.k = 2, .scale = 1, .groups = 2, .kept = 1})));
  for (const bool image : {false, true})
    forms.push_back(router(image ? "expert_choice_image" : "expert_choice", making<ExpertChoiceRouter>(1.5, image)));
  for (const auto& [name, gates] : {std::pair{"topl_softmax", Gated::topl_softmax},
                                    std::pair{"softmax_topl", Gated::softmax_topl}, std::pair{"ones", Gated::ones}})
    forms.push_back(router(std::string("patch_choice_") + name, making<PatchChoiceRouter>(int64_t{5}, gates)));
  forms.push_back(router("threshold", making<ThresholdRouter>(std::vector<float>{0.2F, 0.3F, 0.4F, 0.35F})));
  forms.push_back(router("hash", [](Parts&) { return std::make_unique<HashRouter>(kExperts, 2, 7); }));
  forms.push_back(router("round_robin", [](Parts&) { return std::make_unique<RoundRobinRouter>(kExperts, 3); }));
  for (const bool normalises : {false, true})
    forms.push_back(router(normalises ? "soft_norm" : "soft", [=](Parts& parts) {
      return std::make_unique<SoftRouter>(parts.map(kWidth, 3 * kExperts), kExperts, normalises);
    }));
  const auto two_levels = [&](const std::string& name, const LevelRule& groups, const LevelRule& experts, bool sorted) {
    forms.push_back(router(name, [=](Parts& parts) {
      return std::make_unique<TwoLevelRouter>(parts.map(kWidth, 2), parts.map(kWidth, kExperts), groups, experts,
                                              sorted);
    }));
  };
  const LevelRule above{.threshold = {0.4F, 0.45F}}, each_above{.threshold = {0.5F, 0.3F, 0.6F, 0.4F}};
  two_levels("two_levels", {.k = 2}, {.k = 2}, true);
  two_levels("two_levels_of_one", {.k = 1}, {.k = 1}, true);
  two_levels("two_levels_unsorted", {.k = 2}, {.k = 1}, false);
  two_levels("two_thresholds", above, each_above, false);
  two_levels("threshold_and_best", above, {.k = 1}, false);
}

void add_policies(std::vector<ProgramForm>& forms) {
  const auto capacity = [&](const std::string& name, double factor, const Json& settings, Changes changes = {}) {
    OptionSet set;
    changes.policy.capacity.declare(set);
    for (const auto& [key, value] : settings.items()) set.find(key)->set(value);
    changes.policy.factor = factor;
    forms.push_back(routed(name, changes));
  };
  capacity("capacity", 0.6, Json::object());
  capacity("capacity_floor", 0.77, {{"rounding", "floor"}, {"multiple", 3}, {"minimum", 2}, {"count_k", false}});
  capacity("capacity_round", 0.55, {{"rounding", "round"}, {"group", 1}});
  capacity("capacity_per_choice", 0.7, {{"rounding", "floor_per_choice"}, {"group", 2}});
  capacity("capacity_max", 0.5, {{"priority", "max_gate"}, {"renormalize", true}});
  capacity("capacity_sums", 0.5, {{"priority", "sum_gates"}, {"group", 2}});
  capacity("capacity_tokens", 0.6, {{"priority", "max_gate"}, {"group", 10}, {"group_unit", "tokens"}});
  Changes changes;
  changes.policy.gates = GateRule::sum_to_one;
  capacity("capacity_sum_to_one", 0.6, Json::object(), changes);
  forms.push_back(routed("sum_to_one", changes));
  changes.policy.gates = GateRule::one;
  capacity("ungated", 0.6, Json::object(), changes);
  changes = {.router = making<TopPRouter>(0.7, int64_t{3})};
  capacity("capacity_top_p", 0.6, {{"group", 2}}, changes);
  changes = {.router = making<ReluRouter>()};
  capacity("capacity_relu", 0.5, {{"priority", "sum_gates"}}, changes);
  changes.policy.gates = GateRule::sum_to_one;
  forms.push_back(routed("relu_sum_to_one", changes));
  changes = {.router = making<TopKRouter>(TopKRule{.k = 2, .drops_later = true, .later_above = 0.25})};
  changes.policy.gates = GateRule::one;
  capacity("capacity_skips", 0.5, {{"priority", "max_gate"}}, changes);
  changes = {.router = [](Parts& parts) -> std::unique_ptr<Router> {
    return std::make_unique<TopKRouter>(parts.logits(), TopKRule{.k = 2}, ImageVector{});
  }};
  capacity("capacity_image", 0.6, Json::object(), changes);
  changes = {.router = [](Parts&) { return std::make_unique<RoundRobinRouter>(kExperts, 3); }};
  capacity("capacity_turns", 0.4, {{"priority", "sum_gates"}}, changes);
}

void add_experts(std::vector<ProgramForm>& forms) {
  const auto soft = [](Parts& parts) -> std::unique_ptr<Router> {
    return std::make_unique<SoftRouter>(parts.map(kWidth, 2 * kExperts), kExperts, false);
  };
  const auto image = [](Parts& parts) -> std::unique_ptr<Router> {
    return std::make_unique<TopKRouter>(parts.logits(), TopKRule{.k = 2}, ImageVector{});
  };
  const std::vector<std::pair<std::string, std::function<std::unique_ptr<Experts>(Parts&)>>> kinds{
      {"mlps_relu", [](Parts& parts) { return parts.mlps(kExperts, Activation::relu, false); }},
      {"layers", [](Parts& parts) { return parts.layers(kWidth, kWidth, false); }},
      {"gated_layers", [](Parts& parts) { return parts.layers(kWidth, kWidth, true); }},
      {"patch_convs", [](Parts& parts) { return parts.patch_convs(true); }},
      {"patch_conv_sums", [](Parts& parts) { return parts.patch_convs(false); }},
      {"norm_convs", [](Parts& parts) { return parts.norm_convs(false); }},
      {"norm_convs_gated_before", [](Parts& parts) { return parts.norm_convs(true); }},
      {"blocks",
       [](Parts& parts) {
         return parts.blocks({2, 2, 4});
       }},
  };
  for (const auto& [name, make] : kinds) {
    forms.push_back(routed(name, {.experts = make}));
    forms.push_back(routed(name + "_soft", {.router = soft, .experts = make}));
    forms.push_back(routed(name + "_of_image", {.router = image, .experts = make}));
  }
  forms.push_back(routed("shared", {.shares = true}));
  forms.push_back(routed("first_token_blocks", {.experts = kinds.back().second, .reads_one_token = true}));
  forms.push_back(routed("first_token_norm_convs", {.experts = kinds[6].second, .reads_one_token = true}));
}

// Convolutions of every sort, pools, patches of maps and back.
Program convolutions(WeightType type) {
  Parts parts{type};
  ProgramBuilder builder({3, 8, 8, {0.5, 0.4, 0.3}, {0.2, 0.2, 0.25}}, {type});
  std::vector<ConvStep> steps;
  steps.push_back(parts.conv(3, 6, 3));
  steps.back().relu = true, steps.back().limit = 0.9F, steps.back().to = ConvBuffer::hidden;
  ConvStep deep;
  deep.depthwise = cpu::DepthwiseConv(parts.numbers(6 * 9).data(), parts.numbers(6).data(), 6, 3, type);
  deep.kernel = 3, deep.from = ConvBuffer::hidden, deep.to = ConvBuffer::second_hidden, deep.limit = 0.5F;
  steps.push_back(std::move(deep));
  steps.push_back(parts.conv(6, 6, 1));
  steps.back().before = {parts.numbers.around(1, 6), parts.numbers(6)};
  steps.back().from = ConvBuffer::second_hidden, steps.back().has_residual = true,
  steps.back().residual = ConvBuffer::hidden;
  Value x = add_convs(builder, builder.map(), std::move(steps));
  std::vector<ConvStep> norms;
  norms.push_back(parts.conv(6, 8, 3, 2));
  norms.back().same = true, norms.back().relu = true, norms.back().to = ConvBuffer::hidden;
  norms.back().norm = {parts.numbers.around(1, 8), parts.numbers(8), 4, 1e-5};
  norms.push_back(parts.conv(8, 8, 3));
  norms.back().norm = {parts.numbers.around(1, 8), parts.numbers(8), 2, 1e-5};
  norms.back().relu_first = true, norms.back().has_residual = true, norms.back().residual = ConvBuffer::hidden;
  norms.back().from = ConvBuffer::hidden;
  const Value y = add_convs(builder, x, std::move(norms));  // [4,4,8]
  x = builder.add<ElementwiseStep>(y, y, builder.new_value(y.shape), Elementwise::relu, parts.numbers(8),
                                   parts.numbers(8));
  const Value rows =
      builder.add<MapPatchesStep>(x, builder.new_value({.height = 2, .width = 2, .columns = 32}), int64_t{2}, true);
  x = builder.add<LinearStep>(rows, rows, builder.new_value(rows.shape), parts.linear(32, 32), Activation::relu);
  x = builder.add<ElementwiseStep>(x, Value{}, builder.new_value(x.shape), Elementwise::sigmoid);
  x = builder.add<MapPatchesStep>(x, builder.new_value(y.shape), int64_t{2}, false);
  x = add_mean(builder, add_window_max(builder, add_max_pool(builder, x), 2));
  x = builder.add<ElementwiseStep>(x, Value{}, builder.new_value(x.shape), Elementwise::tanh);
  return builder.finish(x, add_two_classes(builder, add_linear(builder, x, parts.linear(8, 1))));
}

// Patches routed to convolutions, their mean by what was taken; two logits of one.
Program patch_network(WeightType type, bool ones) {
  Parts parts{type};
  ProgramBuilder builder({3, 8, 8, {}, {}}, {type});
  const Shape shape{.height = 2, .width = 2, .columns = 48};
  const Value patches = builder.add<PatchesStep>(builder.planes(), builder.new_value(shape), int64_t{3}, int64_t{4});
  builder.add_route("moe", patches,
                    std::make_unique<PatchChoiceRouter>(
                        RouterLogits(parts.map(48, kExperts)), 3,
                        ones ? PatchChoiceRouter::PatchGates::ones : PatchChoiceRouter::PatchGates::topl_softmax),
                    {});
  const PatchWindows windows{.channels = 3, .side = 4, .kernel = 3, .padding = 0, .stride = 1};
  Shape out = shape;
  out.columns = 1;
  Value x = builder.add<ExpertsStep>(
      "moe", builder.find_routing("moe"), patches, Value{}, builder.new_value(out),
      std::make_unique<PatchConvExperts>(windows, parts.expert_linear(kExperts, windows.taps(), 5), Activation::relu,
                                         true, parts.expert_linear(kExperts, 5, 1)),
      4);
  x = builder.add<TakenMeanStep>(x, builder.new_value(Shape::vector(1)), builder.find_routing("moe"));
  return builder.finish(x, add_two_classes(builder, x));
}

// Whole images routed to blocks of convolutions, by a router of the model, and an embedding of the map.
Program columns(WeightType type, bool sparse) {
  Parts parts{type};
  ProgramBuilder builder({3, 8, 8, {0.5, 0.4, 0.3}, {0.2, 0.2, 0.25}}, {type});
  std::vector<ConvStep> steps;
  steps.push_back(parts.conv(3, 6, 3, 2));
  const Value map = add_convs(builder, builder.map(), std::move(steps));  // [4,4,6]
  const Value seen = add_mean(builder, map);
  auto router = std::make_unique<TopKRouter>(RouterLogits(parts.map(6, kExperts)), TopKRule{.k = sparse ? 1 : 2});
  builder.add_route("router", seen, std::move(router), {});
  builder.share_routing(0, {"blocks.0"});
  const Value whole{map.number, Shape::vector(map.shape.numbers())};
  Value y = builder.add<ExpertsStep>("blocks.0", 0, whole, Value{}, builder.new_value(whole.shape),
                                     parts.blocks({4, 4, 6}), 1);
  y.shape = map.shape;
  y = builder.add<ElementwiseStep>(y, map, builder.new_value(map.shape), Elementwise::relu);
  const Value shared{y.number, Shape::vector(y.shape.numbers())};
  Value z = builder.add<SharedExpertsStep>(shared, shared, builder.new_value(shared.shape), parts.blocks({4, 4, 6}, 2));
  z.shape = map.shape;
  const Value tokens =
      builder.add<EmbedStep>(z, builder.new_value({.height = 2, .width = 2, .columns = kWidth}), int64_t{0},
                             PatchEmbedding(parts.linear(24, kWidth), 2), std::vector<float>{}, std::vector<float>{});
  const Value features = add_mean(builder, tokens);
  return builder.finish(features, add_linear(builder, features, parts.linear(kWidth, kClasses)));
}

}  // namespace

std::vector<ProgramForm> program_forms() {
  std::vector<ProgramForm> forms;
  add_top_k(forms);
  add_other_routers(forms);
  add_policies(forms);
  add_experts(forms);
  forms.push_back({"convolutions", convolutions});
  for (const bool ones : {false, true})
    forms.push_back(
        {ones ? "patch_network_ones" : "patch_network", [=](WeightType type) { return patch_network(type, ones); }});
  for (const bool sparse : {false, true})
    forms.push_back({sparse ? "columns_of_one" : "columns", [=](WeightType type) { return columns(type, sparse); }});
  return forms;
}

}  // namespace sparsight::engine_test
