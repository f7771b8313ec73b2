#include "sparsight/engine/onnx/onnx_capacity.h"

#include <limits>

namespace sparsight::engine {
namespace {

// The tokens of the batch in G groups of `size`, of which the last may be filled up.
struct OnnxGroups {
  OnnxGraph& graph;
  int64_t size = 0;      // 0: one group of all T
  OnnxName tokens, all;  // [1]: T; the size as a tensor
  OnnxName sizes;        // [G]: without what fills up

  // [N,S,columns] -> [G,size,columns], filled up with `filling`, a tensor of the same type.
  OnnxName split(const OnnxName& x, int64_t columns, const OnnxName& filling) const {
    if (size == 0) return graph.reshape(x, {1, -1, columns});
    const OnnxName last = graph.node("Mod", {tokens, all}),
                   missing = graph.node("Mod", {graph.node("Sub", {all, last}), all}), none = graph.integers({0});
    const OnnxName pads = graph.concat({none, none, missing, none}, 0);
    const OnnxName padded = graph.node("Pad", {graph.reshape(x, {-1, columns}), pads, filling});
    return graph.reshape(padded, {-1, size, columns});
  }
  // [G,size,columns] -> [N,S,columns]
  OnnxName join(const OnnxName& x, int64_t columns, int64_t per_image) const {
    const OnnxName filled = graph.reshape(x, {-1, columns}), first = graph.integers({0});
    return graph.reshape(graph.node("Slice", {filled, first, tokens, first}), {-1, per_image, columns});
  }
  // Dimensions of [G, k size, columns].
  std::vector<int64_t> dims(int64_t k, int64_t columns) const {
    return size == 0 ? std::vector<int64_t>{1, -1, columns} : std::vector<int64_t>{-1, k * size, columns};
  }
};

OnnxGroups make_groups(OnnxGraph& graph, const CapacityOptions& options, const OnnxTokens& tokens) {
  const int64_t per_image = tokens.shape.rows();
  OnnxGroups groups{graph, options.group * (options.group_unit == "images" ? per_image : 1), {}, {}, {}};
  groups.tokens = graph.multiply(tokens.images, graph.integers({per_image}));
  groups.all = groups.size == 0 ? groups.tokens : graph.integers({groups.size});
  const auto scalar = [&](const OnnxName& x) { return graph.node("Squeeze", {x}); };
  const OnnxName starts = graph.node("Range", {graph.integer(0), scalar(groups.tokens), scalar(groups.all)});
  groups.sizes = graph.node("Min", {graph.node("Sub", {groups.tokens, starts}), groups.all});
  return groups;
}

// C of each group, as expert_capacity() computes it. k: choices of a token, fp64.
OnnxName group_capacity(OnnxGraph& graph, const CapacityOptions& options, double factor, const OnnxName& sizes,
                        int64_t experts, const OnnxName& k) {
  constexpr double kRounding = 1e-9;  // as in capacity.cpp
  const OnnxName choices = options.count_k ? k : graph.wide_number(1), scale = graph.wide_number(factor),
                 up = graph.wide_number(1 + kRounding), down = graph.wide_number(1 - kRounding);
  OnnxName rows;
  if (options.rounding == "floor_per_choice") {
    const OnnxName share = graph.divide(graph.add(sizes, graph.integer(experts - 1)), graph.integer(experts));
    const OnnxName one = graph.multiply(graph.multiply(scale, graph.cast(share, OnnxType::fp64)), up);
    rows = graph.node("Floor", {graph.multiply(graph.multiply(choices, graph.node("Floor", {one})), up)});
  } else {
    const OnnxName all = graph.multiply(graph.multiply(scale, choices), graph.cast(sizes, OnnxType::fp64));
    const OnnxName share = graph.divide(all, graph.wide_number(static_cast<double>(experts)));
    if (options.rounding == "ceil") rows = graph.node("Ceil", {graph.multiply(share, down)});
    if (options.rounding == "floor") rows = graph.node("Floor", {graph.multiply(share, up)});
    if (options.rounding == "round")
      rows = graph.node("Floor", {graph.add(graph.multiply(share, up), graph.wide_number(0.5))});
  }
  const OnnxName limited = graph.node("Min", {graph.cast(rows, OnnxType::int64), sizes});
  const OnnxName least = graph.node("Max", {limited, graph.integer(options.minimum)});
  const OnnxName multiple = graph.integer(options.multiple);
  return graph.multiply(graph.divide(graph.add(least, graph.integer(options.multiple - 1)), multiple), multiple);
}

// The order in which the tokens of each group get slots, [G,size,k].
OnnxName slot_order(const OnnxGroups& groups, const OnnxRouting& routing, const OnnxName& exists, bool by_sum) {
  OnnxGraph& graph = groups.graph;
  const OnnxName scores = graph.cast(graph.where(exists, routing.scores, graph.number(0)), OnnxType::fp64);
  const OnnxName largest = graph.node("ReduceMax", {scores}, {{"axes", std::vector<int64_t>{2}}});
  const OnnxName priority = by_sum ? graph.sum(scores, 2, true) : graph.node("Max", {largest, graph.wide_number(0)});
  const OnnxName in_groups = groups.split(priority, 1, graph.wide_number(-std::numeric_limits<double>::infinity()));
  const OnnxName order = graph.top_k(in_groups, groups.all, 1).second;  // [G,size,1]
  const OnnxName dims =
      graph.concat({graph.shape(graph.node("Squeeze", {order, graph.integers({2})})), graph.integers({routing.k})}, 0);
  return graph.node("Expand", {order, dims});
}

// The slots of choices in the buffers of their experts, [G,size,k]. experts: the same, in the order of slots.
OnnxName slots(const OnnxGroups& groups, const OnnxName& experts, const OnnxRouting& routing) {
  OnnxGraph& graph = groups.graph;
  const int64_t k = routing.k, count = routing.count;
  const OnnxName by_rank =
      graph.reshape(graph.transpose(experts, {0, 2, 1}), groups.dims(k, 1));  // first choices first
  const OnnxName chosen =
      graph.cast(graph.node("Equal", {by_rank, onnx_numbers(graph, count)}), OnnxType::int64);  // [G, k size, E]
  const OnnxName before = graph.node("CumSum", {chosen, graph.integer(1)}, {{"exclusive", 1}});
  const OnnxName slot = graph.sum(graph.multiply(before, chosen), 2, false);
  const std::vector<int64_t> dims =
      groups.size == 0 ? std::vector<int64_t>{1, k, -1} : std::vector<int64_t>{-1, k, groups.size};
  return graph.transpose(graph.reshape(slot, dims), {0, 2, 1});
}

void renormalize(OnnxGraph& graph, const OnnxName& kept, OnnxRouting& routing) {
  const OnnxName zero = graph.number(0);
  routing.gates = graph.where(kept, routing.gates, zero);
  const OnnxName sum = graph.sum(routing.gates, 2, true);
  routing.gates = graph.divide(routing.gates, graph.where(graph.node("Greater", {sum, zero}), sum, graph.number(1)));
}

}  // namespace

OnnxName apply_capacity(OnnxGraph& graph, const CapacityOptions& options, double factor, const OnnxTokens& tokens,
                        OnnxRouting& routing) {
  if (factor == 0 || routing.per_token == 0) return "";
  const OnnxGroups groups = make_groups(graph, options, tokens);
  const OnnxName exists = graph.node("GreaterOrEqual", {routing.experts, graph.integer(0)});
  const OnnxName in_groups = groups.split(routing.experts, routing.k, graph.integer(-1));  // [G,size,k]
  OnnxName average = graph.wide_number(static_cast<double>(routing.per_token));
  if (routing.varying) {
    const OnnxName made = graph.cast(graph.node("GreaterOrEqual", {in_groups, graph.integer(0)}), OnnxType::fp64);
    const OnnxName of_groups = graph.node("ReduceSum", {made, graph.integers({1, 2})}, {{"keepdims", 0}});
    average = graph.divide(of_groups, graph.cast(graph.node("Max", {groups.sizes, graph.integer(1)}), OnnxType::fp64));
  }
  const OnnxName capacity = group_capacity(graph, options, factor, groups.sizes, routing.count, average);
  OnnxName position;
  if (options.priority == "none") {
    position = slots(groups, in_groups, routing);
  } else {
    const OnnxName order = slot_order(groups, routing, exists, options.priority == "sum_gates");
    const OnnxName ordered = slots(groups, graph.gather_elements(in_groups, order, 1), routing);
    position = graph.node("ScatterElements", {ordered, order, ordered}, {{"axis", 1}});
  }
  const OnnxName fits = graph.node("Less", {position, graph.reshape(capacity, {-1, 1, 1})});
  OnnxName kept = graph.node("And", {groups.join(fits, routing.k, tokens.shape.rows()), exists});
  if (options.renormalize) renormalize(graph, kept, routing);
  return kept;
}

}  // namespace sparsight::engine
