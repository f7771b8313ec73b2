#include "sparsight/engine/routers/top_k.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/kernels/elementwise/softmax_rows.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/routing/top_experts.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {
namespace {

// Each of `from`'s rows of `columns` values `times` times.
template <class T>
void spread(const T* from, int64_t rows, int64_t columns, int64_t times, T* to) {
  for (int64_t r = 0; r < rows; ++r, from += columns)
    for (int64_t i = 0; i < times; ++i, to += columns) std::copy_n(from, columns, to);
}

// The choices of rows of logits.
struct Choices {
  Array<float> logits, scores, gate;  // [R,E], [R,E], [R,k]
  Array<int64_t> expert;              // [R,k]
};

void choose_rows(cpu::Threads& threads, const TopKRule& rule, int64_t rows, int64_t experts, Choices& choices) {
  const float* const logits = choices.logits.data();
  float* const scores = choices.scores.resize(rows * experts);
  int64_t* const expert = choices.expert.resize(rows * rule.k);
  float* const gate = choices.gate.resize(rows * rule.k);
  if (rule.gates == Gates::sigmoid)
    std::transform(logits, logits + rows * experts, scores, sigmoid);
  else
    cpu::softmax_rows(threads, logits, scores, rows, experts);
  cpu::top_experts(threads, logits, rows, experts, rule.k, expert);
  const float* const chosen_from = rule.gates == Gates::of_chosen ? logits : scores;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t q = 0; q < rule.k; ++q) gate[r * rule.k + q] = chosen_from[r * experts + expert[r * rule.k + q]];
  if (rule.gates == Gates::of_chosen) cpu::softmax_rows(threads, gate, gate, rows, rule.k);
}

}  // namespace

float sigmoid(float x) { return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x)))); }

void check_class_token(const TokenLayout& layout) {
  if (layout.prefix == 0)
    fail_usage("[router] input = \"class_token\", but the model has no class token; set router.input = \"mean_all\"");
}

const float* TopKRouter::image_vectors(const RouterInput& input, const TokenLayout& layout) const {
  const int64_t width = logits_.width(), per_image = layout.per_image;
  thread_local cpu::Workspace space;
  float* const vectors = space.floats(layout.images * width);
  using Source = ImageVector::Source;
  const bool class_token =
      vector_->source == Source::class_token || (vector_->source == Source::automatic && layout.prefix > 0);
  if (class_token) check_class_token(layout);
  const int64_t first = vector_->source == Source::mean_patches ? layout.prefix : 0, count = per_image - first;
  for (int64_t image = 0; image < layout.images; ++image) {
    const float* const tokens = input.tokens + image * per_image * width;
    float* const vector = vectors + image * width;
    if (class_token) {
      std::copy_n(tokens, width, vector);
    } else {
      std::fill_n(vector, width, 0.0F);
      for (int64_t t = first; t < per_image; ++t) cpu::kernels().add_scaled(1, tokens + t * width, vector, width);
      for (int64_t c = 0; c < width; ++c) vector[c] /= static_cast<float>(std::max<int64_t>(1, count));
    }
    if (vector_->norm)
      cpu::kernels().layer_norm(vector, vector_->norm_weight.data(), vector_->norm_bias.data(), vector_->norm_epsilon,
                                width, vector, cpu::kBlock);
  }
  return vectors;
}

