#include "sparsight/engine/routers/expert_picks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sparsight/core/error.h"
#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/kernels/elementwise/softmax_rows.h"

namespace sparsight::engine {
namespace {

// Where a score is in [N,E].
float at(const Array<float>& dense, const Routing& routing, int64_t token, int64_t expert) {
  return dense[token * routing.experts + expert];
}

bool better(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

// Experts choose one after the other, each in the pools [first, first + size) of tokens in turn: its best `count` by
// `scores`, [N,E]. Equal scores: the lower token; NaN last.
void take_best(const Array<float>& scores, int64_t expert, int64_t first, int64_t size, int64_t count,
               Routing& routing) {
  thread_local Array<int64_t> ranked;
  ranked.resize(size);
  std::iota(ranked.data(), ranked.data() + size, first);
  const auto before = [&](int64_t a, int64_t b) {
    const float x = at(scores, routing, a, expert), y = at(scores, routing, b, expert);
    if (better(x, y) || better(y, x)) return better(x, y);
    return a < b;
  };
  std::partial_sort(ranked.data(), ranked.data() + count, ranked.data() + size, before);
  const int64_t begin = routing.assignments();
  routing.set_assignments(begin + count);
  for (int64_t i = 0; i < count; ++i)
    routing.token[begin + i] = ranked[i], routing.expert[begin + i] = expert, routing.rank[begin + i] = i;
}

// values of the assignments (routing.gate holds them) become their softmax over the members of each group.
template <class GroupOf>
void softmax_of_groups(Routing& routing, int64_t groups, const GroupOf& group) {
  thread_local Array<float> largest, sum;
  std::fill_n(largest.resize(groups), groups, -std::numeric_limits<float>::infinity());
  std::fill_n(sum.resize(groups), groups, 0.0F);
  for (int64_t a = 0; a < routing.assignments(); ++a) {
    float& most = largest[group(a)];
    most = std::isnan(routing.gate[a]) ? routing.gate[a] : std::max(most, routing.gate[a]);
  }
  for (int64_t a = 0; a < routing.assignments(); ++a)
    sum[group(a)] += routing.gate[a] = std::exp(routing.gate[a] - largest[group(a)]);
  for (int64_t a = 0; a < routing.assignments(); ++a) routing.gate[a] /= sum[group(a)];
}

void set_gates(Routing& routing, const Array<float>& dense) {
  for (int64_t a = 0; a < routing.assignments(); ++a)
    routing.gate[a] = at(dense, routing, routing.token[a], routing.expert[a]);
}

}  // namespace

double share_of_expert(int64_t experts, double experts_per_token) {
  constexpr double kRounding = 1e-9;  // 1.1 * 10 is 11.000000000000002 and must not become 12
  return experts_per_token / static_cast<double>(experts) * (1 - kRounding);
}

int64_t tokens_of_expert(int64_t tokens, int64_t experts, double experts_per_token) {
  const double share = share_of_expert(experts, experts_per_token);
  const auto count = static_cast<int64_t>(std::ceil(static_cast<double>(tokens) * share));
  return std::min(std::max<int64_t>(1, count), tokens);
}

void ExpertChoiceRouter::choose(const RouterInput& input, Routing& routing) const {
  const int64_t tokens = routing.tokens, e = experts(), pools = by_image_ ? routing.layout.images : 1;
  logits_.run(input.threads, input.tokens, tokens, routing.logits.resize(tokens * e));
  cpu::softmax_rows(input.threads, routing.logits.data(), routing.scores.resize(tokens * e), tokens, e);
  const int64_t size = pools > 0 ? tokens / pools : 0, count = tokens_of_expert(size, e, experts_per_token_);
  for (int64_t expert = 0; expert < e; ++expert)
    for (int64_t pool = 0; pool < pools; ++pool) take_best(routing.scores, expert, pool * size, size, count, routing);
  set_gates(routing, routing.scores);
}

void check_patches(int64_t taken, int64_t patches) {
  if (taken > patches)
    fail_usage("[router] each expert takes ", taken, " patches but an image has ", patches,
               " patches; lower patches (in evaluation eval_patches) or use smaller patches");
}

void PatchChoiceRouter::choose(const RouterInput& input, Routing& routing) const {
  const int64_t tokens = routing.tokens, e = experts(), images = routing.layout.images,
                per_image = routing.layout.per_image, prefix = routing.layout.prefix, patches = per_image - prefix;
  if (tokens > 0) check_patches(patches_, patches);
  logits_.run(input.threads, input.tokens, tokens, routing.logits.resize(tokens * e));
  float* const scores = routing.scores.resize(tokens * e);
  std::fill_n(scores, tokens * e, 0.0F);
  for (int64_t image = 0; image < images; ++image)  // the softmax over the patches
    for (int64_t expert = 0; expert < e; ++expert) {
      const int64_t first = (image * per_image + prefix) * e + expert, end = (image + 1) * per_image * e;
      float most = -std::numeric_limits<float>::infinity(), sum = 0;
      for (int64_t i = first; i < end; i += e) most = std::max(most, routing.logits[i]);
      for (int64_t i = first; i < end; i += e) sum += scores[i] = std::exp(routing.logits[i] - most);
      for (int64_t i = first; i < end; i += e) scores[i] /= sum;
    }
  for (int64_t expert = 0; expert < e; ++expert)
    for (int64_t image = 0; image < images; ++image)
      take_best(routing.logits, expert, image * per_image + prefix, patches, patches_, routing);
  if (gates_ == PatchGates::ones) {
    std::fill_n(routing.gate.data(), routing.assignments(), 1.0F);
  } else if (gates_ == PatchGates::softmax_topl) {
    set_gates(routing, routing.scores);
  } else {
    set_gates(routing, routing.logits);
    softmax_of_groups(routing, e * images, [&](int64_t a) {
      return routing.expert[a] * images + routing.token[a] / std::max<int64_t>(1, per_image);
    });
  }
}

void choose_above_threshold(cpu::Threads& threads, const float* threshold, Routing& routing) {
  const int64_t tokens = routing.tokens, e = routing.experts;
  cpu::softmax_rows(threads, routing.logits.data(), routing.scores.resize(tokens * e), tokens, e);
  for (int64_t expert = 0; expert < e; ++expert) {
    int64_t count = 0;
    for (int64_t t = 0; t < tokens; ++t) count += at(routing.scores, routing, t, expert) > threshold[expert] ? 1 : 0;
    take_best(routing.scores, expert, 0, tokens, count, routing);
  }
  set_gates(routing, routing.logits);
  softmax_of_groups(routing, tokens, [&](int64_t a) { return routing.token[a]; });
}

void ThresholdRouter::choose(const RouterInput& input, Routing& routing) const {
  logits_.run(input.threads, input.tokens, routing.tokens, routing.logits.resize(routing.tokens * experts()));
  choose_above_threshold(input.threads, threshold_.data(), routing);
}

void ExpertChoiceRouter::visit(Fields& fields, const Shape& tokens) {
  logits_.visit(fields, tokens.columns);
  fields.real("experts_per_token", experts_per_token_, {0, kMaxFieldNumber});
  fields.flag("by_image", by_image_);
}

void PatchChoiceRouter::visit(Fields& fields, const Shape& tokens) {
  logits_.visit(fields, tokens.columns);
  fields.number("patches", patches_, {0, kMaxFieldNumber});
  fields.choice("gates", gates_, std::array{"topl_softmax", "softmax_topl", "ones"});
}

void ThresholdRouter::visit(Fields& fields, const Shape& tokens) {
  logits_.visit(fields, tokens.columns);
  fields.floats("threshold", threshold_, experts());
}

namespace {

// The best `count` [1] of each row of scores [R,E,tokens]: 1 for those, 0 for others.
OnnxName best_of_pools(OnnxGraph& graph, const OnnxName& scores, const OnnxName& count) {
  const OnnxName best = graph.top_k(scores, count, 2).second;
  const OnnxName ones = graph.add(graph.cast(graph.zeros_like(best), OnnxType::fp32), graph.number(1));
  return graph.node("ScatterElements", {graph.zeros_like(scores), best, ones}, {{"axis", 2}});
}

// tokens_of_expert() of a number of tokens [1] that the file leaves open.
OnnxName export_tokens_of_expert(OnnxGraph& graph, const OnnxName& tokens, double share) {
  const OnnxName exact = graph.multiply(graph.cast(tokens, OnnxType::fp64), graph.wide_number(share));
  const OnnxName count = graph.cast(graph.node("Ceil", {exact}), OnnxType::int64);
  return graph.node("Min", {graph.node("Max", {count, graph.integers({1})}), tokens});
}

}  // namespace

OnnxRouting ExpertChoiceRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const int64_t e = experts(), per_image = tokens.shape.rows();
  const OnnxName scores = graph.softmax(logits_.export_onnx(graph, tokens.rows), 2);
  OnnxName count = graph.integers({tokens_of_expert(per_image, e, experts_per_token_)}), pools = scores;
  if (!by_image_) {
    pools = graph.reshape(scores, {1, -1, e});
    count = export_tokens_of_expert(graph, graph.multiply(tokens.images, graph.integers({per_image})),
                                    share_of_expert(e, experts_per_token_));
  }
  const OnnxName taken = graph.transpose(best_of_pools(graph, graph.transpose(pools, {0, 2, 1}), count), {0, 2, 1});
  return choose_by_expert(graph, graph.cast(graph.reshape(taken, {-1, per_image, e}), OnnxType::boolean), scores, e);
}

OnnxRouting PatchChoiceRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const int64_t prefix = tokens.shape.prefix, per_image = tokens.shape.rows();
  check_patches(patches_, per_image - prefix);
  const OnnxName logits = logits_.export_onnx(graph, tokens.rows);
  const OnnxName patches = graph.transpose(graph.slice(logits, 1, prefix, per_image), {0, 2, 1});  // [N,E,patches]
  const OnnxName taken = best_of_pools(graph, patches, graph.integers({patches_}));
  const OnnxName is_taken = graph.cast(taken, OnnxType::boolean);
  OnnxName gates = taken;
  if (gates_ == PatchGates::softmax_topl) gates = graph.softmax(patches, 2);
  if (gates_ == PatchGates::topl_softmax)
    gates = graph.softmax(graph.where(is_taken, patches, graph.number(-std::numeric_limits<float>::infinity())), 2);
  const OnnxName before = graph.integers({0, prefix, 0, 0, 0, 0});  // zeros for the prefix
  const auto of_tokens = [&](const OnnxName& x) {
    const OnnxName turned = graph.transpose(x, {0, 2, 1});
    return prefix == 0 ? turned : graph.node("Pad", {turned, before});
  };
  return choose_by_expert(graph, graph.cast(of_tokens(taken), OnnxType::boolean), of_tokens(gates), experts());
}

std::pair<std::string, std::string> export_above_threshold(OnnxGraph& graph, const OnnxName& logits,
                                                           const OnnxName& threshold) {
  const OnnxName taken = graph.node("Greater", {graph.softmax(logits, -1), threshold});
  const OnnxName others = graph.number(-std::numeric_limits<float>::infinity());
  // (Without any expert the softmax is NaN.)
  return {taken, graph.where(taken, graph.softmax(graph.where(taken, logits, others), -1), graph.number(0))};
}

OnnxRouting ThresholdRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const OnnxName threshold = graph.floats("router.threshold", threshold_, {experts()});
  const auto [taken, gates] = export_above_threshold(graph, logits_.export_onnx(graph, tokens.rows), threshold);
  return choose_by_expert(graph, taken, gates, experts());
}

}  // namespace sparsight::engine
