#include "sparsight/engine/routing.h"

#include <algorithm>

#include "sparsight/kernels/routing/sort_by_expert.h"

namespace sparsight::engine {

void Routing::start(const TokenLayout& token_layout, int64_t expert_count) {
  layout = token_layout;
  tokens = layout.images * layout.per_image;
  experts = expert_count;
  per_token = slots = 0;
  varying = skips = false;
  logits.clear(), scores.clear(), combine.clear();
  set_assignments(0);
  capacity.clear(), position.clear(), order.clear(), offsets.clear(), kept.clear();
}

void Routing::set_assignments(int64_t count) {
  token.resize(count), expert.resize(count), rank.resize(count), gate.resize(count);
}

void Routing::choose_per_token(const int64_t* chosen, int64_t k) {
  per_token = k;
  set_assignments(tokens * k);
  std::copy_n(chosen, tokens * k, expert.data());
  int64_t a = 0;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t q = 0; q < k; ++q, ++a) token[a] = t, rank[a] = q;
}

void Routing::select(const bool* keeps) {
  int64_t count = 0;
  for (int64_t a = 0; a < assignments(); ++a) {
    if (!keeps[a]) continue;
    token[count] = token[a], expert[count] = expert[a], rank[count] = rank[a], gate[count] = gate[a];
    ++count;
  }
  set_assignments(count);
}

void Routing::keep_all() {
  std::fill_n(kept.resize(assignments()), assignments(), true);
  group_kept();
}

void Routing::group_kept() {
  offsets.resize(experts + 1);
  cpu::expert_offsets(expert.data(), kept.data(), assignments(), experts, offsets.data());
  order.resize(offsets[experts]);
  cpu::order_by_expert(expert.data(), kept.data(), assignments(), experts, offsets.data(), order.data());
}

}  // namespace sparsight::engine