void TopKRouter::choose(const RouterInput& input, Routing& routing) const {
  const TokenLayout& layout = routing.layout;
  const int64_t rows = vector_ ? layout.images : routing.tokens, times = vector_ ? layout.per_image : 1, e = experts();
  thread_local Choices choices;
  const float* const seen = vector_ ? image_vectors(input, layout) : input.tokens;
  logits_.run(input.threads, seen, rows, choices.logits.resize(rows * e));
  choose_rows(input.threads, rule_, rows, e, choices);
  spread(choices.logits.data(), rows, e, times, routing.logits.resize(routing.tokens * e));
  spread(choices.scores.data(), rows, e, times, routing.scores.resize(routing.tokens * e));
  thread_local Array<int64_t> expert;
  spread(choices.expert.data(), rows, rule_.k, times, expert.resize(routing.tokens * rule_.k));
  routing.choose_per_token(expert.data(), rule_.k);
  spread(choices.gate.data(), rows, rule_.k, times, routing.gate.data());
  if (!rule_.drops_later || rule_.k == 1) return;
  routing.skips = true;
  thread_local Array<bool> keeps;
  keeps.resize(routing.assignments());
  for (int64_t a = 0; a < routing.assignments(); ++a)
    keeps[a] = routing.rank[a] == 0 || static_cast<double>(routing.gate[a]) > rule_.later_above;
  routing.select(keeps.data());
}

namespace {

void visit_vector(Fields& fields, ImageVector& vector, const Shape& tokens) {
  fields.choice("source", vector.source, std::array{"automatic", "class_token", "mean_all", "mean_patches"});
  fields.flag("norm", vector.norm);
  if (!vector.norm) return;
  fields.floats("norm_weight", vector.norm_weight, tokens.columns);
  fields.floats("norm_bias", vector.norm_bias, tokens.columns);
  fields.epsilon("norm_epsilon", vector.norm_epsilon);
}

}  // namespace

void TopKRouter::visit(Fields& fields, const Shape& tokens) {
  logits_.visit(fields, tokens.columns);
  fields.number("k", rule_.k, {1, experts()});
  fields.choice("gates", rule_.gates, std::array{"probability", "of_chosen", "sigmoid"});
  fields.flag("drops_later", rule_.drops_later);
  if (rule_.drops_later) fields.real("later_above", rule_.later_above, {});
  fields.optional("by_image", vector_, [&](ImageVector& vector) { visit_vector(fields, vector, tokens); });
}

// [N,1,D]
std::string TopKRouter::export_image_vectors(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const int64_t prefix = tokens.shape.prefix, per_image = tokens.shape.rows();
  using Source = ImageVector::Source;
  OnnxName vector;
  if (vector_->source == Source::class_token || (vector_->source == Source::automatic && prefix > 0)) {
    check_class_token({.prefix = prefix});
    vector = graph.slice(tokens.rows, 1, 0, 1);
  } else {
    const int64_t first = vector_->source == Source::mean_patches ? prefix : 0;
    vector = graph.mean(graph.slice(tokens.rows, 1, first, per_image), {1}, true);
  }
  if (!vector_->norm) return vector;
  return onnx_norm(graph, vector_->norm_weight, vector_->norm_bias, vector_->norm_epsilon, vector);
}

OnnxRouting TopKRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const OnnxName logits = logits_.export_onnx(graph, vector_ ? export_image_vectors(graph, tokens) : tokens.rows);
  const auto [values, chosen] = graph.top_k(logits, rule_.k, 2);
  const OnnxName all = rule_.gates == Gates::sigmoid ? graph.node("Sigmoid", {logits}) : graph.softmax(logits, 2);
  const OnnxName scores = graph.gather_elements(all, chosen, 2);
  const OnnxName gates = rule_.gates == Gates::of_chosen ? graph.softmax(values, 2) : scores;
  OnnxRouting routing = choose_per_token(chosen, gates, scores, rule_.k, experts());
  if (vector_) {
    const OnnxName dims = graph.integers({1, tokens.shape.rows(), 1});
    for (OnnxName* each : {&routing.experts, &routing.gates, &routing.scores})
      *each = graph.node("Expand", {*each, dims});
    routing.made = routing.experts;
  }
  if (!rule_.drops_later || rule_.k == 1) return routing;
  const OnnxName is_first = graph.node("Equal", {onnx_numbers(graph, rule_.k), graph.integer(0)});
  select_choices(graph, graph.node("Or", {is_above(graph, routing.gates, rule_.later_above), is_first}), routing);
  return routing;
}

}  // namespace sparsight::engine
