#include "sparsight/engine/routers/fixed.h"

#include <algorithm>
#include <bit>

#include "sparsight/core/random.h"
#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_routing.h"

namespace sparsight::engine {
namespace {

// choose(token, its experts [k]).
template <class Choose>
void choose_fixed(Routing& routing, int64_t k, const Choose& choose) {
  thread_local Array<int64_t> chosen;
  chosen.resize(routing.tokens * k);
  for (int64_t t = 0; t < routing.tokens; ++t) choose(t, chosen.data() + t * k);
  routing.choose_per_token(chosen.data(), k);
  std::fill_n(routing.gate.data(), routing.assignments(), static_cast<float>(1.0 / static_cast<double>(k)));
}

}  // namespace

void hash_experts(uint64_t seed, int64_t key, int64_t experts, int64_t k, int64_t* chosen) {
  const uint64_t of_token = hash_combine(seed, static_cast<uint64_t>(key));
  thread_local Array<int64_t> taken;  // sorted
  taken.clear();
  for (int64_t q = 0; q < k; ++q) {
    // The r-th expert that is not taken.
    auto expert =
        static_cast<int64_t>(hash_combine(of_token, static_cast<uint64_t>(q)) % static_cast<uint64_t>(experts - q));
    for (const int64_t other : taken.all()) expert += expert >= other;
    chosen[q] = expert;
    int64_t* const first = taken.resize(q + 1);
    int64_t* const place = std::upper_bound(first, first + q, expert);
    std::copy_backward(place, first + q, first + q + 1);
    *place = expert;
  }
}

void HashRouter::choose(const RouterInput&, Routing& routing) const {
  choose_fixed(routing, k_, [&](int64_t token, int64_t* chosen) {
    hash_experts(seed_, token % routing.layout.per_image, experts_, k_, chosen);
  });
}

void RoundRobinRouter::choose(const RouterInput& input, Routing& routing) const {
  const int64_t per_image = routing.layout.per_image;
  choose_fixed(routing, k_, [&](int64_t token, int64_t* chosen) {
    const int64_t in_batch = token / per_image, image = input.image ? input.image[in_batch] : in_batch;
    for (int64_t q = 0; q < k_; ++q) chosen[q] = ((image * per_image + token % per_image) * k_ + q) % experts_;
  });
}

void HashRouter::visit(Fields& fields, const Shape&) {
  fields.size("experts", experts_);
  fields.number("k", k_, {1, experts_});
  auto seed = std::bit_cast<int64_t>(seed_);
  fields.number("seed", seed, {});
  seed_ = std::bit_cast<uint64_t>(seed);
}

void RoundRobinRouter::visit(Fields& fields, const Shape&) {
  fields.size("experts", experts_);
  fields.number("k", k_, {1, experts_});
}

namespace {

// chosen: [N,S,k].
OnnxRouting fixed_routing(OnnxGraph& graph, const OnnxName& chosen, int64_t k, int64_t experts) {
  const OnnxName zeros = graph.cast(graph.zeros_like(chosen), OnnxType::fp32);
  const OnnxName gates = graph.add(zeros, graph.number(static_cast<float>(1.0 / static_cast<double>(k))));
  return choose_per_token(chosen, gates, gates, k, experts);
}

}  // namespace

OnnxRouting HashRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const int64_t per_image = tokens.shape.rows();
  std::vector<int64_t> chosen(static_cast<size_t>(per_image * k_));
  for (int64_t s = 0; s < per_image; ++s) hash_experts(seed_, s, experts_, k_, chosen.data() + s * k_);
  const OnnxName dims = graph.concat({tokens.images, graph.integers({1, 1})}, 0);
  return fixed_routing(graph, graph.node("Expand", {graph.integers(chosen, {1, per_image, k_}), dims}), k_, experts_);
}

// Images are numbered from 0 in each batch.
OnnxRouting RoundRobinRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  const int64_t per_image = tokens.shape.rows();
  const OnnxName count = graph.multiply(graph.node("Squeeze", {tokens.images}), graph.integer(per_image * k_));
  const OnnxName turns = graph.node("Range", {graph.integer(0), count, graph.integer(1)});
  const OnnxName chosen = graph.node("Mod", {turns, graph.integer(experts_)});
  return fixed_routing(graph, graph.reshape(chosen, {-1, per_image, k_}), k_, experts_);
}

}  // namespace sparsight::engine
