#include "sparsight/engine/routers/two_level.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/engine/routers/expert_picks.h"
#include "sparsight/kernels/elementwise/softmax_rows.h"
#include "sparsight/kernels/memory/scratch.h"
#include "sparsight/kernels/routing/top_experts.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {
namespace {

// The decision of one level for `level.logits`.
void choose_level(cpu::Threads& threads, const LevelRule& rule, const float* threshold, Routing& level) {
  if (rule.k == 0) return choose_above_threshold(threads, threshold, level);
  const int64_t k = rule.k, choices = level.experts;
  thread_local Array<int64_t> chosen;
  cpu::softmax_rows(threads, level.logits.data(), level.scores.resize(level.tokens * choices), level.tokens, choices);
  cpu::top_experts(threads, level.logits.data(), level.tokens, choices, k, chosen.resize(level.tokens * k));
  level.choose_per_token(chosen.data(), k);
  for (int64_t a = 0; a < level.assignments(); ++a)
    level.gate[a] = level.logits[level.token[a] * choices + level.expert[a]];
  cpu::softmax_rows(threads, level.gate.data(), level.gate.data(), level.tokens, k);
}

// Each token's assignments by decreasing gate; equal gates in the order of `pair`, NaN last.
void sort_by_gate(Routing& routing, const std::pmr::vector<int64_t>& pair, int64_t per_token) {
  std::pmr::vector<int64_t> order(pair.size(), cpu::scratch()), expert(pair.size(), cpu::scratch());
  std::pmr::vector<float> gate(pair.size(), cpu::scratch());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto key = [&](int64_t a) {
    return std::tuple(routing.token[a], std::isnan(routing.gate[a]) ? 1.0F : -routing.gate[a],
                      pair[static_cast<size_t>(a)], a);
  };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
  for (size_t i = 0; i < order.size(); ++i) expert[i] = routing.expert[order[i]], gate[i] = routing.gate[order[i]];
  routing.choose_per_token(expert.data(), per_token);
  std::copy(gate.begin(), gate.end(), routing.gate.data());
}

}  // namespace

void TwoLevelRouter::choose(const RouterInput& input, Routing& routing) const {
  const int64_t tokens = routing.tokens, groups = primary_.outputs(), e = experts(), size = e / groups,
                width = primary_.inputs();
  thread_local Routing of_groups, inner;
  thread_local cpu::Workspace rows;
  of_groups.start(routing.layout, groups);
  primary_.run(input.threads, input.tokens, tokens, of_groups.logits.resize(tokens * groups));
  choose_level(input.threads, groups_, groups_.threshold.data(), of_groups);
  of_groups.keep_all();
  std::fill_n(routing.scores.resize(tokens * e), tokens * e, 0.0F);
  std::pmr::vector<int64_t> pair(cpu::scratch());  // (token, choice of a group) of each assignment
  for (int64_t g = 0; g < groups; ++g) {
    std::pmr::vector<int64_t> members(of_groups.order.data() + of_groups.offsets[g],
                                      of_groups.order.data() + of_groups.offsets[g + 1], cpu::scratch());
    std::sort(members.begin(), members.end(),
              [&](int64_t a, int64_t b) { return of_groups.token[a] < of_groups.token[b]; });
    const auto count = static_cast<int64_t>(members.size());
    if (count == 0) continue;
    float* const x = rows.floats(count * width);
    for (int64_t r = 0; r < count; ++r)
      std::copy_n(input.tokens + of_groups.token[members[static_cast<size_t>(r)]] * width, width, x + r * width);
    inner.start({.images = count, .per_image = 1}, size);
    secondary_.run(input.threads, x, count, g * size, size, inner.logits.resize(count * size));
    choose_level(input.threads, experts_, experts_.threshold.empty() ? nullptr : experts_.threshold.data() + g * size,
                 inner);
    const int64_t begin = routing.assignments();
    routing.set_assignments(begin + inner.assignments());
    for (int64_t i = 0; i < inner.assignments(); ++i) {
      const int64_t member = members[static_cast<size_t>(inner.token[i])];
      routing.token[begin + i] = of_groups.token[member];
      routing.expert[begin + i] = g * size + inner.expert[i];
      routing.rank[begin + i] = inner.rank[i];
      routing.gate[begin + i] = inner.gate[i] * of_groups.gate[member];
      pair.push_back(member);
    }
    for (int64_t r = 0; r < count; ++r) {
      const int64_t token = of_groups.token[members[static_cast<size_t>(r)]];
      const float share = sorted_ ? of_groups.scores[token * groups + g] : 1.0F;
      for (int64_t c = 0; c < size; ++c) routing.scores[token * e + g * size + c] = inner.scores[r * size + c] * share;
    }
  }
  if (sorted_) sort_by_gate(routing, pair, groups_.k * experts_.k);
}

