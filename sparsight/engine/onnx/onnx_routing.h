// The decision of a router as tensors of an ONNX graph: what engine/routing.h is in memory. Letters: moe/axes.md; N
// images of S tokens.
#pragma once

#include "sparsight/engine/gate_rule.h"
#include "sparsight/engine/onnx/onnx_graph.h"
#include "sparsight/engine/value.h"

namespace sparsight::engine {

struct OnnxTokens {
  OnnxName rows;    // [N,S,D]
  OnnxName images;  // [1]: N
  Shape shape;      // S rows of D columns
};

// Column q of a token's k is its choice of rank q; or, where k = E and `by_expert`, it is expert q if that is taken.
struct OnnxRouting {
  OnnxName experts;                      // [N,S,k], int64; -1: none, and then the gate is 0
  OnnxName gates;                        // [N,S,k]
  OnnxName scores;                       // [N,S,k]: what capacity with priorities compares
  int64_t tokens = 0, k = 0, count = 0;  // S, k, E
  bool by_expert = false;
  int64_t per_token = 0;  // Routing::per_token: 0: no capacity
  bool varying = false;
  OnnxName made;             // `experts` before capacity
  bool gathers_rows = true;  // OnnxExport::gathers_rows

  bool is_gated() const { return !gates.empty(); }  // else all experts are taken, without gates

  // A router that mixes tokens has these alone, [N,S,P] for P slots of all experts.
  OnnxName dispatch, combine;
  int64_t slots = 0;
};

// Token t takes experts in this order, with these gates and scores. All [N,S,k].
OnnxRouting choose_per_token(const OnnxName& experts, const OnnxName& gates, const OnnxName& scores, int64_t k,
                             int64_t count);
// Experts take tokens: taken, gates: [N,S,E].
OnnxRouting choose_by_expert(OnnxGraph& graph, const OnnxName& taken, const OnnxName& gates, int64_t count);
// Leaves out the choices where `keeps` [N,S,k] does not hold.
void select_choices(OnnxGraph& graph, const OnnxName& keeps, OnnxRouting& routing);

// Marks choices as dropped by capacity: `kept` [N,S,k] says which are not.
void drop_choices(OnnxGraph& graph, const OnnxName& kept, OnnxRouting& routing);

// The gates of all experts, [N,S,E]; 0 where a token does not take the expert. And whether it takes it: 1 or 0.
OnnxName all_gates(OnnxGraph& graph, const OnnxRouting& routing);
OnnxName all_taken(OnnxGraph& graph, const OnnxRouting& routing);

void apply_gate_rule(OnnxGraph& graph, GateRule rule, OnnxRouting& routing);
// "<name>.experts" and "<name>.gates", or "<name>.dispatch" and "<name>.combine".
void add_outputs(OnnxGraph& graph, const std::string& name, const OnnxRouting& routing);

// 0 .. count-1
OnnxName onnx_numbers(OnnxGraph& graph, int64_t count);
// [..,k] of experts -> [..,k,E]: whether it is that one.
OnnxName one_hot(OnnxGraph& graph, const OnnxName& experts, int64_t count);
// Comparisons of floats with a double: x > bound, x >= bound.
OnnxName is_above(OnnxGraph& graph, const OnnxName& x, double bound);
OnnxName is_at_least(OnnxGraph& graph, const OnnxName& x, double bound);

}  // namespace sparsight::engine
