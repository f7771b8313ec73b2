#include "sparsight/engine/onnx/onnx_routing.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace sparsight::engine {
namespace {

// The nearest float that is not above (or below) the number.
float float_not_above(double number) {
  const auto near = static_cast<float>(number);
  return static_cast<double>(near) <= number ? near : std::nextafter(near, -std::numeric_limits<float>::infinity());
}
float float_not_below(double number) { return -float_not_above(-number); }

}  // namespace

OnnxRouting choose_per_token(const OnnxName& experts, const OnnxName& gates, const OnnxName& scores, int64_t k,
                             int64_t count) {
  OnnxRouting routing;
  routing.experts = routing.made = experts, routing.gates = gates, routing.scores = scores;
  routing.k = routing.per_token = k, routing.count = count;
  return routing;
}

OnnxRouting choose_by_expert(OnnxGraph& graph, const OnnxName& taken, const OnnxName& gates, int64_t count) {
  OnnxRouting routing;
  routing.experts = graph.where(taken, onnx_numbers(graph, count), graph.integer(-1));
  routing.made = routing.experts;
  routing.gates = routing.scores = graph.where(taken, gates, graph.number(0));
  routing.k = routing.count = count;
  routing.by_expert = true;
  return routing;
}

void select_choices(OnnxGraph& graph, const OnnxName& keeps, OnnxRouting& routing) {
  drop_choices(graph, keeps, routing);
  routing.made = routing.experts;
}

void drop_choices(OnnxGraph& graph, const OnnxName& kept, OnnxRouting& routing) {
  routing.experts = graph.where(kept, routing.experts, graph.integer(-1));
  routing.gates = graph.where(kept, routing.gates, graph.number(0));
}

OnnxName all_gates(OnnxGraph& graph, const OnnxRouting& routing) {
  if (routing.by_expert) return routing.gates;
  const OnnxName chosen = graph.cast(one_hot(graph, routing.experts, routing.count), OnnxType::fp32);
  return graph.sum(graph.multiply(chosen, graph.unsqueeze(routing.gates, -1)), 2, false);
}

OnnxName all_taken(OnnxGraph& graph, const OnnxRouting& routing) {
  if (routing.by_expert)
    return graph.cast(graph.node("GreaterOrEqual", {routing.experts, graph.integer(0)}), OnnxType::fp32);
  return graph.sum(graph.cast(one_hot(graph, routing.experts, routing.count), OnnxType::fp32), 2, false);
}

void apply_gate_rule(OnnxGraph& graph, GateRule rule, OnnxRouting& routing) {
  if (rule == GateRule::router) return;
  const OnnxName zero = graph.number(0);
  if (rule == GateRule::one) {
    const OnnxName exists = graph.node("GreaterOrEqual", {routing.made, graph.integer(0)});
    routing.gates = graph.cast(exists, OnnxType::fp32);
    return;
  }
  const OnnxName sum = graph.sum(routing.gates, 2, true);
  const OnnxName divisor = graph.where(graph.node("Equal", {sum, zero}), graph.number(1), sum);
  routing.gates = graph.divide(routing.gates, divisor);
}

void add_outputs(OnnxGraph& graph, const std::string& name, const OnnxRouting& routing) {
  constexpr int64_t kImages = OnnxGraph::kImages;
  if (routing.slots > 0) {
    const std::vector<int64_t> dims{kImages, routing.tokens, routing.slots};
    graph.add_output(name + ".dispatch", routing.dispatch, OnnxType::fp32, dims);
    graph.add_output(name + ".combine", routing.combine, OnnxType::fp32, dims);
    return;
  }
  const std::vector<int64_t> dims{kImages, routing.tokens, routing.k};
  graph.add_output(name + ".experts", routing.experts, OnnxType::int64, dims);
  graph.add_output(name + ".gates", routing.gates, OnnxType::fp32, dims);
}

OnnxName onnx_numbers(OnnxGraph& graph, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return graph.integers(numbers);
}

// (The operator OneHot takes -1 for the last expert.)
OnnxName one_hot(OnnxGraph& graph, const OnnxName& experts, int64_t count) {
  return graph.node("Equal", {graph.unsqueeze(experts, -1), onnx_numbers(graph, count)});
}

OnnxName is_above(OnnxGraph& graph, const OnnxName& x, double bound) {
  return graph.node("Greater", {x, graph.number(float_not_above(bound))});
}

OnnxName is_at_least(OnnxGraph& graph, const OnnxName& x, double bound) {
  return graph.node("GreaterOrEqual", {x, graph.number(float_not_below(bound))});
}

}  // namespace sparsight::engine
