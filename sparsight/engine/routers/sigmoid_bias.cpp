#include "sparsight/engine/routers/sigmoid_bias.h"

#include <algorithm>
#include <limits>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/kernels/routing/top_experts.h"

namespace sparsight::engine {

// biased: [tokens,E]. Sets it to -inf for the experts of groups that a token does not keep.
void SigmoidBiasRouter::limit(cpu::Threads& threads, float* biased, int64_t tokens) const {
  if (rule_.groups == rule_.kept) return;
  const int64_t groups = rule_.groups, size = experts() / groups, best = rule_.k / rule_.kept;
  thread_local Array<int64_t> chosen, kept;
  thread_local Array<float> score;
  cpu::top_experts(threads, biased, tokens * groups, size, best, chosen.resize(tokens * groups * best));
  score.resize(tokens * groups);
  for (int64_t g = 0; g < score.size(); ++g) {
    score[g] = 0;
    for (int64_t q = 0; q < best; ++q) score[g] += biased[g * size + chosen[g * best + q]];
  }
  cpu::top_experts(threads, score.data(), tokens, groups, rule_.kept, kept.resize(tokens * rule_.kept));
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t *first = kept.data() + t * rule_.kept, *end = first + rule_.kept;
    for (int64_t g = 0; g < groups; ++g)
      if (std::find(first, end, g) == end)
        std::fill_n(biased + (t * groups + g) * size, size, -std::numeric_limits<float>::infinity());
  }
}

void SigmoidBiasRouter::choose(const RouterInput& input, Routing& routing) const {
  const int64_t tokens = routing.tokens, e = experts(), k = rule_.k;
  thread_local Array<float> biased;
  thread_local Array<int64_t> chosen;
  logits_.run(input.threads, input.tokens, tokens, routing.logits.resize(tokens * e));
  routing.scores.resize(tokens * e), biased.resize(tokens * e);
  for (int64_t i = 0; i < tokens * e; ++i) {
    routing.scores[i] = sigmoid(routing.logits[i]);
    biased[i] = routing.scores[i] + bias_[static_cast<size_t>(i % e)];
  }
  limit(input.threads, biased.data(), tokens);
  cpu::top_experts(input.threads, biased.data(), tokens, e, k, chosen.resize(tokens * k));
  routing.choose_per_token(chosen.data(), k);
  for (int64_t t = 0; t < tokens; ++t) {
    float sum = 0;
    const auto score = [&](int64_t q) { return routing.scores[t * e + chosen[t * k + q]]; };
    for (int64_t q = 0; q < k; ++q) sum += score(q);
    sum = std::max(sum, 1e-20F);
    for (int64_t q = 0; q < k; ++q) routing.gate[t * k + q] = score(q) / sum * static_cast<float>(rule_.scale);
  }
}

void SigmoidBiasRouter::visit(Fields& fields, const Shape& tokens) {
  logits_.visit(fields, tokens.columns);
  fields.floats("bias", bias_, experts());
  fields.number("k", rule_.k, {1, experts()});
  fields.real("scale", rule_.scale, {});
  fields.number("groups", rule_.groups, {1, experts()});
  fields.number("groups_kept", rule_.kept, {1, rule_.groups});
  const int64_t size = experts() / rule_.groups, best = rule_.k / rule_.kept;
  fields.require(experts() % rule_.groups == 0 && rule_.k <= rule_.kept * size &&
                     (rule_.groups == rule_.kept || (best >= 1 && best <= size)),
                 "equal groups with as many experts as a token takes of each");
}

// biased: [N,S,E].
std::string SigmoidBiasRouter::export_limit(OnnxGraph& graph, const OnnxName& biased, int64_t tokens) const {
  if (rule_.groups == rule_.kept) return biased;
  const int64_t groups = rule_.groups, size = experts() / groups;
  const OnnxName by_group = graph.reshape(biased, {-1, tokens, groups, size});
  const OnnxName score = graph.sum(graph.top_k(by_group, rule_.k / rule_.kept, 3).first, 3, false);
  const OnnxName kept = one_hot(graph, graph.top_k(score, rule_.kept, 2).second, groups);  // [N,S,kept,G]
  const OnnxName keeps = graph.cast(graph.sum(graph.cast(kept, OnnxType::fp32), 2, false), OnnxType::boolean);
  const OnnxName limited =
      graph.where(graph.unsqueeze(keeps, -1), by_group, graph.number(-std::numeric_limits<float>::infinity()));
  return graph.reshape(limited, {-1, tokens, experts()});
}

OnnxRouting SigmoidBiasRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const OnnxName all = graph.node("Sigmoid", {logits_.export_onnx(graph, tokens.rows)});
  const OnnxName biased = graph.add(all, graph.floats("router.expert_bias", bias_, {experts()}));
  const OnnxName chosen = graph.top_k(export_limit(graph, biased, tokens.shape.rows()), rule_.k, 2).second;
  const OnnxName scores = graph.gather_elements(all, chosen, 2);
  const OnnxName sum = graph.node("Max", {graph.sum(scores, 2, true), graph.number(1e-20F)});
  const OnnxName gates = graph.multiply(graph.divide(scores, sum), graph.number(static_cast<float>(rule_.scale)));
  return choose_per_token(chosen, gates, scores, rule_.k, experts());
}

}  // namespace sparsight::engine