void TwoLevelRouter::visit(Fields& fields, const Shape& tokens) {
  fields.flag("sorted", sorted_);
  primary_.visit(fields, "primary", tokens.columns);
  secondary_.visit(fields, "secondary", tokens.columns);
  const int64_t groups = primary_.outputs();
  fields.require(experts() % groups == 0 && (groups == 1 || secondary_.transposed()),
                 "groups of equally many experts, whose weights are rows");
  const auto visit_level = [&](const char* name, LevelRule& rule, int64_t choices, int64_t thresholds) {
    fields.part(name, [&] {
      fields.number("k", rule.k, {0, choices});
      if (rule.k == 0) fields.floats("threshold", rule.threshold, thresholds);
    });
  };
  visit_level("groups", groups_, groups, groups);
  visit_level("experts", experts_, experts() / groups, experts());
  fields.require(!sorted_ || (groups_.k > 0 && experts_.k > 0), "numbers of choices where choices are sorted");
}

namespace {

// Whether each choice of the last axis is taken, and its gate.
std::pair<OnnxName, OnnxName> export_level(OnnxGraph& graph, const LevelRule& rule, const OnnxName& logits,
                                           int64_t choices, const std::vector<int64_t>& threshold_dims) {
  if (rule.k == 0)
    return export_above_threshold(graph, logits, graph.floats("router.threshold", rule.threshold, threshold_dims));
  const OnnxName best = one_hot(graph, graph.top_k(logits, rule.k, -1).second, choices);
  const OnnxName count = graph.sum(graph.cast(best, OnnxType::fp32), -2, false);
  const OnnxName taken = graph.cast(count, OnnxType::boolean);
  const OnnxName others = graph.number(-std::numeric_limits<float>::infinity());
  return {taken, graph.softmax(graph.where(taken, logits, others), -1)};
}

}  // namespace

// secondary: [N,S,G,E/G]. Pairs of a chosen group and a chosen expert in it, sorted by gate.
OnnxRouting TwoLevelRouter::export_sorted(OnnxGraph& graph, const OnnxName& primary, const OnnxName& secondary,
                                          int64_t tokens) const {
  const int64_t groups = primary_.outputs(), size = experts() / groups, k = groups_.k * experts_.k;
  const auto [group_values, group] = graph.top_k(primary, groups_.k, 2);  // [N,S,groups taken]
  const OnnxName dims = graph.integers({1, 1, 1, size});
  const auto of_group = [&](const OnnxName& x) { return graph.unsqueeze(x, -1); };
  const OnnxName logits = graph.gather_elements(secondary, graph.node("Expand", {of_group(group), dims}), 2);
  const auto [values, inner] = graph.top_k(logits, experts_.k, 3);
  const auto listed = [&](const OnnxName& x) { return graph.reshape(x, {-1, tokens, k}); };
  const OnnxName expert = listed(graph.add(graph.multiply(of_group(group), graph.integer(size)), inner));
  const OnnxName gate = listed(graph.multiply(graph.softmax(values, 3), of_group(graph.softmax(group_values, 2))));
  const OnnxName share = of_group(graph.gather_elements(graph.softmax(primary, 2), group, 2));
  const OnnxName score = listed(graph.multiply(graph.gather_elements(graph.softmax(logits, 3), inner, 3), share));
  const auto [gates, order] = graph.top_k(gate, k, 2);
  return choose_per_token(graph.gather_elements(expert, order, 2), gates, graph.gather_elements(score, order, 2), k,
                          experts());
}

OnnxRouting TwoLevelRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const int64_t groups = primary_.outputs(), size = experts() / groups, per_image = tokens.shape.rows();
  const OnnxName primary = primary_.export_onnx(graph, "router.primary", tokens.rows);
  const OnnxName secondary =
      graph.reshape(secondary_.export_onnx(graph, "router.secondary", tokens.rows), {-1, per_image, groups, size});
  if (sorted_) return export_sorted(graph, primary, secondary, per_image);
  const auto [takes_group, group_gate] = export_level(graph, groups_, primary, groups, {groups});
  const auto [takes_expert, gate] = export_level(graph, experts_, secondary, size, {groups, size});
  const OnnxName taken = graph.node("And", {takes_expert, graph.unsqueeze(takes_group, -1)});
  const OnnxName product = graph.multiply(gate, graph.unsqueeze(group_gate, -1));
  const auto of_experts = [&](const OnnxName& x) { return graph.reshape(x, {-1, per_image, experts()}); };
  return choose_by_expert(graph, of_experts(taken), of_experts(product), experts());
}

}  // namespace sparsight::engine
