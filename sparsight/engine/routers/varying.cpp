#include "sparsight/engine/routers/varying.h"

#include <algorithm>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/kernels/elementwise/softmax_rows.h"
#include "sparsight/kernels/routing/top_experts.h"

namespace sparsight::engine {
namespace {

// Gives each token the first of `maximum` experts ranked by logit, those for which used(token, scores so far, gate)
// holds, and gates from routing.scores.
template <class Used>
void choose_some(cpu::Threads& threads, Routing& routing, int64_t maximum, const Used& used) {
  thread_local Array<int64_t> ranked;
  thread_local Array<bool> keeps;
  cpu::top_experts(threads, routing.logits.data(), routing.tokens, routing.experts, maximum,
                   ranked.resize(routing.tokens * maximum));
  routing.choose_per_token(ranked.data(), maximum);
  routing.varying = true;
  keeps.resize(routing.assignments());
  for (int64_t a = 0; a < routing.assignments(); ++a) {
    routing.gate[a] = routing.scores[routing.token[a] * routing.experts + routing.expert[a]];
    keeps[a] = used(a);
  }
  routing.select(keeps.data());
}

}  // namespace

void TopPRouter::choose(const RouterInput& input, Routing& routing) const {
  const int64_t numbers = routing.tokens * experts();
  logits_.run(input.threads, input.tokens, routing.tokens, routing.logits.resize(numbers));
  cpu::softmax_rows(input.threads, routing.logits.data(), routing.scores.resize(numbers), routing.tokens, experts());
  double sum = 0;
  choose_some(input.threads, routing, maximum_, [&](int64_t a) {
    if (routing.rank[a] == 0) sum = 0;
    sum += static_cast<double>(routing.gate[a]);
    const float before = static_cast<float>(sum) - routing.gate[a];
    return routing.rank[a] == 0 || !(static_cast<double>(before) >= p_);  // NaN uses all
  });
}

void ReluRouter::choose(const RouterInput& input, Routing& routing) const {
  const int64_t e = experts(), numbers = routing.tokens * e;
  const float* const logits = routing.logits.resize(numbers);
  logits_.run(input.threads, input.tokens, routing.tokens, routing.logits.data());
  float* const scores = routing.scores.resize(numbers);
  const auto positive = [](float logit) { return !(logit <= 0); };  // NaN counts as chosen
  int64_t most = 1;
  for (int64_t t = 0; t < routing.tokens; ++t)
    most = std::max<int64_t>(most, std::count_if(logits + t * e, logits + (t + 1) * e, positive));
  std::transform(logits, logits + numbers, scores, [](float logit) { return logit <= 0 ? 0.0F : logit; });
  choose_some(input.threads, routing, most,
              [&](int64_t a) { return positive(logits[routing.token[a] * e + routing.expert[a]]); });
  routing.per_token = e;
}

void TopPRouter::visit(Fields& fields, const Shape& tokens) {
  logits_.visit(fields, tokens.columns);
  fields.real("p", p_, {});
  fields.number("maximum", maximum_, {1, experts()});
}

void ReluRouter::visit(Fields& fields, const Shape& tokens) { logits_.visit(fields, tokens.columns); }

OnnxRouting TopPRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const OnnxName logits = logits_.export_onnx(graph, tokens.rows);
  const OnnxName chosen = graph.top_k(logits, maximum_, 2).second;
  const OnnxName gates = graph.gather_elements(graph.softmax(logits, 2), chosen, 2);
  OnnxRouting routing = choose_per_token(chosen, gates, gates, maximum_, experts());
  routing.varying = true;
  const OnnxName sum = graph.node("CumSum", {graph.cast(gates, OnnxType::fp64), graph.integer(2)});
  const OnnxName before = graph.node("Sub", {graph.cast(sum, OnnxType::fp32), gates});
  const OnnxName is_first = graph.node("Equal", {onnx_numbers(graph, maximum_), graph.integer(0)});
  select_choices(graph, graph.node("Or", {graph.node("Not", {is_at_least(graph, before, p_)}), is_first}), routing);
  return routing;
}

OnnxRouting ReluRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const auto [logits, chosen] = graph.top_k(logits_.export_onnx(graph, tokens.rows), experts(), 2);
  const OnnxName gates = graph.node("Relu", {logits});
  OnnxRouting routing = choose_per_token(chosen, gates, gates, experts(), experts());
  routing.varying = true;
  select_choices(graph, graph.node("Not", {graph.node("LessOrEqual", {logits, graph.number(0)})}), routing);
  return routing;
}

}  // namespace sparsight::engine
